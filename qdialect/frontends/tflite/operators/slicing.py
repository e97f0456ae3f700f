"""SPLIT, SPLIT_V, SLICE, STRIDED_SLICE and UNPACK: parts of a tensor, each a slice of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from qdialect.frontends.building.checks import Shape, axis_in, require
from qdialect.frontends.building.slices import MAX_INDICES, Slice, check_indices, take_slices
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import integers, operands, operands_of_many, same_content
from qdialect.frontends.tflite.operators.registry import Building, Emission, imports
from qdialect.ir._mlir import ir


@imports("SPLIT")
def _split(operator: Operator) -> Building:
    count = operator.option("NumSplits")
    axis, data = operands_of_many(operator, 2)
    dimension = axis_of(integers(axis, "axis"), len(data.shape))
    require(count == len(operator.outputs), f"must have {count} outputs, but got {len(operator.outputs)}")
    extent = data.shape[dimension]
    require(extent % count == 0, f"extent must be a multiple of {count}, but got {extent}")
    return _parts(operator, data, dimension, [extent // count] * count)


@imports("SPLIT_V")
def _split_v(operator: Operator) -> Building:
    """One size may be -1: whatever the others leave."""
    data, sizes, axis = operands_of_many(operator, 3)
    check_indices(math.prod(sizes.shape), operator.budget)
    dimension, given = axis_of(integers(axis, "axis"), len(data.shape)), list(integers(sizes, "sizes", MAX_INDICES))
    require(len(given) == len(operator.outputs), f"must have {len(given)} outputs, but got {len(operator.outputs)}")
    extent = data.shape[dimension]
    if given.count(-1) == 1:
        given[given.index(-1)] = extent - sum(given) - 1
    holds = min(given) >= 1 and sum(given) == extent
    require(holds, f"sizes must be at least 1 and add up to {extent}, but got {given}")
    return _parts(operator, data, dimension, given)


def axis_of(entries: Sequence[int], rank: int) -> int:
    """The dimension that one constant entry names, counted from the end where it is negative."""
    require(len(entries) == 1, f"axis must have 1 entry, but got {len(entries)}")
    return axis_in(entries[0], rank)


def _parts(operator: Operator, data: Tensor, axis: int, extents: Sequence[int]) -> Building:
    """A slice along `axis` for each output, of the lengths `extents`."""
    for output in operator.outputs:
        same_content(data, output)
    starts = list(accumulate(extents[:-1], initial=0))
    emitter = yield
    values: list[ir.Value] = []
    for output, start, extent in zip(operator.outputs, starts, extents, strict=True):
        emitter.enter(output.name)
        slices = [Slice(start, 1, extent) if i == axis else Slice(0, 1, n) for i, n in enumerate(data.shape)]
        values.append(emitter.reshape(take_slices(emitter, emitter.value(data), slices), output.shape))
    return values


def _selection(operator: Operator, data: Tensor, slices: Sequence[Slice], shape: Shape) -> Emission:
    same_content(data, operator.outputs[0])
    return lambda emitter: emitter.reshape(take_slices(emitter, emitter.value(data), slices), shape)


@imports("SLICE")
def _slice(operator: Operator) -> Emission:
    """A size of -1 reaches to the end."""
    data, begin, size = operands(operator, 3)
    firsts, counts, rank = integers(begin, "begin"), integers(size, "size"), len(data.shape)
    require(len(firsts) == len(counts) == rank, f"begin and size must have {rank} entries")
    slices: list[Slice] = []
    for first, count, extent in zip(firsts, counts, data.shape, strict=True):
        taken = extent - first if count == -1 else count
        holds = 0 <= first < extent and 1 <= taken <= extent - first
        require(holds, f"slice must lie in {extent} elements and not be empty, but takes {count} from {first} on")
        slices.append(Slice(first, 1, taken))
    return _selection(operator, data, slices, tuple(one.count for one in slices))


@imports("STRIDED_SLICE")
def _strided_slice(operator: Operator) -> Emission:
    data, begin, end, strides = operands(operator, 4)
    begins, ends, steps = integers(begin, "begin"), integers(end, "end"), integers(strides, "strides")
    selection = select(operator, data.shape, begins, ends, steps)
    return _selection(operator, data, selection.slices, selection.shape)


@imports("UNPACK")
def _unpack(operator: Operator) -> Building:
    number, axis = operator.options("Num", "Axis")
    (data,) = operands_of_many(operator, 1)
    dimension, count = axis_of([axis], len(data.shape)), len(operator.outputs)
    require(data.shape[dimension] == number, f"extent along axis must be {number}, but got {data.shape[dimension]}")
    require(count == number, f"must have {number} outputs, but got {count}")
    return _parts(operator, data, dimension, [1] * number)


# The part that STRIDED_SLICE takes: begins, ends and strides under five masks, as one index for each dimension.


@dataclass(frozen=True)
class Masks:
    """Bit i speaks of entry i: it has no begin or end, stands for all dimensions left, is new, or goes away."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int


@dataclass(frozen=True)
class Selection:
    """A slice of every dimension, and the shape of the result."""

    slices: tuple[Slice, ...]
    shape: Shape


def masks_of(operator: Operator) -> Masks:
    """The options of a STRIDED_SLICE node; `offset`, which makes ends relative to begins, is refused."""
    require(not operator.option("Offset"), "ends relative to begins are not supported")
    return Masks(*operator.options("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask"))


class _Kind(Enum):
    """The kind of an entry."""

    SLICE = 0
    NEW = 1
    REST = 2


def select(
    operator: Operator, shape: Shape, begins: Sequence[int], ends: Sequence[int], strides: Sequence[int]
) -> Selection:
    """Resolve the entries against `shape` as NumPy's basic indexing does (tf.strided_slice).

    Raises `UnsupportedError` where they do not fit.
    """
    masks = masks_of(operator)
    counts = {len(begins), len(ends), len(strides)}
    require(len(counts) == 1, f"begin, end and strides must have as many entries, but got {sorted(counts)}")
    kinds = [_kind(i, masks) for i in range(len(begins))]
    if _Kind.REST not in kinds:
        kinds.append(_Kind.REST)
    require(kinds.count(_Kind.REST) == 1, f"ellipsis must stand at most once, but got {kinds.count(_Kind.REST)}")
    left = len(shape) - kinds.count(_Kind.SLICE)
    require(left >= 0, f"entries must index at most {len(shape)} dimensions, but got {kinds.count(_Kind.SLICE)}")
    slices: list[Slice] = []
    result: list[int] = []
    for i, kind in enumerate(kinds):
        if kind is _Kind.NEW:
            result.append(1)
            continue
        if kind is _Kind.REST:
            require(left > 0 or i == len(begins), "ellipsis must stand for a dimension, as LiteRT takes one for it")
            found = [Slice(0, 1, extent) for extent in shape[len(slices) : len(slices) + left]]
        else:
            found = [_slice_of(shape[len(slices)], begins[i], ends[i], strides[i], i, masks)]
        check_indices(sum(one.count for one in found if one.step < 0), operator.budget)
        slices += found
        result += [one.count for one in found if not one.is_shrunk]
    return Selection(tuple(slices), tuple(result))


def _kind(position: int, masks: Masks) -> _Kind:
    if masks.ellipsis >> position & 1:
        return _Kind.REST
    return _Kind.NEW if masks.new_axis >> position & 1 else _Kind.SLICE


def _slice_of(extent: int, begin: int, end: int, step: int, position: int, masks: Masks) -> Slice:
    require(step != 0, "stride must not be 0")
    if masks.shrink >> position & 1:
        holds = -extent <= begin < extent
        require(holds, f"begin must be in [-{extent}, {extent}), but got {begin}")
        return Slice(begin % extent, 1, 1, is_shrunk=True)
    first = None if masks.begin >> position & 1 else begin
    last = None if masks.end >> position & 1 else end
    taken = range(extent)[slice(first, last, step)]
    require(len(taken) >= 1, f"result must not be empty, but takes [{begin}, {end}) of {extent}")
    return Slice(taken.start, step, len(taken))
