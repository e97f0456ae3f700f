"""Plans elements read and written at indices, known ones or found when the program runs, in order, padding and cat."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from qdialect.arithmetic.choices import Order, ScatterReduction
from qdialect.dialect import F32MaxOp, F32SumOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Shape, axis_in, require
from qdialect.frontends.building.op_builder import reduced
from qdialect.frontends.building.slices import Slice, gather
from qdialect.frontends.planning import elementwise
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.indexing import INDICES, elements_at, offset_of, scattered, strides_of, sum_of
from qdialect.frontends.planning.movement import Padding, Reshaping, Slicing, concatenation, joined, joined_shape, move
from qdialect.frontends.planning.movement import gathered as gathered_at
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.reduction import extreme_index, running_sum, top_indices
from qdialect.frontends.planning.tensors import Computation, Constant, F32Tensor, Tensor
from qdialect.frontends.torch.operators.movement import gathered, moved, part_of, transposed
from qdialect.frontends.torch.operators.plain import as_element, element_of_result, repeated, value_as
from qdialect.frontends.torch.operators.reduction import reduce_over
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports, imports_plain
from qdialect.frontends.torch.program.model import Ref
from qdialect.ir._mlir import ir

_MAX_FACTORS = 256
"""Of a running product: each one is an op of its own."""


def taken(call: Call, source: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The elements of `source` at `indices` along `axis`, whose dimension those of the indices replace."""
    shape = (*source.shape[:axis], *indices.shape, *source.shape[axis + 1 :])
    if isinstance(indices, Constant):
        flat = tuple(int(index) for index in indices.array.ravel())
        return moved(call, gathered(call, source, axis, flat), Reshaping(shape))
    found = elementwise.value_of_tensor(call, indices)
    require(found.element in INDICES, f"indices must be i32 or i64, but got {found.element}")
    return gathered_at(call.plan, call.name, source, found, axis)


def axis_of(call: Call, rank: int) -> int:
    """The argument ``dim`` of a tensor of `rank` dimensions."""
    (axis,) = call.integers("dim", 1)
    return axis_in(axis, max(rank, 1), "dim")


@imports("embedding.default")
def _embedding(call: Call) -> Result:
    # Of a gradient alone.
    call.ignore("padding_idx")
    return taken(call, call.tensor("weight"), call.tensor("indices"), 0)


@imports("index_select.default")
def _index_select(call: Call) -> Result:
    source = call.tensor("self")
    return taken(call, source, call.tensor("index"), axis_of(call, len(source.shape)))


@imports("index.Tensor", "_unsafe_index.Tensor")
def _index(call: Call) -> Result:
    """Index tensors broadcast; their dimensions replace the indexed ones, and come first where those are apart."""
    source, entries = call.tensor("self"), call.given("indices")
    found = {axis: call.results[entry.name] for axis, entry in enumerate(entries) if isinstance(entry, Ref)}
    tensors = {axis: result for axis, result in found.items() if not isinstance(result, tuple)}
    for tensor in tensors.values():
        require(
            elementwise.element_type(tensor) in INDICES,
            f"indices must be i32 or i64, but got {elementwise.element_type(tensor)}",
        )
    axes = tuple(tensors)
    require(len(axes) >= 1, "indices must name at least 1 dimension")
    whole = _taken_whole(tensors, source.shape)
    if whole is not None:
        return _rows_at(call, source, tensors, *whole)
    if axes != tuple(range(axes[0], axes[-1] + 1)):
        others = tuple(axis for axis in range(len(source.shape)) if axis not in axes)
        source = transposed(call, source, (*axes, *others))
        axes = tuple(range(len(axes)))
    return _at_tuples(call, source, axes, list(tensors.values()))


def _taken_whole(tensors: Mapping[int, Tensor], shape: Shape) -> tuple[int, int] | None:
    """The dimension of `shape` that is taken whole, along a dimension of the result of its own, and that one.

    All dimensions are indexed, and that of the result is counted from the end.
    """
    for axis, tensor in tensors.items():
        moving = [i - len(tensor.shape) for i, extent in enumerate(tensor.shape) if extent > 1]
        is_whole = isinstance(tensor, Constant) and np.array_equal(tensor.array.ravel(), np.arange(shape[axis]))
        if len(tensors) != len(shape) or len(moving) != 1 or not is_whole:
            continue
        others = [other.shape for other in tensors.values() if other is not tensor]
        if others and all(len(other) < -moving[0] or other[moving[0]] == 1 for other in others):
            return axis, moving[0]
    return None


def _rows_at(call: Call, source: Tensor, tensors: Mapping[int, Tensor], axis: int, moving: int) -> Tensor:
    """The elements at indices of all dimensions: rows along `axis`, which is dimension `moving` of the result."""
    rest = tuple(other for other in tensors if other != axis)
    rows = _at_tuples(
        call, transposed(call, source, (*rest, axis)), tuple(range(len(rest))), [tensors[other] for other in rest]
    )
    rank = max(len(tensor.shape) for tensor in tensors.values())
    shape, place = [*(1,) * (rank + 1 - len(rows.shape)), *rows.shape], rank + moving
    del shape[place]
    order = (*range(place), rank - 1, *range(place, rank - 1))
    return transposed(call, moved(call, rows, Reshaping(tuple(shape))), order)


def _at_tuples(call: Call, source: Tensor, axes: Shape, tensors: Sequence[Tensor]) -> Tensor:
    """The elements at indices of neighbouring dimensions, which become one."""
    first, extents = axes[0], tuple(source.shape[axis] for axis in axes)
    if len(axes) == 1:
        return taken(call, source, tensors[0], first)
    offsets = [offset_of(call, *parts) for parts in zip(tensors, extents, strides_of(extents), strict=True)]
    flat = (*source.shape[:first], math.prod(extents), *source.shape[axes[-1] + 1 :])
    return taken(call, moved(call, source, Reshaping(flat)), sum_of(call, offsets), first)


@imports("gather.default")
def _gather(call: Call) -> Result:
    source, index = call.tensor("self"), call.tensor("index")
    return elements_along(call, source, index, checked_axis(call, source.shape, index.shape))


def checked_axis(call: Call, shape: Shape, index: Shape) -> int:
    """The argument ``dim`` of a tensor of `shape`, in which an `index` must lie."""
    axis = axis_of(call, len(shape))
    fits = len(shape) == len(index) >= 1 and all(
        own <= whole for i, (own, whole) in enumerate(zip(index, shape, strict=True)) if i != axis
    )
    require(fits, f"index must lie in a tensor of shape {list(shape)}, but has {list(index)}")
    return axis


def elements_along(call: Call, source: Tensor, index: Tensor, axis: int) -> Tensor:
    """Element [.., i, ..] is the source's element [.., index[.., i, ..], ..]."""
    at = elements_at(call, source.shape, index, axis)
    return taken(call, moved(call, source, Reshaping((math.prod(source.shape),))), at, 0)


@imports("argmax.default", "argmin.default")
def _argmax(call: Call) -> Result:
    """The first of equal elements; of a whole tensor in row-major order."""
    source, is_largest = call.tensor("self"), "argmax" in call.node.kind
    if call.argument("dim") is not None:
        axis, keeps = axis_of(call, len(source.shape)), bool(call.argument("keepdim"))
        return _first_extreme(call, source, axis, keeps, is_largest)
    flat = moved(call, source, Reshaping((math.prod(source.shape),)))
    index = _first_extreme(call, flat, 0, False, is_largest)
    return moved(call, index, Reshaping(call.node.outputs[0].shape))


def _first_extreme(call: Call, source: Tensor, axis: int, keep_dims: bool, is_largest: bool) -> Value:
    """Where the first NaN stands, else the first of the extreme elements."""
    return extreme_index(
        call, source, axis, keep_dims=keep_dims, last=False, is_largest=is_largest, nan_is_extreme=True
    )


@imports("max.dim", "min.dim")
def _extreme_and_index(call: Call) -> Result:
    """The extreme element along a dimension, and where the first of them stands."""
    source, is_largest = call.tensor("self"), "max" in call.node.kind
    axis, keeps = axis_of(call, len(source.shape)), bool(call.argument("keepdim"))
    index = _first_extreme(call, source, axis, keeps, is_largest)
    return reduce_over(call, source, (axis,), keeps, "amax" if is_largest else "amin"), index


@imports("cumsum.default")
def _cumsum(call: Call) -> Result:
    """One term after another; integers wrap around."""
    value = value_as(call, "self", element_of_result(call))
    axis = axis_of(call, len(value.shape))
    return elementwise.tensor_of(running_sum(call, value, axis))


@imports("cumprod.default")
def _cumprod(call: Call) -> Result:
    """One factor after another; integers wrap around."""
    value = value_as(call, "self", element_of_result(call))
    axis = axis_of(call, len(value.shape))
    require(len(value.shape) >= 1, "input must have at least 1 dimension, but got 0")
    extent = value.shape[axis]
    require(extent <= _MAX_FACTORS, f"a running product must have at most {_MAX_FACTORS} factors, but got {extent}")
    op = "arith.mulf" if value.element == "f32" else "arith.muli"

    def build(emitter: Emitter, held: list[ir.Value]) -> ir.Value:
        factors = [gather(emitter, held[0], axis, (index,)) for index in range(extent)]
        products = list(accumulate(factors, lambda lhs, rhs: emitter.upstream(op, lhs, rhs)))
        return emitter.concatenate(products, axis)

    return elementwise.tensor_of(call.plan.ordered(call.name, value.shape, value.element, [value], build))


# topk, sort, kthvalue and median: elements in order; NaN is larger than every number.
#
# Of equal numbers the first comes first, unless the order is unstable and read: then it is that of libstdc++.

# From so many integers of a single row on, PyTorch sorts upwards by their digits.
_SORTED_BY_DIGITS = 1 << 15


@imports("topk.default")
def _top_k(call: Call) -> Result:
    source = call.tensor("self")
    axis, (count,) = axis_of(call, len(source.shape)), call.integers("k", 1)
    is_sorted = call.given("sorted") is not False
    order = Order.STABLE if is_sorted and not _is_order_read(call) else Order.TOP_K if is_sorted else Order.SELECT
    return _part_of_order(call, source, axis, (0, count), is_largest=bool(call.argument("largest")), order=order)


@imports("sort.default", "sort.stable")
def _sort(call: Call) -> Result:
    source = call.tensor("self")
    axis, is_falling = axis_of(call, len(source.shape)), bool(call.argument("descending"))
    count = source.shape[axis] if source.shape else 1
    is_stable = bool(call.argument("stable")) or not _is_order_read(call)
    is_long = len(source.shape) == 1 and count >= _SORTED_BY_DIGITS and not is_falling
    is_known = is_stable or not is_long or elementwise.element_type(source) == "f32"
    require(is_known, f"must be stable where indices of at least {_SORTED_BY_DIGITS} integers are read")
    order = Order.STABLE if is_stable else Order.SORT
    return _part_of_order(call, source, axis, (0, count), is_largest=is_falling, order=order)


@imports("kthvalue.default", "median.dim")
def _kth(call: Call) -> Result:
    """The number of a rank, or the median."""
    source = call.tensor("self")
    axis = axis_of(call, len(source.shape))
    if call.node.kind.startswith("aten.kthvalue"):
        require(not _is_order_read(call), "index must not be read: of equal numbers it may be that of any")
        (count,) = call.integers("k", 1)
        found = _part_of_order(call, source, axis, (count - 1, count), is_largest=False)
    else:
        found = _middle(call, source, axis)
    if call.argument("keepdim"):
        return found
    shape = (*source.shape[:axis], *source.shape[axis + 1 :])
    return tuple(moved(call, one, Reshaping(shape)) for one in found)


@imports("median.default")
def _median(call: Call) -> Result:
    flat = moved(call, call.tensor("self"), Reshaping((math.prod(call.tensor("self").shape),)))
    return moved(call, _middle(call, flat, 0)[0], Reshaping(()))


def _middle(call: Call, source: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The median along `axis`, the lower one of two, and where it stood: the first NaN where there is one."""
    middle = (source.shape[axis] + 1) // 2
    value, index = _part_of_order(call, source, axis, (middle - 1, middle), is_largest=False)
    if not isinstance(source, F32Tensor):
        return value, index
    last = _first_extreme(call, source, axis, True, True)
    largest = elementwise.value_of_tensor(call, elements_along(call, source, last, axis))
    at = elementwise.ternary(
        call,
        [largest, last, elementwise.value_of_tensor(call, index)],
        "i64",
        lambda s, x, of_nan, of_middle: s.select(s.compare("ne", x, x), of_nan, of_middle),
    )
    return elements_along(call, source, at, axis), at


def _is_order_read(call: Call) -> bool:
    return call.taken is None or 1 in call.taken


def _part_of_order(
    call: Call, source: Tensor, axis: int, part: tuple[int, int], *, is_largest: bool, order: Order = Order.STABLE
) -> tuple[Tensor, Tensor]:
    """The elements of some ranks along `axis`, and where they stood."""
    shape = source.shape
    require(len(shape) >= 1, "input must have at least 1 dimension, but got 0")
    begin, end = part
    require(0 <= begin < end <= shape[axis], f"rank must be in [1, {shape[axis]}], but got {end}")
    first = top_indices(call, source, axis, end, is_largest=is_largest, order=order)
    indices = part_of(call, first, axis, begin, end)
    return elements_along(call, source, indices, axis), indices


# embedding_bag: sums, means or maxima of rows of a table, of the same number of rows for each result.

_SUM, _MEAN, _MAX = range(3)
"""PyTorch's numbers of the modes."""


@imports(
    "embedding_bag.default",
    "embedding_bag.padding_idx",
    "_embedding_bag.default",
    "_embedding_bag_forward_only.default",
)
def _embedding_bag(call: Call) -> Result:
    """The results, and zeros in place of the ones that only a gradient needs."""
    count, size = _bags(call)
    mode, padding = call.argument("mode") or _SUM, call.argument("padding_idx")
    require(mode in (_SUM, _MEAN, _MAX), f"mode must be 0, 1 or 2, but got {mode}")
    require(padding in (None, -1), f"padding_idx must be -1, but got {padding}")
    rows = as_f32("weight", taken(call, call.tensor("weight"), call.tensor("indices"), 0))
    width = rows.shape[-1]
    is_weighted = call.given("per_sample_weights") is not None
    operands = (rows, call.f32("per_sample_weights")) if is_weighted else (rows,)

    def build(emitter: Emitter, values: Sequence[ir.Value]) -> ir.Value:
        bags = emitter.reshape(values[0], (count, size, width))
        if is_weighted:
            weights = emitter.reshape(values[1], (count, size, 1))
            bags = emitter.f32("mulf", bags, weights)
        found = reduced(emitter, F32MaxOp if mode == _MAX else F32SumOp, bags, (1,), keep_dims=False)
        return emitter.f32("divf", found, float(size)) if mode == _MEAN else found

    zeros = (Constant(np.zeros(output.shape, np.int64)) for output in call.node.outputs[1:])
    return Computation((count, width), operands, build, name=call.name), *zeros


def _bags(call: Call) -> tuple[int, int]:
    """How many bags there are, and how many indices each one has."""
    offsets, indices = call.constant("offsets").ravel(), call.tensor("indices").shape
    require(len(indices) == 1, f"indices must have 1 dimension, but got {len(indices)}")
    ends = offsets[1:] if call.argument("include_last_offset") else np.append(offsets[1:], indices[0])
    sizes = sorted({int(size) for size in ends - offsets[: len(ends)]})
    require(len(sizes) == 1, f"bags must have the same number of indices, but got {sizes}")
    require(len(offsets) > 0 and offsets[0] == 0 and sizes[0] >= 1, "bags must begin at index 0 and must not be empty")
    require(len(ends) * sizes[0] == indices[0], f"bags must hold all {indices[0]} indices")
    return len(ends), sizes[0]


# constant_pad_nd: a number around a tensor; where the tensor is quantized afterwards, its quantized value.


@imports("constant_pad_nd.default")
def _pad(call: Call) -> Result:
    """Pairs of counts from the last dimension on."""
    source = call.tensor("self")
    pads, rank = call.dimensions("pad"), len(source.shape)
    require(len(pads) % 2 == 0 and len(pads) <= 2 * rank, f"pad must have pairs for {rank} dimensions at most")
    pairs = [(0, 0)] * (rank - len(pads) // 2) + list(zip(pads[::2], pads[1::2], strict=True))[::-1]
    slices = [
        Slice(max(-low, 0), 1, extent + min(low, 0) + min(high, 0))
        for extent, (low, high) in zip(source.shape, pairs, strict=True)
    ]
    require(all(one.count >= 1 for one in slices), f"pad must leave an element of each dimension, but got {list(pads)}")
    number, element = call.argument("value") or 0, elementwise.element_type(source)
    fill = float(number) if element == "f32" else int(elementwise.cast_array(np.array(number), element))
    kept = moved(call, as_f32("self", source) if element == "f32" else source, Slicing.of(slices))
    low, high = (tuple(max(pair[end], 0) for pair in pairs) for end in range(2))
    if not any((*low, *high)):
        return kept
    shape = tuple(map(sum, zip(kept.shape, low, high, strict=True)))
    return move(call.plan, call.name, kept, Padding(shape, low, high, fill))


# cat: f32 values side by side, and integers.


def _parts(call: Call) -> Sequence[Tensor]:
    """Those that are not empty: PyTorch leaves out parts of shape [0], whatever rank the others have."""
    given = call.tensors("tensors")
    return [tensor for tensor in given if 0 not in tensor.shape] or given


@imports("cat.default", "concat.default")
def _cat(call: Call) -> Result:
    parts = [as_f32("tensors", tensor) for tensor in _parts(call)]
    axis = axis_of(call, len(parts[0].shape))
    return concatenation(call.plan, call.name, joined(parts, axis, call.name))


@imports_plain("cat.default", "concat.default")
def _cat_of_integers(call: Call) -> Result:
    """Each part in the type of the result."""
    element = element_of_result(call)
    values = [elementwise.value_of_tensor(call, as_element(call, tensor, element)) for tensor in _parts(call)]
    axis = axis_of(call, len(values[0].shape))
    shape = joined_shape([value.shape for value in values], axis)
    return elementwise.tensor_of(
        call.plan.ordered(call.name, shape, element, values, lambda emitter, held: emitter.concatenate(held, axis))
    )


# Elements written at indices; where indices are the same, the last one stays, or all are reduced.

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
    return elementwise.tensor_of(scattered(call, data, rows, updates, (math.prod(data.shape),), _REDUCTIONS[kind]))


def _rows(call: Call, data: Tensor, index: Tensor) -> Tensor:
    """Which elements of the whole tensor an index along one dimension names."""
    axis = checked_axis(call, data.shape, index.shape)
    require(
        elementwise.element_type(index) in INDICES,
        f"index must be i32 or i64, but got {elementwise.element_type(index)}",
    )
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
        return elementwise.tensor_of(result)
    begin = Constant(np.full(data.shape, 1 if call.argument("include_self") else 0, NUMPY_DTYPES[element]))
    ones = Constant(np.ones(index.shape, NUMPY_DTYPES[element]))
    counts = scattered(call, begin, rows, ones, size, ScatterReduction.ADD)

    def divided(s: elementwise.Arithmetic, total: ir.Value, count: ir.Value) -> ir.Value:
        # The count is 0 where nothing was counted.
        if element == "f32":
            return s.op("arith.divf", total, s.op("arith.maximumf", count, 1.0))
        return elementwise.floor_quotient(s, total, s.op("arith.maxsi", count, 1))

    return elementwise.tensor_of(elementwise.binary(call, [result, counts], element, divided))


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
    elements = [elementwise.element_type(tensor) for tensor in tensors.values()]
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
    return transposed(call, elementwise.tensor_of(written), tuple(order.index(axis) for axis in range(len(order))))


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
    number = elementwise.value_of_tensor(call, moved(call, call.tensor("values"), Reshaping(())))
    values = [
        elementwise.value_of_tensor(call, moved(call, mask, Reshaping(wide))),
        number,
        value_as(call, "self", element),
    ]
    return elementwise.tensor_of(
        elementwise.ternary(call, values, element, lambda s, holds, new, old: s.select(holds, new, old))
    )
