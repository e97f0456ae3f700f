"""What STRIDED_SLICE takes: begins, ends and strides under five masks, as one index for each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import tflite

from qdialect.frontends.common import require
from qdialect.frontends.slices import Slice, check_indices
from qdialect.frontends.tflite.model import Operator, Shape
from qdialect.frontends.tflite.reader import read_options


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
    masks, offset = read_options(
        operator,
        tflite.StridedSliceOptions,
        lambda o: (
            Masks(o.BeginMask(), o.EndMask(), o.EllipsisMask(), o.NewAxisMask(), o.ShrinkAxisMask()),
            o.Offset(),
        ),
    )
    require(not offset, "ends relative to begins are not supported")
    return masks


class _Kind(Enum):
    """What an entry is."""

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
