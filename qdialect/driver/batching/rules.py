"""The position of the batch in a result: a rule for each op, one family a file. An op without one is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from qdialect.dialect import QnnOp
from qdialect.dialect.elementwise_ops import BinaryOp, ClipOp
from qdialect.dialect.fields import INTEGERS
from qdialect.dialect.i16_ops import FixedPointFunctionOp, I16RequantizeOp, InterpolatedLutOp
from qdialect.dialect.op_base import for_each_op
from qdialect.dialect.quantize_ops import DequantizeOp, QuantizeOp, RangeOp, RequantizeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.dialect.unary_ops import EightBitFunction
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import op_error
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import SCALAR_OPS
from qdialect.support.registry import Registry

# An op of a network, and in which dimension of its operands the batch is.
#
# A value has the batch in one dimension, or not at all. The extent of the dimension is a multiple of the batch
# has entries: those of the first entry come first, then those of the second. Where other dimensions were merged before
# the batch, as the tokens of attention with the tokens first, that many such blocks follow each other.

Rule = Callable[["Site"], int]
"""The dimension of the result that has the batch; raises `CompileError` where the op mixes entries."""

RULES = Registry[Rule]("batch rule")


@dataclass
class OpSite:
    """An op of a network."""

    op: ir.Operation

    @property
    def view(self) -> Any:
        """The op with its typed attributes."""
        return self.op.opview

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the operands."""
        return [shape_of(value.type) for value in self.op.operands]

    @property
    def result(self) -> tuple[int, ...]:
        """Shape of the result."""
        return shape_of(self.op.results[0].type)


@dataclass
class Site(OpSite):
    """An op of which an operand has the batch."""

    axes: list[int | None]
    """Of each operand, the dimension that has the batch."""
    batch: int
    """Entries of the batch that the network was written for."""
    wanted: int
    """Entries of the batch that it is to have."""
    blocks: int = 1
    """How often the entries follow each other in the dimension of operands that have the batch; then of the result."""
    grown: dict[int, int] = field(default_factory=dict[int, int])
    """Operands without batch that must be repeated for it: the dimension, by number."""
    attributes: dict[str, ir.Attribute] = field(default_factory=dict[str, ir.Attribute])
    """The value of an attribute for another batch."""

    def extents(self, found: Sequence[int], axis: int) -> ir.Attribute:
        """An attribute of extents for the batch that is wanted, which is in dimension `axis`."""
        return INTEGERS.to_attribute(resized(tuple(found), axis, self.batch, self.wanted))

    def first(self) -> int:
        """The batch of operand 0, which all others lack."""
        axis = self.axes[0]
        others = [index for index, other in enumerate(self.axes) if index and other is not None]
        if axis is None or others:
            self.refuse(f"operand {others[0] if others else 0} {'has' if others else 'lacks'} the batch")
        return axis

    def refuse(self, reason: str) -> NoReturn:
        """Raise `CompileError`: `reason` is what stands against a dynamic batch."""
        raise op_error(self.op, f"must compute each entry of a dynamic batch alone, but {reason}")

    def refuse_axis(self, axis: int, dimension: int | None, what: str) -> None:
        """Refuse `dimension` where the batch is there."""
        if axis == dimension:
            self.refuse(f"{what} dimension {dimension}, which has the batch")


def resized(shape: tuple[int, ...], axis: int, batch: int, wanted: int) -> tuple[int, ...]:
    """`shape` with a batch of `wanted` entries in dimension `axis` in place of one of `batch`."""
    return (*shape[:axis], shape[axis] // batch * wanted, *shape[axis + 1 :])


# Functions of one element each, whose operands broadcast as in NumPy where their op allows it.


def _of_ops(*bases: type[QnnOp]) -> Callable[[Rule], Rule]:
    """Make the decorated function the rule of the ops of these classes."""

    def register(rule: Rule) -> Rule:
        for_each_op(*bases)(lambda op_class: RULES.add([op_class.OPERATION_NAME], rule))
        return rule

    return register


@_of_ops(BinaryOp, ClipOp, EightBitFunction, FixedPointFunctionOp, InterpolatedLutOp)
def broadcasting(site: Site) -> int:
    """Operands are aligned at the last dimension; those of extent 1 are repeated."""
    rank = len(site.result)
    pairs = list(zip(site.axes, site.shapes, strict=True))
    found = {axis + rank - len(shape) for axis, shape in pairs if axis is not None}
    if len(found) > 1:
        site.refuse("its operands have the batch in different dimensions")
    axis = found.pop()
    for index, (own, shape) in enumerate(pairs):
        at = axis - rank + len(shape)
        if own is not None and shape[at] != site.result[axis]:
            site.refuse(f"operand {index} is repeated along dimension {at}, which has the batch")
        if own is None and at >= 0 and shape[at] > 1:
            site.grown[index] = at
    return axis


@RULES.register(*SCALAR_OPS)
@_of_ops(RangeOp)
def of_one_shape(site: Site) -> int:
    """All operands have the shape of the result."""
    axis = next(axis for axis in site.axes if axis is not None)
    for index, own in enumerate(site.axes):
        if own is None:
            site.grown[index] = axis
        elif own != axis:
            site.refuse("its operands have the batch in different dimensions")
    return axis


@_of_ops(QuantizeOp, DequantizeOp, RequantizeOp)
def of_channels(site: Site) -> int:
    """Parameters may differ along a dimension."""
    axis, values = site.first(), site.view.attribute_values()
    counts = [len(value) for name, value in values.items() if name.endswith(("scales", "zero_points"))]
    if max(counts) > 1:
        site.refuse_axis(axis, values["axis"], "its parameters differ along")
    return axis


@_of_ops(I16RequantizeOp)
def of_last_channels(site: Site) -> int:
    """Parameters may differ along the last dimension."""
    axis = site.first()
    if len(site.view.weight_scales) > 1:
        site.refuse_axis(axis, len(site.result) - 1, "its parameters differ along")
    return axis


# Convolutions, matrix products, and what else reads windows of images.

_IMAGES = ("conv2d", "conv_transpose2d", "dynamic_conv2d", "f32_conv2d", "i16_conv2d", "max_pool2d", "avg_pool2d")
_FUSED_IMAGES = ("fused_conv2d", "fused_conv_transpose2d")
_PRODUCTS = ("matmul", "f32_matmul", "i16_matmul", "fused_matmul")


def _qnn(*names: str) -> list[str]:
    return [f"qnn.{name}" for name in names]


@RULES.register(*_qnn(*_IMAGES, "resize_bilinear"))
def of_images(site: Site) -> int:
    """Windows are of one image, the first dimension counts images."""
    return _image(site, site.first())


@RULES.register(*_qnn(*_FUSED_IMAGES))
def of_images_with_residual(site: Site) -> int:
    """The same, and a residual as large as the result may be added."""
    return _with_residual(site, _image(site, _data(site)))


@RULES.register(*_qnn("dense", "i16_dense", "block_dense"))
def of_rows(site: Site) -> int:
    """The last dimension is summed up."""
    return _row(site, site.first())


@RULES.register(*_qnn("fused_dense"))
def of_rows_with_residual(site: Site) -> int:
    """The same, and a residual as large as the result may be added."""
    return _with_residual(site, _row(site, _data(site)))


@RULES.register(*_qnn("dynamic_dense", "block_dynamic_dense"))
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
    """Weights and bias lack the batch; the operand after them, a residual, has it where the result has it."""
    matrices = site.op.name.endswith("matmul")
    for index, own in enumerate(site.axes[1:], 1):
        if index == 3 and own is None:
            site.grown[index] = axis
        elif index == 3 and own != axis:
            site.refuse("its residual has the batch in another dimension")
        elif index < 3 and own is not None and not (matrices and index == 1):
            site.refuse(f"operand {index} has the batch")
    return axis


# Reshapes, transposes, slices and what else moves elements.


@RULES.register("qnn.reshape")
def reshape(site: Site) -> int:
    """Elements keep their order: an entry is after the same number of elements, in dimensions or in blocks of one."""
    axis, shape = site.first(), site.shapes[0]
    before = math.prod(shape[:axis]) * site.blocks
    outer = [math.prod(site.result[:index]) for index in range(len(site.result))]
    is_same_rank = len(site.result) == len(shape)
    found = [
        (is_same_rank and index != axis, extent // (before // count) > site.batch, before // count, index)
        for index, (extent, count) in enumerate(zip(site.result, outer, strict=True))
        if count and before % count == 0 and extent % (before // count * site.batch) == 0
    ]
    if not found:
        site.refuse(f"its result {list(site.result)} has parts of entries of {list(shape)} in a dimension")
    # There are several for a batch of 1, [T, 1, D]: [T, H, D / H] has it before heads, and [T, D] after tokens.
    *_, site.blocks, index = min(found)
    site.attributes["shape"] = _with_batch(site, "shape", index)
    return index


@RULES.register("qnn.transpose")
def transpose(site: Site) -> int:
    """Dimensions change their order."""
    return list(site.view.permutation).index(site.first())


@RULES.register("qnn.broadcast")
def broadcast(site: Site) -> int:
    """Dimensions of extent 1 are repeated, and new ones come first."""
    axis, shape = site.first(), site.shapes[0]
    at = axis + len(site.result) - len(shape)
    if site.result[at] != shape[axis]:
        site.refuse_axis(axis, axis, "it repeats")
    site.attributes["shape"] = _with_batch(site, "shape", at)
    return at


@RULES.register("qnn.slice")
def slice_of(site: Site) -> int:
    """All of the batch must be taken."""
    axis, view = site.first(), site.view
    if view.begin[axis] or view.strides[axis] != 1 or view.size[axis] != site.shapes[0][axis]:
        site.refuse_axis(axis, axis, "it takes a part of")
    site.attributes["size"] = _with_batch(site, "size", axis)
    return axis


@RULES.register("qnn.pad")
def pad(site: Site) -> int:
    """The batch must not be padded."""
    axis, view = site.first(), site.view
    if view.low[axis] or view.high[axis]:
        site.refuse_axis(axis, axis, "it pads")
    return axis


@RULES.register("qnn.gather")
def gather(site: Site) -> int:
    """Elements of one dimension, at known indices."""
    axis = site.first()
    site.refuse_axis(axis, site.view.axis, "it takes elements of")
    return axis


@RULES.register("qnn.concat")
def concat(site: Site) -> int:
    """Tensors one after the other along a dimension."""
    return _joined(site, site.view.axis)


@RULES.register("tensor.concat")
def upstream_concat(site: Site) -> int:
    """The same of any elements."""
    return _joined(site, ir.IntegerAttr(site.op.attributes["dim"]).value)


@RULES.register("qnn.dynamic_gather")
def dynamic_gather(site: Site) -> int:
    """Elements of one dimension at indices, whose dimensions replace it."""
    data, indices = site.axes
    along = site.view.axis
    if data is not None and indices is not None:
        site.refuse("data and indices have the batch")
    if indices is not None:
        return along + indices
    assert data is not None, "an operand has the batch"
    site.refuse_axis(data, along, "it takes elements of")
    return data if data < along else data + len(site.shapes[1]) - 1


@RULES.register("qnn.block_gather")
def block_gather(site: Site) -> int:
    """Rows of weights at indices, whose dimensions come first."""
    return site.first()


@RULES.register("qnn.dynamic_scatter")
def dynamic_scatter(site: Site) -> int:
    """Rows of the first dimension are replaced, for all entries at the same indices."""
    data, indices, updates = site.axes
    shift = len(site.shapes[1]) - 1
    axis = data if data is not None else -1 if updates is None else updates - shift
    if indices is not None or axis < 1 or updates not in (None, axis + shift):
        site.refuse("rows are replaced at indices of each entry, or of the batch")
    if data is None:
        site.grown[0] = axis
    if updates is None:
        site.grown[2] = axis + shift
    return axis


def _joined(site: Site, along: int) -> int:
    found = {axis for axis in site.axes if axis is not None}
    if len(found) > 1:
        site.refuse("its operands have the batch in different dimensions")
    axis = found.pop()
    site.refuse_axis(axis, along, "it joins tensors along")
    site.grown.update({index: axis for index, own in enumerate(site.axes) if own is None})
    return axis


def _with_batch(site: Site, name: str, axis: int) -> ir.Attribute:
    """The extents of attribute `name` for another batch."""
    extents: Sequence[int] = site.view.attribute_values()[name]
    return site.extents(extents, axis)


# Sums, extremes, softmax and what else reads a whole dimension, and cells over the steps of a sequence.

_OVER_AXES = (
    *("mean", "sum", "reduce_max", "reduce_min"),
    *(f"{kind}_{name}" for kind in ("f32", "int") for name in ("sum", "max", "min", "prod")),
)


_RANGES = ("qnn.f32_min", "qnn.f32_max")


@RULES.register(*(f"qnn.{name}" for name in _OVER_AXES))
def over_axes(site: Site) -> int:
    """Reduced dimensions stay as extents of 1, or go."""
    axis, view = site.first(), site.view
    if site.op.name in _RANGES and len(view.axes) == len(site.shapes[0]):
        site.refuse("it is of the whole batch: dynamic quantization needs a range for each row, as per-token has it")
    for reduced in view.axes:
        site.refuse_axis(axis, reduced, "it reduces")
    return axis if view.keep_dims else axis - sum(reduced < axis for reduced in view.axes)


@RULES.register("qnn.arg_max", "qnn.arg_min")
def index_along(site: Site) -> int:
    """The reduced dimension stays as an extent of 1, or goes."""
    axis, view = site.first(), site.view
    site.refuse_axis(axis, view.axis, "it reduces")
    return axis if view.keep_dims or axis < view.axis else axis - 1


@RULES.register("qnn.softmax", "qnn.cumsum", "qnn.top_k")
def along(site: Site) -> int:
    """Each element depends on all along a dimension."""
    axis = site.first()
    site.refuse_axis(axis, site.view.axis, "its elements depend on each other along")
    return axis


@RULES.register("qnn.l2_normalize", "qnn.i16_layer_norm")
def along_the_last(site: Site) -> int:
    """Each element depends on all along the last dimension."""
    axis = site.first()
    site.refuse_axis(axis, len(site.result) - 1, "its elements depend on each other along")
    return axis


@RULES.register("qnn.f32_lstm", "qnn.f32_gru", "qnn.f32_rnn")
def over_steps(site: Site) -> int:
    """Gates [T, B, G * H] and the initial state [B, S * H] give states [T + 1, B, S * H]."""
    gates, recurrence, initial, *others = site.axes
    if recurrence is not None or any(other is not None for other in others):
        site.refuse("its weights have the batch")
    if gates not in (None, 1) or initial not in (None, 0):
        site.refuse("its time steps or its states have the batch")
    if gates is None:
        site.grown[0] = 1
    if initial is None:
        site.grown[2] = 0
    return 1


@RULES.register("qnn.dynamic_lstm")
def over_steps_of_all(site: Site) -> NoReturn:
    """The states of all entries are quantized by one range."""
    site.refuse("its states are quantized by the range of all entries")
