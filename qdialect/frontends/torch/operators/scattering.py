"""Tensors with other elements at indices; where indices are the same, the last one stays, or all are reduced."""

from __future__ import annotations

import math

import numpy as np

from qdialect.arithmetic.choices import ScatterReduction
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.planning import elementwise
from qdialect.frontends.planning.elementwise import binary, element_type, tensor_of, ternary, value_of_tensor
from qdialect.frontends.planning.indexing import INDICES, elements_at, offset_of, scattered, strides_of, sum_of
from qdialect.frontends.planning.movement import Reshaping
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Constant, Tensor
from qdialect.frontends.torch.operators.indexing import checked_axis
from qdialect.frontends.torch.operators.movement import moved, part_of, transposed
from qdialect.frontends.torch.operators.plain import as_element, element_of_result, repeated, value_as
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.program.model import Ref
from qdialect.ir._mlir import ir

_REDUCTIONS = {
    None: ScatterReduction.NONE,
    "add": ScatterReduction.ADD,
    "amax": ScatterReduction.MAX,
    "amin": ScatterReduction.MIN,
    "mean": ScatterReduction.ADD,
    "multiply": ScatterReduction.MUL,
    "prod": ScatterReduction.MUL,
    "sum": ScatterReduction.ADD,
}


_LEAST_ROW = 8
"""Elements side by side that are worth an index."""


@imports("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add.default")
def _scatter(call: Call) -> Result:
    """The result's element [.., index[.., i, ..], ..] is element [.., i, ..] of the source."""
    data, index = call.tensor("self"), call.tensor("index")
    rows = _rows(call, data, index)
    if "src" in call.node.arguments:
        updates = _source(call, index)
    else:
        number = as_element(call, call.tensor("value"), element_of_result(call))
        updates = repeated(call, number, index.shape)
    kind = "add" if "scatter_add" in call.node.kind else call.argument("reduce")
    return tensor_of(scattered(call, data, rows, updates, (math.prod(data.shape),), _REDUCTIONS[kind]))


def _rows(call: Call, data: Tensor, index: Tensor) -> Tensor:
    """Which elements of the whole tensor an index along one dimension names."""
    axis = checked_axis(call, data.shape, index.shape)
    require(element_type(index) in INDICES, f"index must be i32 or i64, but got {element_type(index)}")
    return elements_at(call, data.shape, index, axis)


def _source(call: Call, index: Tensor) -> Tensor:
    """The part of the argument ``src`` for which there are indices."""
    updates = call.tensor("src")
    for along, extent in enumerate(index.shape):
        updates = part_of(call, updates, along, 0, extent)
    return updates


@imports("scatter_reduce.two", "index_reduce.default")
def _scatter_reduce(call: Call) -> Result:
    """As `_scatter`; a mean divides sums by counts, integers rounded down, and only elements that are named change."""
    data, index, element = call.tensor("self"), call.tensor("index"), element_of_result(call)
    if "index_reduce" in call.node.kind:
        updates = call.tensor("source")
        index = _repeated_along(call, index, updates.shape)
    else:
        updates = _source(call, index)
    kind, size = call.argument("reduce"), (math.prod(data.shape),)
    rows, reduction = _rows(call, data, index), _REDUCTIONS[kind]
    if not call.argument("include_self"):
        neutral = repeated(call, Constant(_neutral(reduction, element)), index.shape)
        data = scattered(call, data, rows, neutral, size)
    result = scattered(call, data, rows, updates, size, reduction)
    if kind != "mean":
        return tensor_of(result)
    begin = Constant(np.full(data.shape, 1 if call.argument("include_self") else 0, NUMPY_DTYPES[element]))
    ones = Constant(np.ones(index.shape, NUMPY_DTYPES[element]))
    counts = scattered(call, begin, rows, ones, size, ScatterReduction.ADD)

    def divided(s: elementwise.Arithmetic, total: ir.Value, count: ir.Value) -> ir.Value:
        # The count is 0 where nothing was counted.
        if element == "f32":
            return s.op("arith.divf", total, s.op("arith.maximumf", count, 1.0))
        return elementwise.floor_quotient(s, total, s.op("arith.maxsi", count, 1))

    return tensor_of(binary(call, [result, counts], element, divided))


def _repeated_along(call: Call, index: Tensor, shape: Shape) -> Tensor:
    """An index of whole slices along one dimension, as one of each element."""
    axis = call.integers("dim", 1)[0] % len(shape)
    fits = math.prod(index.shape) == shape[axis]
    require(fits, f"index must have {shape[axis]} elements, but has the shape {list(index.shape)}")
    wide = tuple(extent if along == axis else 1 for along, extent in enumerate(shape))
    return repeated(call, moved(call, index, Reshaping(wide)), shape)


def _neutral(reduction: ScatterReduction, element: str) -> Array:
    """The number that a reduction begins with."""
    dtype = NUMPY_DTYPES[element]
    low, high = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype.name).min, np.iinfo(dtype.name).max)
    numbers = {ScatterReduction.ADD: 0, ScatterReduction.MUL: 1, ScatterReduction.MAX: low, ScatterReduction.MIN: high}
    return np.asarray(numbers[reduction], dtype)


@imports("index_put.default", "_unsafe_index_put.default")
def _index_put(call: Call) -> Result:
    """Index tensors broadcast; where one of them is a mask, its elements are chosen instead."""
    is_sum = bool(call.argument("accumulate"))
    data, entries = call.tensor("self"), call.given("indices")
    found = {axis: call.results[entry.name] for axis, entry in enumerate(entries) if isinstance(entry, Ref)}
    tensors = {axis: result for axis, result in found.items() if not isinstance(result, tuple)}
    elements = [element_type(tensor) for tensor in tensors.values()]
    if elements == ["i1"]:
        require(not is_sum, "accumulate must be false at a mask")
        return _masked(call, data, next(iter(tensors.items())))
    require(set(elements) <= set(INDICES), f"indices must be i32 or i64, but got {', '.join(elements)}")
    axes = tuple(tensors)
    is_together = axes == tuple(range(axes[0], axes[-1] + 1))
    if is_together and math.prod(data.shape[axes[-1] + 1 :]) >= _LEAST_ROW:
        # Every index of the dimensions before: such rows, as those of a cache, need no transposition.
        rank = max(len(tensor.shape) for tensor in tensors.values()) + axes[0]
        before = [
            np.arange(extent).reshape(-1, *[1] * (rank - 1 - i)) for i, extent in enumerate(data.shape[: axes[0]])
        ]
        tensors = dict(enumerate([*map(Constant, before), *tensors.values()]))
        axes = tuple(tensors)
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors.values()))
    others = tuple(axis for axis in range(len(data.shape)) if axis not in axes)
    order = (*axes, *others)
    indexed_first = transposed(call, data, order)
    extents = indexed_first.shape[: len(axes)]
    parts = zip(tensors.values(), extents, strides_of(extents), strict=True)
    rows = sum_of(call, [offset_of(call, tensor, extent, stride) for tensor, extent, stride in parts])
    row = indexed_first.shape[len(axes) :]
    updates = _updates(call, shape, row, axes[0] if is_together else 0)
    reduction = ScatterReduction.ADD if is_sum else ScatterReduction.NONE
    indices = repeated(call, rows, shape)
    written = scattered(call, indexed_first, indices, updates, (math.prod(extents), *row), reduction)
    return transposed(call, tensor_of(written), tuple(order.index(axis) for axis in range(len(order))))


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
