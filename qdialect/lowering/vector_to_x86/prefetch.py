"""Prefetches of the operands that dot products and matrix tiles multiply next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect.ir._mlir import arith, ir
from qdialect.lowering.instructions.tiles import TileMemory
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.flat_address import Read, read_of
from qdialect.lowering.ir.functions import bounds, ops_named
from qdialect.targets.machine import Machine

# Prefetches for dot products.

L1, L2 = 3, 2
"""Localities of `memref.prefetch`: the line is fetched to L1, or to L2."""
LINE = 64
"""Bytes of a cache line."""
INNER, VECTOR = 2, 3
"""Dimensions of the data inside its rows, steps of the loop and taps of a step; and the dimension of the weights, from
the end, that counts a step's vectors, before lanes and taps."""
_F32_BYTES, _FEW_ROWS = 4, 6
FEW_STEPS = 32
"""A loop of at most this many steps ends before its prefetches arrive."""


def prefetch(buffer: ir.Value, indices: Sequence[ir.Value], level: int) -> None:
    """Prefetch the cache line with the element at `indices` of a memref, before the current insertion point."""
    hint = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), level)
    attributes = {"isWrite": ir.BoolAttr.get(False), "localityHint": hint, "isDataCache": ir.BoolAttr.get(True)}
    ir.Operation.create("memref.prefetch", operands=[buffer, *indices], attributes=attributes)


def prefetch_to_l1(weights: Read, size: int, inner: int, machine: Machine) -> None:
    """Prefetch weights from L2 into L1, some lines ahead of the step of the loop that reads them.

    A step reads the `inner` dimensions of the weights, of `size` bytes each; the outermost of these counts its vectors.
    Weights that fit in half of L1 stay there and are not prefetched.
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
        prefetch(weights.buffer, indices, L1)


def fetch_weights(weights: Read, size: int, machine: Machine) -> None:
    """Prefetch ahead in a stream of weights of `size` bytes each that does not fit in L1.

    All tiles of pixels share the prefetches of the next column's weights where one tile cannot wait for all of them.
    """
    if (
        len(weights.shape) < VECTOR
        or len(weights.indices) == VECTOR
        or size * math.prod(b.shape_of(weights.buffer)) < machine.fetched_stream
    ):
        return
    vectors = weights.shape[-VECTOR]
    line = size * math.prod(weights.shape[1 - VECTOR :])
    indices = list(weights.indices)
    step = indices[-VECTOR - 1]
    part = _part_of_tile(weights) if machine.is_third_level_slow else None
    if part is not None:
        indices[0] = arith.addi(indices[0], b.index(1))
        indices[-VECTOR - 1] = part
    else:
        indices[-VECTOR - 1] = arith.addi(step, b.index(machine.fetch_distance // (vectors * line)))
    for vector_index in range(vectors):
        indices[-VECTOR] = b.index(vector_index)
        prefetch(weights.buffer, indices, L2)


def _part_of_tile(weights: Read) -> ir.Value | None:
    """The step of the next column to prefetch in a step of a tile of pixels; None where pixels are not the inner loop.

    Of n tiles each takes an n-th of the steps, and a few of the next one's: a shift stands for the division by n.
    """
    step = weights.indices[-VECTOR - 1]
    loop = step.owner.owner.operation if isinstance(step.owner, ir.Block) else None
    tiles = _pixel_loop(loop, weights.indices) if loop is not None else None
    first, stride, count = (tiles and bounds(tiles)) or (0, 0, 0)
    if tiles is None or first or count < 2:
        return None
    steps = b.shape_of(weights.buffer)[-VECTOR - 1]
    tile = arith.divui(_index_of(tiles), b.index(stride))
    start = arith.muli(tile, b.index(-(-steps // count)))
    return arith.addi(start, arith.shrui(step, b.index(count.bit_length() - 1)))


def prefetch_float_weights(module: ir.Module, machine: Machine) -> None:
    """Prefetch weights of f32 products in tiles of many rows, in place.

    The hardware fetches no further than a page, and nothing while other tiles of rows meet the weights that are there:
    12 rows by 4096 x 4096 take half the time on a Zen 5.  Few rows are over so soon that loads alone keep memory busy.
    """
    for op in ops_named(module, "math.fma"):
        data, weights = (_read(value) for value in list(op.operands)[:2])
        is_tile = data is not None and data.shape[-INNER:] == [1] * INNER and math.prod(data.shape) > _FEW_ROWS
        if is_tile and weights is not None and weights.shape[-1] == 1:
            with ir.InsertionPoint(op), op.location:
                fetch_weights(weights, _F32_BYTES, machine)


def _read(value: ir.Value) -> Read | None:
    """The read of a memref that is spread over the tile `value`."""
    op = b.defining(b.looked_through(value, "vector.broadcast", "vector.shape_cast"), "vector.transfer_read")
    return read_of(op) if op and isinstance(op.operands[0].type, ir.MemRefType) else None


def tile_axis(data: Read, inner: int) -> int | None:
    """The dimension along which tiles follow each other; None if there is only one tile, or too few steps.

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
    """The number of rows that a read takes along `axis` of its buffer."""
    return data.shape[axis - len(data.indices) + len(data.shape)]


# Prefetches of the weights that matrix tiles multiply.
#
# A tile is 16 rows, and the tile of the next step of the loop over K groups follows it in memory: its rows are
# prefetched into L1, because products take less time than the latency of L2.
#
#     for column of channels:             weights[column]
#       for block of pixels:
#         for step:                       tile at weights[column, step]
#
# If there is only one block of pixels, all weights come from L3 or memory, with a latency of some 256 cycles: four
# steps of four products.
#
# If blocks of pixels are the inner loop, as above, a column's weights stay in cache, and nothing is prefetched into L1.
# But the next column's weights would all come from L3 or memory at once. So each of n blocks prefetches its part of
# them into L2, one n-th of the rows of every tile.
#
# If columns are the inner loop, each block reads all weights again. All blocks but the first find them in L2 soon
# enough if they stay there: with many blocks, prefetches would only occupy the fill buffers that loads wait for.

_MANY_BLOCKS = 16
"""Number of blocks of pixels that read the same weights, from which on they are not prefetched."""
_FAR_STEPS = 4
"""Prefetch distance in steps, for weights from L3 or memory."""


def prefetch_weights(memory: TileMemory, rows: int, op: ir.Operation, stay: bool) -> None:
    """Prefetch the weights after the tile of `rows` at `memory`, which `op` multiplies, before the insertion point.

    `stay` tells whether all weights of the kernel stay in L2, together with all other data that passes through it.
    """
    loop, all_blocks = _pixel_loop(op, memory.indices), _blocks(op, memory.indices)
    first, step, blocks = (loop and bounds(loop)) or (0, 0, 0)
    if loop is not None and blocks > 1 and (first, step) == (0, 1):
        _fetch_next_column(memory, rows, _index_of(loop), blocks)
    elif loop is not None or not stay or all_blocks < _MANY_BLOCKS:
        steps = _FAR_STEPS if all_blocks == 1 else 1
        for row in range(steps * rows, (steps + 1) * rows):
            _fetch_row(memory, memory.indices, b.index(row), L1)


def has_inner_columns(op: ir.Operation, indices: Sequence[ir.Value]) -> bool:
    """Whether the columns of the weights at `indices` are the inner loop: a block of pixels meets all of them."""
    return _pixel_loop(op, indices) is None


def _fetch_next_column(memory: TileMemory, rows: int, block: ir.Value, blocks: int) -> None:
    """Prefetch the part of the next column's tile that falls to the `block` with this number."""
    part, (column, *others) = -(-rows // blocks), memory.indices
    start = arith.muli(block, b.index(part))
    following = [arith.addi(column, b.index(1)), *others]
    for row in range(part):
        _fetch_row(memory, following, arith.addi(start, b.index(row)), L2)


def _fetch_row(memory: TileMemory, indices: Sequence[ir.Value], row: ir.Value, level: int) -> None:
    moved = list(indices)
    moved[memory.row_axis] = arith.addi(moved[memory.row_axis], row)
    prefetch(memory.buffer, moved, level)


def _pixel_loop(op: ir.Operation, indices: Sequence[ir.Value]) -> ir.Operation | None:
    """The innermost loop around `op`, inside the loop over the first of `indices`, whose index is not in `indices`."""
    found, loop = None, _loop_around(op)
    while loop is not None and _index_of(loop) != indices[0]:
        if found is None and _index_of(loop) not in indices:
            found = loop
        loop = _loop_around(loop)
    return found if loop is not None else None


def _blocks(op: ir.Operation, indices: Sequence[ir.Value]) -> int:
    """How many iterations of the loops around `op` read the same weights; one if that is not known."""
    found, loop = 1, _loop_around(op)
    while loop is not None:
        extent = bounds(loop)
        found *= extent[2] if extent and _index_of(loop) not in indices else 1
        loop = _loop_around(loop)
    return found


def _loop_around(op: ir.Operation) -> ir.Operation | None:
    """The innermost `scf.for` around `op`."""
    parent = op.parent
    while parent is not None and parent.name != "scf.for":
        parent = parent.operation.parent
    return None if parent is None else parent.operation


def _index_of(loop: ir.Operation) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[0]
