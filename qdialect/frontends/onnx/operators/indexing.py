"""Elements at positions that other tensors give when the network runs: GatherElements, GatherND and the scatters.

Negative indices count from the end.  ONNX Runtime stops with an error at an index outside; here it names the nearest
element, so that nothing beside the tensor is ever read or written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DynamicScatterOp
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.data_movement import normalized_axes
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import Reshaping, Slicing, gathered, move, move_value
from qdialect.frontends.planning.plain import Arithmetic, binary, common_element, tensor_of, unary
from qdialect.frontends.planning.tensors import Tensor, known
from qdialect.frontends.slices import Slice
from qdialect.quant_math.choices import ScatterReduction

INDICES = ("i32", "i64")


def indices_of(call: Call, index: int) -> Value:
    """Input `index` as indices."""
    value = value_of(call, index)
    require(value.element in INDICES, f"indices must be i32 or i64, but got {value.element}")
    return value


def _inside(s: Arithmetic, index: ir.Value, extent: int) -> ir.Value:
    """An index as one of `extent` elements: from the end if negative, the nearest if outside."""
    from_end = s.select(s.compare("lt", index, 0), s.op("arith.addi", index, extent), index)
    return s.op("arith.minsi", s.op("arith.maxsi", from_end, 0), extent - 1)


def _offset(call: Call, index: Value, extent: int, stride: int) -> Value:
    """How far an index along a dimension of `extent` elements, `stride` apart, lies from the first."""

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        return s.op("arith.muli", _inside(s, s.resize(x, "i64"), extent), stride)

    return unary(call, index, "i64", build)


def _sum(call: Call, values: Sequence[Value]) -> Value:
    total, *others = values
    for other in others:
        total = binary(call, [total, other], "i64", lambda s, lhs, rhs: s.op("arith.addi", lhs, rhs))
    return total


def _strides(shape: Shape) -> Shape:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _elements_at(call: Call, indices: Value, shape: Shape, axis: int) -> Value:
    """Where the elements lie, in row-major order, that have `indices` along `axis` of a tensor of `shape`."""
    strides = _strides(shape)
    extents = [1 if i == axis else extent for i, extent in enumerate(indices.shape)]
    call.plan.budget.spend_constant(extents, 8)
    grid = np.indices(extents, dtype=np.int64)
    others = sum((grid[i] * stride for i, stride in enumerate(strides)), np.zeros(extents, np.int64))
    return _sum(call, [_offset(call, indices, shape[axis], strides[axis]), known(call.name, others)])


def elements_along(call: Call, source: Tensor, indices: Value, axis: int) -> Tensor:
    """GatherElements of a tensor: element [.., i, ..] is the source's element [.., indices[.., i, ..], ..]."""
    flat = move(call.plan, call.name, source, Reshaping((math.prod(source.shape),)))
    return gathered(call.plan, call.name, flat, _elements_at(call, indices, source.shape, axis), 0)


def _checked_axis(call: Call, source: Tensor, indices: Value) -> int:
    (axis,) = normalized_axes([call.attribute("axis", 0)], len(source.shape))
    pairs = list(zip(source.shape, indices.shape, strict=False))
    fits = len(source.shape) == len(indices.shape) and all(
        own >= found for i, (own, found) in enumerate(pairs) if i != axis
    )
    require(fits, f"indices must lie in a tensor of shape {list(source.shape)}, but have {list(indices.shape)}")
    return axis


@imports("GatherElements")
def _gather_elements(call: Call) -> Tensor:
    call.count(2)
    source, indices = call.tensor(0), indices_of(call, 1)
    return elements_along(call, source, indices, _checked_axis(call, source, indices))


@dataclass(frozen=True)
class _Tuples:
    """Indices of several dimensions: where the rows lie that they name, the rows' shape and how many there are."""

    rows: Value
    row: Shape
    count: int


def _tuples(call: Call, shape: Shape, indices: Value, batch: int) -> _Tuples:
    """Indices into `shape`, whose last dimension has one entry for each dimension from `batch` on."""
    depth = indices.shape[-1] if indices.shape else 0
    fits = batch >= 0 and batch < len(indices.shape) and shape[:batch] == indices.shape[:batch]
    require(fits, f"batch_dims must be dimensions that data and indices share, but got {batch}")
    holds = 1 <= depth <= len(shape) - batch
    require(holds, f"indices must name 1 to {len(shape) - batch} dimensions, but name {depth}")
    indexed, strides = shape[: batch + depth], _strides(shape[: batch + depth])
    offsets = [
        _offset(call, _component(call, indices, i), indexed[batch + i], strides[batch + i]) for i in range(depth)
    ]
    outer = indices.shape[:-1]
    for axis in range(batch):
        along = np.arange(shape[axis], dtype=np.int64) * strides[axis]
        offsets.append(known(call.name, along.reshape(-1, *[1] * (len(outer) - axis - 1))))
    return _Tuples(_sum(call, offsets), shape[batch + depth :], math.prod(indexed))


def _component(call: Call, indices: Value, component: int) -> Value:
    """One entry of each index."""
    outer = indices.shape[:-1]
    slices = (*(Slice(0, 1, extent) for extent in outer), Slice(component, 1, 1))
    part = move_value(call.plan, call.name, indices, Slicing.of(slices), None)
    return move_value(call.plan, call.name, part, Reshaping(outer), None)


@imports("GatherND")
def _gather_nd(call: Call) -> Tensor:
    call.count(2)
    source, indices = call.tensor(0), indices_of(call, 1)
    found = _tuples(call, source.shape, indices, call.attribute("batch_dims", 0))
    rows = move(call.plan, call.name, source, Reshaping((found.count, *found.row)))
    return gathered(call.plan, call.name, rows, found.rows, 0)


@imports("ScatterND")
def _scatter_nd(call: Call) -> Tensor:
    """Rows are written in the order of the indices."""
    call.count(3)
    shape, indices = call.tensor(0).shape, indices_of(call, 1)
    found = _tuples(call, shape, indices, 0)
    wanted = (*indices.shape[:-1], *found.row)
    require(call.tensor(2).shape == wanted, f"updates must have the shape {list(wanted)}")
    return _scattered(call, found.rows, found.row, found.count)


@imports("ScatterElements", "Scatter")
def _scatter_elements(call: Call) -> Tensor:
    call.count(3)
    source, indices = call.tensor(0), indices_of(call, 1)
    axis = _checked_axis(call, source, indices)
    require(call.tensor(2).shape == indices.shape, f"updates must have the shape {list(indices.shape)}")
    return _scattered(call, _elements_at(call, indices, source.shape, axis), (), math.prod(source.shape))


def _reduction(call: Call) -> ScatterReduction:
    name = call.attribute("reduction", "none")
    require(name in set(ScatterReduction), f"reduction must be {' or '.join(ScatterReduction)}, but got {name}")
    return ScatterReduction(name)


def _scattered(call: Call, rows: Value, row: Shape, count: int) -> Tensor:
    """Input 0, as `count` rows, with input 2 at `rows`."""
    data, updates = value_of(call, 0), value_of(call, 2)
    common_element([data, updates], ("i1", "i8", "ui8", "i16", "ui16", "i32", "i64", "f32"))
    return tensor_of(scatter(call, data, rows, updates, (count, *row), _reduction(call)))


def scatter(
    call: Call,
    data: Value,
    rows: Value,
    updates: Value,
    shape: Shape,
    reduction: ScatterReduction = ScatterReduction.NONE,
) -> Value:
    """`data`, seen as rows of the shape `shape`, with `updates` at `rows`."""

    def emit(emitter: Emitter) -> Emitted:
        number = math.prod(rows.shape)
        held = emitter.reshape(emitter.to_channels_first(data), shape)
        at = emitter.reshape(emitter.to_channels_first(rows), (number,))
        added = emitter.reshape(emitter.to_channels_first(updates), (number, *shape[1:]))
        written = emitter.build(DynamicScatterOp, held, at, added, element=data.element, reduction=reduction)
        return emitter.reshape(written, data.shape), False

    return call.plan.compute(call.name, data.shape, data.element, emit)
