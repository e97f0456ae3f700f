"""SPLIT, SPLIT_V, SLICE, STRIDED_SLICE and UNPACK: parts of a tensor, each a slice of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import tflite

from qdialect._mlir import ir
from qdialect.frontends.common import require
from qdialect.frontends.slices import MAX_INDICES, Slice, check_indices, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Shape, Tensor
from qdialect.frontends.tflite.operators.checks import integers, operands, operands_of_many, same_content
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.reader import read_options
from qdialect.frontends.tflite.strided_slice import select


@imports("SPLIT")
def _split(operator: Operator) -> Emission:
    count = read_options(operator, tflite.SplitOptions, lambda options: options.NumSplits())
    axis, data = operands_of_many(operator, 2)
    dimension = axis_of(integers(axis, "axis"), len(data.shape))
    require(count == len(operator.outputs), f"must have {count} outputs, but got {len(operator.outputs)}")
    extent = data.shape[dimension]
    require(extent % count == 0, f"extent must be a multiple of {count}, but got {extent}")
    return _parts(operator, data, dimension, [extent // count] * count)


@imports("SPLIT_V")
def _split_v(operator: Operator) -> Emission:
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
    require(-rank <= entries[0] < rank, f"axis must be in [-{rank}, {rank}), but got {entries[0]}")
    return entries[0] % rank


def _parts(operator: Operator, data: Tensor, axis: int, extents: Sequence[int]) -> Emission:
    """A slice along `axis` for each output, as long as `extents` says."""
    for output in operator.outputs:
        same_content(data, output)
    starts = list(accumulate(extents[:-1], initial=0))

    def emit(emitter: Emitter) -> list[ir.Value]:
        values: list[ir.Value] = []
        for output, start, extent in zip(operator.outputs, starts, extents, strict=True):
            emitter.enter(output.name)
            slices = [Slice(start, 1, extent) if i == axis else Slice(0, 1, n) for i, n in enumerate(data.shape)]
            values.append(emitter.reshape(take_slices(emitter, emitter.value(data), slices), output.shape))
        return values

    return emit


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
def _unpack(operator: Operator) -> Emission:
    number, axis = read_options(operator, tflite.UnpackOptions, lambda options: (options.Num(), options.Axis()))
    (data,) = operands_of_many(operator, 1)
    dimension, count = axis_of([axis], len(data.shape)), len(operator.outputs)
    require(data.shape[dimension] == number, f"extent along axis must be {number}, but got {data.shape[dimension]}")
    require(count == number, f"must have {number} outputs, but got {count}")
    return _parts(operator, data, dimension, [1] * number)
