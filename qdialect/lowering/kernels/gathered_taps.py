"""Taps that fill no K group, put together from all rows of a kernel before the products.

A row of c contiguous taps is ceil(c / 4) K groups.  Where c is no multiple of 4, the last of them has r = c mod 4 taps,
and R rows have as many of these: 3x3 taps of 3 channels are three rows of 9, so nine K groups for 27 taps.  A kernel
of its own gathers the R r taps of each pixel into ceil(R r / 4) K groups, and the rows end with their last whole one:

    R ceil(c / 4)  ->  R floor(c / 4) + ceil(R r / 4)        9 -> 7 of 3x3x3, 42 -> 37 of 7x7x3

A vector of 16 pixels takes for each gathered tap two loads, a permute, an extension, a shift and an `or`; a K group
that is saved is a dot product for each pixel and vector of channels, and half of one for half of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernels.contraction_micro_kernel import SumOfProducts
from qdialect.lowering.kernels.elementwise import MapOperand, emit_map, together
from qdialect.lowering.kernels.packed_weights import GatheredTaps
from qdialect.lowering.kernels.reduction_axes import ReductionAxes
from qdialect.lowering.kernels.weight_remainder import RemainderGroup, remainder_groups
from qdialect.lowering.memory.storage import Storage
from qdialect.lowering.memory.strides import row_major
from qdialect.lowering.memory.views import Axis
from qdialect.lowering.program import BufferSlot, Kernel, Program

_K_GROUP = 4
_PIXELS = 16
"""Pixels that are gathered at a time."""
_STEP = 8
"""Bytes from pixel to pixel at most: 16 pixels then lie in two vectors."""
_INSTRUCTIONS = 6
"""Of each gathered tap, for a vector of pixels."""
_LANES = 16


def gather_taps(program: Program, op: SumOfProducts, axes: Sequence[Axis]) -> GatheredTaps | None:
    """Append the kernel call that gathers the taps of the pixels along `axes`; None where that saves nothing."""
    groups = op.channel_groups()
    if not program.strategy.gathers_bytes or op.data.storage.element != "i8":
        return None
    if len(groups) > 1 or groups[0].count > 1:
        return None
    parts, reduction = op.tap_parts(groups[0]), op.reduction_axes(groups[0])
    if not parts or not _is_cheaper(reduction, axes, groups[0].lanes) or not 0 < axes[-1].strides[0] <= _STEP:
        return None
    per_row = reduction.extents[-1] % _K_GROUP
    pixels = math.prod(axis.size for axis in axes)
    offsets = _offsets(op, reduction, per_row)
    length = _K_GROUP * pixels * -(-len(offsets) // _K_GROUP)
    slot = program.buffer(Storage((1, 1, 1, length), "i8", length))
    _emit(program, op, axes, offsets, slot)
    k_groups = [found for part in parts for found in _k_groups(reduction.ordered(part)[..., -per_row:], pixels)]
    return GatheredTaps(slot, per_row, tuple(k_groups))


def _k_groups(ends: NDArray[np.int8], pixels: int) -> list[RemainderGroup]:
    """The K groups of the last taps of all rows, [channels, rows..., taps], that are not zero."""
    found = remainder_groups(ends.reshape(ends.shape[0], -1), ())
    return [replace(k_group, offset=k_group.offset * pixels) for k_group in found]


def _is_cheaper(reduction: ReductionAxes, axes: Sequence[Axis], channels: int) -> bool:
    """Whether the dot products that are saved are more than the instructions that gather."""
    rows, (whole, rest) = math.prod(reduction.sizes), divmod(reduction.extents[-1], _K_GROUP)
    if not whole or not rest:
        return False
    saved = (rows - -(-rows * rest // _K_GROUP)) * axes[-1].size * channels / _LANES
    return saved > _INSTRUCTIONS * rows * rest * -(-axes[-1].size // _PIXELS)


def _offsets(op: SumOfProducts, reduction: ReductionAxes, per_row: int) -> list[int]:
    """Where each gathered tap of the first pixel lies in the data."""
    start = op.start(0) + op.channel_groups()[0].start_in + reduction.extents[-1] - per_row
    rows = [sum(map(int.__mul__, row, reduction.strides)) for row in np.ndindex(*reduction.sizes)]
    return [start + row + tap for row in rows for tap in range(per_row)]


def _emit(program: Program, op: SumOfProducts, axes: Sequence[Axis], offsets: Sequence[int], slot: BufferSlot) -> None:
    kernel = Kernel(program)
    k_groups = slot.storage.length // _K_GROUP
    numbers = replace(slot, storage=Storage((1, 1, 1, k_groups), "i32", k_groups))
    data, gathered = kernel.slot("data", op.data), kernel.slot("gathered", numbers)
    shape = [axis.size for axis in axes]
    steps = tuple(axis.strides[0] for axis in axes)
    for index, first in enumerate(range(0, len(offsets), _K_GROUP)):
        sources = [MapOperand(data, steps, offset) for offset in offsets[first : first + _K_GROUP]]
        target = MapOperand(gathered, row_major(shape), index * math.prod(shape))
        emit_map(kernel, shape, sources, target, together, _PIXELS, step=_STEP)
    program.call(kernel, "gathered taps")
