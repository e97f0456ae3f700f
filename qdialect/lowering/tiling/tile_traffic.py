"""How many lines loads of matrix tiles fetch from behind the first-level cache, from code at the phase `x86`.

A load of a tile is a line for each of its rows, at addresses that the loops around it move by a fixed distance.  Of a
load inside of the loops L_1, ..., L_n, the outermost first, n_k trips each, u_k are the distinct lines of one iteration
of L_k.  What an iteration leaves in the cache the next one finds there, if the lines of all loads in an iteration
together fit; else it finds nothing:

  missed(L_k) = distinct lines of all trips of L_k     where the loads of one iteration fit
                n_k * missed(L_{k+1})                  where they do not

Loads of what need not stay there find nothing, and take nobody's place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from qdialect._mlir import ir, walk
from qdialect.lowering.ir.loops import bounds, constant, loop_of
from qdialect.lowering.ir.views import behind, is_view
from qdialect.lowering.x86.instructions.tiles import LOAD, LOAD_PAST, TILE_ROWS

_LINE = 64
# Positions that are listed; a load that has more covers its buffer.
_MOST_POSITIONS = 1 << 18
_CASTS = ("arith.index_cast", "llvm.inttoptr")


@dataclass(frozen=True)
class _Loop:
    """A loop around a load, and the bytes by which an iteration moves it."""

    op: ir.Operation
    trips: int
    step: int


@dataclass(frozen=True)
class TileLoad:
    """A load of a tile from a buffer of a kernel."""

    argument: int
    """The number of the kernel's argument."""
    size: int
    """Bytes of the buffer."""
    start: int
    rows: int
    stride: int
    """Bytes from row to row."""
    stays: bool
    """Whether its lines stay in the cache."""
    loops: tuple[_Loop, ...]
    """The outermost first."""

    @property
    def count(self) -> int:
        """Rows that are loaded altogether."""
        return self.rows * math.prod(loop.trips for loop in self.loops)

    def lines(self, outside: int) -> int:
        """Distinct lines of all iterations of the loops but those `outside`, which are the outermost."""
        found = np.unique((self.start + self.stride * np.arange(self.rows)) // _LINE * _LINE)
        most = -(-self.size // _LINE)
        for loop in self.loops[outside:]:
            if loop.step and len(found) * loop.trips > _MOST_POSITIONS:
                return most
            if loop.step:
                found = np.unique(found[:, None] + loop.step * np.arange(loop.trips))
        return min(len(np.unique(found // _LINE)), most)

    def is_inside(self, loop: ir.Operation) -> int:
        """How many of its loops end with `loop`; 0 where it is elsewhere."""
        return next((depth for depth, own in enumerate(self.loops, start=1) if own.op == loop), 0)


@dataclass(frozen=True)
class _Address:
    """Bytes from the start of a buffer, if it is known which."""

    constant: int = 0
    buffer: ir.BlockArgument | None = None
    steps: Mapping[ir.Operation, int] = field(default_factory=dict[ir.Operation, int])
    """By loop, what an increment of its index adds."""

    def plus(self, other: _Address) -> _Address:
        steps = {loop: self.steps.get(loop, 0) + other.steps.get(loop, 0) for loop in (*self.steps, *other.steps)}
        return _Address(self.constant + other.constant, self.buffer or other.buffer, steps)

    def times(self, factor: int) -> _Address:
        return _Address(self.constant * factor, self.buffer, {loop: s * factor for loop, s in self.steps.items()})


def tile_loads(function: ir.Operation) -> list[TileLoad]:
    """The loads of tiles of a kernel, from buffers that are known."""
    found: list[TileLoad] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.call_intrinsic" and ir.StringAttr(op.attributes["intrin"]).value in (LOAD, LOAD_PAST):
            load = _tile_load(op)
            found.extend([load] if load else [])
        return ir.WalkResult.ADVANCE

    walk(function, visit)
    return found


def missed_lines(loads: Sequence[TileLoad], capacity: int) -> int:
    """The lines that `loads` do not find in a cache of `capacity` bytes."""
    staying = [load for load in loads if load.stays]
    total = sum(load.count for load in loads if not load.stays)
    for load in staying:
        missed = load.lines(len(load.loops))
        for depth in range(len(load.loops), 0, -1):
            loop = load.loops[depth - 1]
            together = sum(other.lines(other.is_inside(loop.op)) for other in staying if other.is_inside(loop.op))
            missed = load.lines(depth - 1) if _LINE * together <= capacity else loop.trips * missed
        total += missed
    return total


def _tile_load(op: ir.Operation) -> TileLoad | None:
    address, stride = _address(op.operands[1]), constant(op.operands[2])
    if address.buffer is None or stride is None:
        return None
    loops: list[_Loop] = []
    around = op.parent
    while around is not None and around.name != "func.func":
        loop = around.operation
        if loop.name == "scf.for":
            extent = bounds(loop) or (0, 1, 1)
            loops.insert(0, _Loop(loop, extent[2], extent[1] * address.steps.get(loop, 0)))
        around = loop.parent
    type_ = ir.MemRefType(address.buffer.type)
    size = math.prod(type_.shape) * ir.IntegerType(type_.element_type).width // 8
    rows = ir.IntegerAttr(op.attributes[TILE_ROWS]).value
    stays = ir.StringAttr(op.attributes["intrin"]).value == LOAD
    return TileLoad(address.buffer.arg_number, size, address.constant, rows, stride, stays, tuple(loops))


def _address(value: ir.Value) -> _Address:
    """The bytes that an address or an index counts; what is read from memory counts none."""
    if loop := loop_of(value):
        return _Address(steps={loop: 1})
    if isinstance(value.owner, ir.Block):
        return _Address()
    op = value.owner.operation
    if op.name == "arith.addi":
        return _address(op.operands[0]).plus(_address(op.operands[1]))
    if op.name == "arith.muli":
        return _product(op)
    if op.name in _CASTS:
        return _address(op.operands[0])
    if op.name == "memref.extract_aligned_pointer_as_index":
        return _Address(buffer=root(op.operands[0]))
    if op.name == "memref.extract_strided_metadata":
        return _offset(op.operands[0])
    return _Address(constant(value) or 0)


def _product(op: ir.Operation) -> _Address:
    for factor, other in (op.operands, reversed(list(op.operands))):
        number = constant(factor)
        if number is not None:
            return _address(other).times(number)
    return _Address()


def root(buffer: ir.Value) -> ir.BlockArgument | None:
    """The argument that `buffer` is a view of."""
    found = behind(buffer)
    return ir.BlockArgument(found) if isinstance(found.owner, ir.Block) else None


def _offset(buffer: ir.Value) -> _Address:
    """Where a view begins; elements that are counted are bytes."""
    if isinstance(buffer.owner, ir.Block):
        return _Address()
    op = buffer.owner.operation
    if op.name != "memref.reinterpret_cast":
        return _offset(op.operands[0]) if is_view(op) else _Address()
    if len(op.operands) > 1:
        return _address(op.operands[1])
    _, offset = ir.MemRefType(op.results[0].type).get_strides_and_offset()
    return _Address(offset)
