"""Prefetches: loads whose values nobody waits for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect._mlir import arith, ir
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.memory import Read
from qdialect.target.machine import Machine

FIRST_LEVEL, SECOND_LEVEL = 3, 2
"""Localities of `memref.prefetch`: the cache that the line is fetched to."""
LINE = 64
"""Bytes of a cache line."""
FEW_STEPS = 32
"""Of a loop that is at its end before anything arrives."""


def prefetch(buffer: ir.Value, indices: Sequence[ir.Value], level: int) -> None:
    """Prefetch the cache line with the element at `indices` of a memref, before the current insertion point."""
    hint = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), level)
    attributes = {"isWrite": ir.BoolAttr.get(False), "localityHint": hint, "isDataCache": ir.BoolAttr.get(True)}
    ir.Operation.create("memref.prefetch", operands=[buffer, *indices], attributes=attributes)


def fetch_near(weights: Read, size: int, inner: int, machine: Machine) -> None:
    """Prefetch the step of a loop over weights that lies some lines further on, from the second level to the first.

    A step reads the `inner` dimensions of the weights, of `size` bytes each; the outermost of these counts its vectors.
    Weights of which half of the first level holds all stay there.
    """
    buffer, distance = b.shape_of(weights.buffer), machine.near_fetch_distance
    is_short = size * math.prod(buffer) <= machine.l1_bytes // 2
    if not distance or is_short or len(weights.shape) < inner or len(weights.indices) == inner:
        return
    vectors, line = weights.shape[-inner], size * math.prod(weights.shape[1 - inner :])
    indices = list(weights.indices)
    steps = -(-distance // (vectors * line))
    indices[-inner - 1] = arith.addi(indices[-inner - 1], b.index(steps))
    for vector in range(0, vectors, max(1, LINE // line)):
        indices[-inner] = b.index(vector)
        prefetch(weights.buffer, indices, FIRST_LEVEL)


def tile_axis(data: Read, inner: int) -> int | None:
    """The dimension along which tiles follow each other; None where there is one tile, or where steps are too few.

    The `inner` dimensions of the data are within its rows: steps of the loop, and taps of a step.
    """
    shape = b.shape_of(data.buffer)
    if len(data.shape) <= inner or shape[-inner] < FEW_STEPS:
        return None
    in_loop = isinstance(data.indices[-inner].owner, ir.Block)
    outer = len(data.indices) - len(data.shape)
    axis = next((outer + i for i, size in enumerate(data.shape[:-inner]) if size > 1), None)
    if axis is None or not in_loop:
        return None
    return axis if shape[axis] > tile_size(data, axis) else None


def tile_size(data: Read, axis: int) -> int:
    """Rows that a read takes along `axis` of its buffer."""
    return data.shape[axis - len(data.indices) + len(data.shape)]
