"""Tensors with other elements at indices; where indices are the same, the last one stays."""

from __future__ import annotations

import math

import numpy as np

from qdialect.dialect import DynamicScatterOp
from qdialect.frontends.common import Shape, require
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.movement import Reshaping
from qdialect.frontends.planning.plain import element_type, tensor_of, ternary, value_of_tensor
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Tensor
from qdialect.frontends.torch.model import Ref
from qdialect.frontends.torch.operators.indexing import checked_axis, elements_at, offset_of, sum_of
from qdialect.frontends.torch.operators.movement import moved, part_of, transposed
from qdialect.frontends.torch.operators.plain import as_element, element_of_result, repeated, value_as
from qdialect.frontends.torch.operators.registry import Call, imports

_INDICES = ("i32", "i64")


def scattered(call: Call, data: Tensor, rows: Tensor, updates: Tensor, shape: Shape) -> Tensor:
    """`data`, seen as rows of the shape `shape`, with `updates` at `rows`."""
    into, at, added = (value_of_tensor(call, one) for one in (data, rows, updates))

    def emit(emitter: Emitter) -> Emitted:
        number = math.prod(at.shape)
        held = emitter.reshape(emitter.to_channels_first(into), shape)
        where = emitter.reshape(emitter.to_channels_first(at), (number,))
        elements = emitter.reshape(emitter.to_channels_first(added), (number, *shape[1:]))
        written = emitter.build(DynamicScatterOp, held, where, elements, element=into.element)
        return emitter.reshape(written, into.shape), False

    return tensor_of(call.plan.compute(call.name, into.shape, into.element, emit))


@imports("scatter.src", "scatter.value")
def _scatter(call: Call) -> Result:
    """The result's element [.., index[.., i, ..], ..] is element [.., i, ..] of the source."""
    data, index = call.tensor("self"), call.tensor("index")
    axis = checked_axis(call, data.shape, index.shape)
    require(element_type(index) in _INDICES, f"index must be i32 or i64, but got {element_type(index)}")
    rows = elements_at(call, data.shape, index, axis)
    if call.node.kind.endswith(".src"):
        updates = call.tensor("src")
        for along, extent in enumerate(index.shape):
            updates = part_of(call, updates, along, 0, extent)
    else:
        number = as_element(call, call.tensor("value"), element_of_result(call))
        updates = repeated(call, number, index.shape)
    return scattered(call, data, rows, updates, (math.prod(data.shape),))


@imports("index_put.default", "_unsafe_index_put.default")
def _index_put(call: Call) -> Result:
    """Index tensors broadcast; where one of them is a mask, its elements are chosen instead."""
    require(not call.argument("accumulate"), "accumulate must be false")
    data, entries = call.tensor("self"), call.node.arguments["indices"]
    found = {axis: call.results[entry.name] for axis, entry in enumerate(entries) if isinstance(entry, Ref)}
    tensors = {axis: result for axis, result in found.items() if not isinstance(result, tuple)}
    elements = [element_type(tensor) for tensor in tensors.values()]
    if elements == ["i1"]:
        return _masked(call, data, next(iter(tensors.items())))
    require(set(elements) <= set(_INDICES), f"indices must be i32 or i64, but got {', '.join(elements)}")
    axes = tuple(tensors)
    is_together = axes == tuple(range(axes[0], axes[-1] + 1))
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors.values()))
    others = tuple(axis for axis in range(len(data.shape)) if axis not in axes)
    order = (*axes, *others)
    turned = transposed(call, data, order)
    extents = turned.shape[: len(axes)]
    strides = [math.prod(extents[i + 1 :]) for i in range(len(extents))]
    parts = zip(tensors.values(), extents, strides, strict=True)
    rows = sum_of(call, [offset_of(call, tensor, extent, stride) for tensor, extent, stride in parts])
    row = turned.shape[len(axes) :]
    updates = _updates(call, shape, row, axes[0] if is_together else 0)
    written = scattered(call, turned, repeated(call, rows, shape), updates, (math.prod(extents), *row))
    return transposed(call, written, tuple(order.index(axis) for axis in range(len(order))))


def _updates(call: Call, shape: Shape, row: Shape, before: int) -> Tensor:
    """The argument ``values``, which broadcasts to a dimension for each index behind the `before` first of a row."""
    values = repeated(call, call.tensor("values"), (*row[:before], *shape, *row[before:]))
    count = len(shape)
    rank = len(row) + count
    order = (*range(before, before + count), *range(before), *range(before + count, rank))
    return transposed(call, values, order)


def _masked(call: Call, data: Tensor, entry: tuple[int, Tensor]) -> Tensor:
    """One number where a mask holds."""
    axis, mask = entry
    require(axis == 0, f"a mask must be of the first dimensions, but stands at {axis}")
    require(math.prod(call.tensor("values").shape) == 1, "values at a mask must be one number")
    wide = (*mask.shape, *(1,) * (len(data.shape) - len(mask.shape)))
    element = element_of_result(call)
    number = value_of_tensor(call, moved(call, call.tensor("values"), Reshaping(())))
    values = [value_of_tensor(call, moved(call, mask, Reshaping(wide))), number, value_as(call, "self", element)]
    return tensor_of(ternary(call, values, element, lambda s, holds, new, old: s.select(holds, new, old)))
