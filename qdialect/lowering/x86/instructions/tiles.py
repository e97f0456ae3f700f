"""Matrix tiles of AMX: at most 16 rows of 64 bytes, whose products are added to 16 x 16 sums.

``tdpbusd`` adds to ``sums[m][n]`` the products of unsigned bytes ``a[m][4 k + i]`` by signed bytes ``b[k][4 n + i]`` for
all k and i, exactly modulo 2^32: b lies as the weights of ``vpdpbusd`` do, a row for each K group.  Shapes are those of
the operands: rows of the sums and of a, columns of the sums and of b, and the K groups that a and b share.

LLVM gives tiles their registers, writes their shapes into the tile configuration at the start of a function and clears
it (``tilerelease``) at the end, so that no state is left that a switch of threads would have to save.

The portable form of a tile is a vector of two dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import arith, ir, scf, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instructions.dot_products import VPDPBUSD
from qdialect.lowering.x86.instructions.instruction import Array, is_portable

_TAPS = 4
_FEATURES = frozenset({"amx-tile", "amx-int8"})


@dataclass(frozen=True)
class TileMemory:
    """Rows of a tile in memory: from `indices` of a memref on, `stride` elements apart; innermost are the columns."""

    buffer: ir.Value
    indices: Sequence[ir.Value]
    row_axis: int
    """The dimension of the memref along which rows follow each other."""
    stride: int


@dataclass(frozen=True)
class TileProduct:
    """An instruction that adds the product of two tiles to a third one."""

    name: str
    features: frozenset[str]
    meaning: Callable[[Array, Array, Array], Array]
    """The sums int32[M, N] after it, by sums, uint8[M, 4 K] and int8[K, 4 N]."""

    def runs_on(self, features: frozenset[str]) -> bool:
        """Whether a CPU with `features` has it."""
        return self.features <= features

    def emit(self, sums: ir.Value, a: ir.Value, weights: ir.Value) -> ir.Value:
        """The sums after it, before the current insertion point."""
        if is_portable():
            return _portable_product(sums, a, weights)
        attributes = {"isZextLhs": ir.UnitAttr.get()}
        op = ir.Operation.create("x86.amx.tile_muli", [sums.type], [a, weights, sums], attributes)
        return op.result


def _product(sums: Array, a: Array, weights: Array) -> NDArray[np.int32]:
    rows, columns = sums.shape
    matrix = weights.reshape(len(weights), columns, _TAPS).transpose(0, 2, 1).reshape(-1, columns)
    found = sums.astype(np.int64) + a.astype(np.int64).reshape(rows, -1) @ matrix.astype(np.int64)
    return found.astype(np.uint64).astype(np.uint32).view(np.int32)


TDPBUSD = TileProduct("tdpbusd", _FEATURES, _product)
"""Unsigned by signed bytes."""


def tile_zero(rows: int, columns: int) -> ir.Value:
    """Sums that are 0."""
    type_ = _type(rows, columns, 32)
    if isinstance(type_, ir.VectorType):
        return b.splat(type_, 0)
    return ir.Operation.create("x86.amx.tile_zero", [type_]).result


def tile_load(memory: TileMemory, rows: int, columns: int) -> ir.Value:
    """A tile of bytes from memory."""
    type_ = _type(rows, columns, 8)
    if isinstance(type_, ir.VectorType):
        return _portable_load(memory, type_)
    operands = [memory.buffer, *memory.indices, b.index(memory.stride)]
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(memory.indices), 1])}
    return ir.Operation.create("x86.amx.tile_load", [type_], operands, segments).result


def tile_store(memory: TileMemory, tile: ir.Value) -> None:
    """Write the sums of a tile to memory."""
    if isinstance(tile.type, ir.VectorType):
        return _portable_store(memory, tile)
    operands = [memory.buffer, *memory.indices, tile, b.index(memory.stride)]
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(memory.indices), 1, 1])}
    ir.Operation.create("x86.amx.tile_store", [], operands, segments)
    return None


def _type(rows: int, columns: int, bits: int) -> ir.Type:
    element = ir.IntegerType.get_signless(bits)
    if is_portable():
        return ir.VectorType.get([rows, columns], element)
    return ir.Type.parse(f"!x86.amx.tile<{rows}x{columns}xi{bits}>")


def _row(memory: TileMemory, row: int) -> list[ir.Value]:
    steps = [0] * len(memory.indices)
    steps[memory.row_axis] = row
    return b.shifted(memory.indices, steps)


def _portable_load(memory: TileMemory, type_: ir.VectorType) -> ir.Value:
    rows, columns = type_.shape
    tile = b.splat(type_, 0)
    for row in range(rows):
        tile = b.insert(b.load(columns, memory.buffer, _row(memory, row)), tile, [row])
    return tile


def _portable_store(memory: TileMemory, tile: ir.Value) -> None:
    for row in range(b.shape_of(tile)[0]):
        vector.store(b.extract(tile, [row]), memory.buffer, _row(memory, row))


def _portable_product(sums: ir.Value, a: ir.Value, weights: ir.Value) -> ir.Value:
    """The product by loops over memory on the stack: a row of the sums and a K group at a time."""
    (rows, columns), k_groups = b.shape_of(sums), b.shape_of(weights)[0]
    total, data, matrix = (_on_stack(tile) for tile in (sums, a, weights))
    zero = b.index(0)
    with _loop(rows) as row, _loop(k_groups) as k_group:
        taps = b.load(_TAPS, data, [row, arith.muli(k_group, b.index(_TAPS))])
        word = b.extract_lane(vector.bitcast(b.vector_type(1, 32), taps), 0)
        spread = vector.broadcast(b.vector_type(columns, 32), word)
        spread = vector.bitcast(b.vector_type(columns * _TAPS, 8), spread)
        own = b.load(columns * _TAPS, matrix, [k_group, zero])
        dot = VPDPBUSD[columns].emit(b.load(columns, total, [row, zero]), spread, own)
        vector.store(dot, total, [row, zero])
    return _portable_load(TileMemory(total, [zero, zero], 0, columns), ir.VectorType(sums.type))


def _on_stack(tile: ir.Value) -> ir.Value:
    """A copy of a tile in memory of its function."""
    type_ = ir.VectorType(tile.type)
    memref = ir.MemRefType.get(type_.shape, type_.element_type)
    block = _function_block()
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
    with ir.InsertionPoint.at_block_begin(block):
        buffer = ir.Operation.create("memref.alloca", [memref], [], segments).result
    zero = b.index(0)
    _portable_store(TileMemory(buffer, [zero, zero], 0, type_.shape[1]), tile)
    return buffer


def _function_block() -> ir.Block:
    """The block of the function around the current insertion point."""
    op = ir.InsertionPoint.current.ref_operation
    while op is not None and op.name != "func.func":
        op = op.parent.operation if op.parent else None
    assert op is not None, "instructions are emitted inside a function"
    return op.regions[0].blocks[0]


@contextmanager
def _loop(count: int) -> Generator[ir.Value]:
    """A loop around what is emitted inside the `with`; gives its index."""
    loop = scf.ForOp(b.index(0), b.index(count), b.index(1))
    with ir.InsertionPoint(loop.body):
        yield loop.induction_variable
        scf.YieldOp([])
