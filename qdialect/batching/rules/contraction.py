"""Convolutions, matrix products, and what else reads windows of images."""

from __future__ import annotations

from qdialect.batching.site import RULES, Site

_IMAGES = ("conv2d", "conv_transpose2d", "dynamic_conv2d", "f32_conv2d", "i16_conv2d", "max_pool2d", "avg_pool2d")
_RESIZES = ("resize_bilinear", "resize_nearest")
_FUSED_IMAGES = ("fused_conv2d", "fused_conv_transpose2d")
_PRODUCTS = ("matmul", "f32_matmul", "i16_matmul", "fused_matmul")


def _qnn(*names: str) -> list[str]:
    return [f"qnn.{name}" for name in names]


@RULES.register(*_qnn(*_IMAGES, *_RESIZES))
def of_images(site: Site) -> int:
    """Windows are of one image, the first dimension counts images."""
    return _image(site, site.first())


@RULES.register(*_qnn(*_FUSED_IMAGES))
def of_images_with_residual(site: Site) -> int:
    """The same, and a residual as large as the result may be added."""
    return _with_residual(site, _image(site, _data(site)))


@RULES.register(*_qnn("dense", "i16_dense"))
def of_rows(site: Site) -> int:
    """The last dimension is summed up."""
    return _row(site, site.first())


@RULES.register(*_qnn("fused_dense"))
def of_rows_with_residual(site: Site) -> int:
    """The same, and a residual as large as the result may be added."""
    return _with_residual(site, _row(site, _data(site)))


@RULES.register(*_qnn("dynamic_dense"))
def of_rows_with_parameters(site: Site) -> int:
    """Scale and zero point are of the whole, or of each row."""
    axis = _row(site, _data(site))
    rows = (*site.shapes[0][:-1], 1)
    for index, (own, shape) in enumerate(zip(site.axes, site.shapes, strict=True)):
        if index in (0, 2, 3) and own is not None and (own != axis or (index and shape != rows)):
            site.refuse(f"operand {index} is of all rows of an entry")
        if index in (2, 3) and own is None and shape == rows and rows[axis] > 1:
            site.grown[index] = axis
        if index not in (0, 2, 3) and own is not None:
            site.refuse(f"operand {index} has the batch")
    return axis


@RULES.register(*_qnn(*_PRODUCTS))
def of_matrices(site: Site) -> int:
    """The last dimension of the first operand and the one before the last of the second are summed up."""
    data, weight = site.axes[:2]
    ranks = [len(shape) for shape in site.shapes[:2]]
    rank = max(ranks)
    if any(axis is not None for axis in site.axes[2:3]) or (data is None and weight is None):
        site.refuse("what is added to its products has the batch")
    if data == ranks[0] - 2 and weight is None:
        return _with_residual(site, rank - 2)
    found = {axis + rank - own for axis, own in zip((data, weight), ranks, strict=True) if axis is not None}
    axis = found.pop()
    if found or axis >= rank - 2:
        site.refuse("its operands have the batch where rows, columns or sums are")
    for index, (own, shape) in enumerate(zip((data, weight), site.shapes, strict=False)):
        at = axis - rank + len(shape)
        if own is not None and shape[at] != site.result[axis]:
            site.refuse(f"operand {index} is repeated along dimension {at}, which has the batch")
        # A product of floats does not repeat matrices where there are several.
        if own is None and at >= 0 and (shape[at] > 1 or site.op.name == "qnn.f32_matmul"):
            site.grown[index] = at
    return _with_residual(site, axis)


def _data(site: Site) -> int:
    axis = site.axes[0]
    if axis is None:
        site.refuse("operand 0 lacks the batch")
    return axis


def _image(site: Site, axis: int) -> int:
    if axis:
        site.refuse(f"its windows reach over dimension {axis}, which has the batch")
    return axis


def _row(site: Site, axis: int) -> int:
    site.refuse_axis(axis, len(site.shapes[0]) - 1, "it sums up")
    return axis


def _with_residual(site: Site, axis: int) -> int:
    """Weights and bias lack the batch; what comes after them, a residual, has it where the result has it."""
    matrices = site.op.name.endswith("matmul")
    for index, own in enumerate(site.axes[1:], 1):
        if index == 3 and own is None:
            site.grown[index] = axis
        elif index == 3 and own != axis:
            site.refuse("its residual has the batch in another dimension")
        elif index < 3 and own is not None and not (matrices and index == 1):
            site.refuse(f"operand {index} has the batch")
    return axis
