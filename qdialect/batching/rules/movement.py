"""Reshapes, transposes, slices and what else moves elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.batching.site import RULES, Site


@RULES.register("qnn.reshape")
def reshape(site: Site) -> int:
    """Elements keep their order: the batch stays outermost behind as many elements as before."""
    axis, shape = site.first(), site.shapes[0]
    before = math.prod(shape[:axis])
    for index, extent in enumerate(site.result):
        if math.prod(site.result[:index]) == before and extent % site.batch == 0:
            site.attributes["shape"] = _with_batch(site, "shape", index)
            return index
    return site.refuse(f"its result {list(site.result)} has the batch of {list(shape)} inside of a dimension")


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
