"""Matrix tiles of AMX: registers of at most 16 rows of 64 bytes, whose products are added to 16 x 16 sums.

``tdpbusd`` adds to ``sums[m][n]`` the products of unsigned bytes ``a[m][4 k + i]`` by signed bytes ``b[k][4 n + i]``
for all k and i, exactly modulo 2^32: b lies as the weights of ``vpdpbusd`` do, a row for each K group.  The tile
configuration gives each register its rows and bytes; every function that executes ldtilecfg executes tilerelease before
it returns, so that a context switch has no tile state to save.

Registers are asked for by number: where LLVM chooses them, a function has one configuration, and eight registers are
too few for tiles of several shapes.  The portable form of a register is memory on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qdialect.ir._mlir import arith, ir, memref, vector
from qdialect.lowering.instructions.dot_products import VPDPBUSD
from qdialect.lowering.instructions.instruction import Array
from qdialect.lowering.ir import building as b

ROWS, ROW_BYTES = 16, 64
"""Of a whole register."""
LOAD, STORE, CONFIGURE = "llvm.x86.tileloadd64", "llvm.x86.tilestored64", "llvm.x86.ldtilecfg"
LOAD_PAST = "llvm.x86.tileloaddt164"
"""A non-temporal load."""
TILE_ROWS = "qnn.rows"
"""Of an instruction on a tile: the rows that it loads, stores or adds to."""
_TAPS = 4
# The one palette that there is; where the bytes of a row and the rows of each register stand in a configuration.
_PALETTE, _ROW_BYTES_AT, _ROWS_AT, _CONFIGURATION = 1, 16, 48, 64


@dataclass(frozen=True)
class Shape:
    """Rows of a register, and elements of a row: of 32 bits, or bytes."""

    rows: int
    columns: int
    bits: int

    @property
    def row_bytes(self) -> int:
        return self.columns * self.bits // 8


@dataclass(frozen=True)
class TileMemory:
    """Rows of a tile in memory: from `indices` of a memref on, `stride` elements apart along the `row_axis`."""

    buffer: ir.Value
    indices: Sequence[ir.Value]
    row_axis: int
    stride: int


@dataclass(frozen=True)
class TileProduct:
    """An instruction that adds the product of two tiles to a third one."""

    name: str
    intrinsic: str
    features: frozenset[str]
    meaning: Callable[[Array, Array, Array], NDArray[np.int32]]
    """The sums int32[M, N] after it, by sums, uint8[M, 4 K] and int8[K, 4 N]."""

    def runs_on(self, features: frozenset[str]) -> bool:
        """Whether a CPU with `features` has it."""
        return self.features <= features


def _product(sums: Array, a: Array, weights: Array) -> NDArray[np.int32]:
    rows, columns = sums.shape
    matrix = weights.reshape(len(weights), columns, _TAPS).transpose(0, 2, 1).reshape(-1, columns)
    found = sums.astype(np.int64) + a.astype(np.int64).reshape(rows, -1) @ matrix.astype(np.int64)
    return found.astype(np.uint64).astype(np.uint32).view(np.int32)


TDPBUSD = TileProduct("tdpbusd", "llvm.x86.tdpbusd", frozenset({"amx-tile", "amx-int8"}), _product)
"""Unsigned by signed bytes."""


def configuration(shapes: Sequence[Shape]) -> NDArray[np.uint8]:
    """The operand of `ldtilecfg` that gives registers 0 to len(shapes) - 1 their shapes."""
    found = np.zeros(_CONFIGURATION, np.uint8)
    found[0] = _PALETTE
    for register, shape in enumerate(shapes):
        found[_ROW_BYTES_AT + 2 * register] = shape.row_bytes
        found[_ROWS_AT + register] = shape.rows
    return found


class TileRegisters(Protocol):
    """Emits instructions on the registers of one function, before the current insertion point."""

    def configure(self, shapes: Sequence[Shape]) -> None:
        """Give registers 0 to len(shapes) - 1 their shapes."""
        ...

    def zero(self, register: int) -> None:
        """Make all of a register's sums 0."""
        ...

    def load(self, register: int, memory: TileMemory, *, stays: bool = True) -> None:
        """Fill a register from memory; `stays` tells whether that is read again soon."""
        ...

    def multiply(self, sums: int, a: int, weights: int) -> None:
        """Add the product of two registers to a third one."""
        ...

    def store(self, register: int, memory: TileMemory) -> None:
        """Write a register to memory."""
        ...

    def release(self) -> None:
        """Give up all state."""
        ...


class AmxRegisters:
    """The registers of the CPU."""

    def __init__(self) -> None:
        self._shapes: Sequence[Shape] = ()

    def configure(self, shapes: Sequence[Shape]) -> None:
        """Load a configuration that stands among the module's constants."""
        self._shapes = shapes
        _call(CONFIGURE, _constant_bytes(configuration(shapes)))

    def zero(self, register: int) -> None:
        """`tilezero`."""
        _call("llvm.x86.tilezero", _number(register))

    def load(self, register: int, memory: TileMemory, *, stays: bool = True) -> None:
        """`tileloadd`, or `tileloaddt1`."""
        _call(LOAD if stays else LOAD_PAST, _number(register), *_address(memory), rows=self._shapes[register].rows)

    def multiply(self, sums: int, a: int, weights: int) -> None:
        """`tdpbusd`."""
        _call(TDPBUSD.intrinsic, *map(_number, (sums, a, weights)), rows=self._shapes[sums].rows)

    def store(self, register: int, memory: TileMemory) -> None:
        """`tilestored`."""
        _call(STORE, _number(register), *_address(memory), rows=self._shapes[register].rows)

    def release(self) -> None:
        """`tilerelease`."""
        _call("llvm.x86.tilerelease")


class PortableRegisters:
    """Memory on the stack of one function, whose body is `block`, in place of registers."""

    def __init__(self, block: ir.Block) -> None:
        self._block = block
        self._shapes: Sequence[Shape] = ()
        self._buffers: dict[tuple[int, Shape], ir.Value] = {}

    def configure(self, shapes: Sequence[Shape]) -> None:
        """Have memory of these shapes."""
        self._shapes = shapes

    def zero(self, register: int) -> None:
        shape, buffer = self._shapes[register], self._buffer(register)
        zeros = b.splat(b.vector_type(shape.columns, shape.bits), 0)
        with b.loop(0, shape.rows) as row:
            vector.store(zeros, buffer, [row, b.index(0)])

    def load(self, register: int, memory: TileMemory, *, stays: bool = True) -> None:
        del stays
        shape = self._shapes[register]
        with b.loop(0, shape.rows) as row:
            loaded = b.load(shape.columns, memory.buffer, _row(memory, row))
            vector.store(loaded, self._buffer(register), [row, b.index(0)])

    def multiply(self, sums: int, a: int, weights: int) -> None:
        """The product, a row of the sums and a K group at a time."""
        total, data, matrix = map(self._buffer, (sums, a, weights))
        columns, zero = self._shapes[sums].columns, b.index(0)
        with b.loop(0, self._shapes[sums].rows) as row, b.loop(0, self._shapes[weights].rows) as k_group:
            taps = b.load(_TAPS, data, [row, arith.muli(k_group, b.index(_TAPS))])
            word = b.extract_lane(b.bitcast(b.vector_type(1, 32), taps), 0)
            spread = vector.broadcast(b.vector_type(columns, 32), word)
            spread = b.bitcast(b.vector_type(columns * _TAPS, 8), spread)
            own = b.load(columns * _TAPS, matrix, [k_group, zero])
            dot = VPDPBUSD[columns].portable(b.load(columns, total, [row, zero]), spread, own)
            vector.store(dot, total, [row, zero])

    def store(self, register: int, memory: TileMemory) -> None:
        shape = self._shapes[register]
        with b.loop(0, shape.rows) as row:
            loaded = b.load(shape.columns, self._buffer(register), [row, b.index(0)])
            vector.store(loaded, memory.buffer, _row(memory, row))

    def release(self) -> None:
        """Nothing is left: the stack goes with the function."""

    def _buffer(self, register: int) -> ir.Value:
        shape = self._shapes[register]
        if (register, shape) not in self._buffers:
            type_ = ir.MemRefType.get([shape.rows, shape.columns], ir.IntegerType.get_signless(shape.bits))
            with ir.InsertionPoint.at_block_begin(self._block):
                self._buffers[register, shape] = memref.alloca(type_, [], [])
        return self._buffers[register, shape]


def _call(name: str, *operands: ir.Value, rows: int | None = None) -> None:
    attributes: dict[str, ir.Attribute] = {
        "intrin": ir.StringAttr.get(name),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    if rows is not None:
        attributes[TILE_ROWS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), rows)
    ir.Operation.create("llvm.call_intrinsic", operands=list(operands), attributes=attributes)


def _number(register: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(8), register)


def _address(memory: TileMemory) -> tuple[ir.Value, ir.Value]:
    """Where a tile begins in memory, and the bytes from row to row."""
    type_ = ir.MemRefType(memory.buffer.type)
    size, index = b.integer_bits(type_.element_type) // 8, ir.IndexType.get()
    strides, _ = type_.get_strides_and_offset()
    _, offset, *_ = memref.extract_strided_metadata(memory.buffer)
    for step, stride in zip(memory.indices, strides, strict=True):
        offset = arith.addi(offset, arith.muli(step, b.index(stride)))
    start = ir.Operation.create("memref.extract_aligned_pointer_as_index", [index], [memory.buffer]).result
    i64 = ir.IntegerType.get_signless(64)
    at = arith.index_cast(i64, arith.addi(start, arith.muli(offset, b.index(size))))
    pointer = ir.Operation.create("llvm.inttoptr", [ir.Type.parse("!llvm.ptr")], [at]).result
    return pointer, arith.constant(i64, memory.stride * size)


def _constant_bytes(values: NDArray[np.uint8]) -> ir.Value:
    """The address of bytes among the module's constants, which stand there once."""
    pointer, name = ir.Type.parse("!llvm.ptr"), f"tiles_{values.tobytes().hex().rstrip('0')}"
    op = ir.InsertionPoint.current.ref_operation
    while op is not None and op.name != "builtin.module":
        op = op.parent.operation if op.parent else None
    assert op is not None, "functions are in a module"
    body = op.regions[0].blocks[0]
    known = [ir.StringAttr(one.attributes["sym_name"]).value for one in body.operations]
    if name not in known:
        array = f"!llvm.array<{len(values)} x i8>"
        value = f'dense<"0x{values.tobytes().hex().upper()}"> : tensor<{len(values)}xi8>'
        ir.InsertionPoint.at_block_begin(body).insert(
            ir.Operation.parse(f"llvm.mlir.global private constant @{name}({value}) {{alignment = 64 : i64}} : {array}")
        )
    attributes = {"global_name": ir.FlatSymbolRefAttr.get(name)}
    return ir.Operation.create("llvm.mlir.addressof", [pointer], attributes=attributes).result


def _row(memory: TileMemory, row: ir.Value) -> list[ir.Value]:
    indices = list(memory.indices)
    indices[memory.row_axis] = arith.addi(indices[memory.row_axis], row)
    return indices
