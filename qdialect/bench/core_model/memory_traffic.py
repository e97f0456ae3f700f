"""Where the bytes of a kernel come from: lines that loads of tiles fetch, and what calls before have left."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from qdialect.ir._mlir import ir
from qdialect.lowering.instructions.tiles import LOAD, LOAD_PAST, TILE_ROWS
from qdialect.lowering.ir.functions import MAIN, bounds, constant, functions, inside, loop_of, name_of
from qdialect.lowering.ir.views import behind, is_view
from qdialect.support.interface import KERNEL

# How many lines loads of matrix tiles fetch from beyond L1, from code at the phase `x86`.
#
# A load of a tile is a line for each of its rows, at addresses that the loops around it move by a fixed distance.  Of a
# load inside of the loops L_1, ..., L_n, the outermost first, n_k trips each, u_k are the distinct lines of one
# iteration of L_k.  What an iteration leaves in the cache the next one finds there, if the lines of all loads in an
# iteration together fit; else it finds nothing:
#
#   missed(L_k) = distinct lines of all trips of L_k     where the loads of one iteration fit
#                 n_k * missed(L_{k+1})                  where they do not
#
# Non-temporal loads always miss and never evict.

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
    """By loop, the stride of its index."""

    def plus(self, other: _Address) -> _Address:
        steps = {loop: self.steps.get(loop, 0) + other.steps.get(loop, 0) for loop in (*self.steps, *other.steps)}
        return _Address(self.constant + other.constant, self.buffer or other.buffer, steps)

    def times(self, factor: int) -> _Address:
        return _Address(self.constant * factor, self.buffer, {loop: s * factor for loop, s in self.steps.items()})


def tile_loads(function: ir.Operation) -> list[TileLoad]:
    """The loads of tiles of a kernel, from buffers that are known."""
    calls = (op for op in inside(function) if op.name == "llvm.call_intrinsic")
    loads = (op for op in calls if ir.StringAttr(op.attributes["intrin"]).value in (LOAD, LOAD_PAST))
    return [load for op in loads if (load := _tile_load(op))]


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
    """The linear form of an address or an index, in bytes; 0 for a value that is read from memory."""
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


# How far back each kernel call of a network finds what it reads and writes, from `main` at the phase `x86`.
#
# Between two uses of the same bytes a core touches other ones, and a cache that replaces what was longest unused still
# has them if these are fewer than it holds.  A call streams its buffers, so that an element halfway through a buffer
# was used when half of the call before was done, and is used again when half of this one is:
#
#   distance = bytes of the calls in between + (bytes of the call that used it last + bytes of this call) / 2
#
# and no more than all that the network uses.  The calls are walked through twice, as a network is called again and
# again: constants come back once in a round.

KERNEL_NUMBER = re.compile(rf"{KERNEL}(\d+)")


@dataclass(frozen=True)
class Reuse:
    """A stretch of bytes that a call uses, and how many other bytes were used since it was used before."""

    size: int
    distance: float


@dataclass(frozen=True)
class CallReuse:
    """A call of a kernel, by its number, and what it uses."""

    kernel: int
    parts: tuple[Reuse, ...]


@dataclass(frozen=True)
class _Range:
    """Bytes of an argument of `main`."""

    argument: int
    first: int
    end: int


@dataclass
class _Part:
    """Bytes that are always used together, and by which call last."""

    size: int
    used_until: float = -math.inf
    by_bytes: int = 0


def call_reuses(module: ir.Module) -> list[CallReuse]:
    """Of every call of `main`, in their order."""
    main = next((op for op in functions(module) if name_of(op) == MAIN), None)
    calls = list(_calls(main)) if main else []
    parts = _parts([one for _, ranges in calls for one in ranges])
    all_bytes = sum(part.size for some in parts.values() for _, part in some)
    position, found = 0.0, list[CallReuse]()
    for kernel, ranges in (*calls, *calls):
        used = {key: part for one in ranges for key, part in _inside(one, parts)}
        total = sum(part.size for part in used.values())
        back = ((part.size, position - part.used_until + (part.by_bytes + total) / 2) for part in used.values())
        found.append(CallReuse(kernel, tuple(Reuse(size, min(distance, all_bytes)) for size, distance in back)))
        position += total
        for part in used.values():
            part.used_until, part.by_bytes = position, total
    return found[len(calls) :]


def _calls(main: ir.Operation) -> Iterator[tuple[int, list[_Range]]]:
    for op in (one for one in inside(main) if one.name == "func.call"):
        number = KERNEL_NUMBER.match(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        if number:
            ranges = (_range(value) for value in op.operands if isinstance(value.type, ir.MemRefType))
            yield int(number[1]), [one for one in ranges if one]


def _range(buffer: ir.Value) -> _Range | None:
    type_ = ir.MemRefType(buffer.type)
    element = type_.element_type
    width = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 8
    size, first = -(-math.prod(type_.shape) * width // 8), 0
    if not isinstance(buffer.owner, ir.Block):
        if buffer.owner.name != "memref.view":
            return None
        first = constant(buffer.owner.operands[1]) or 0
        buffer = buffer.owner.operands[0]
    if not isinstance(buffer.owner, ir.Block) or not size:
        return None
    return _Range(ir.BlockArgument(buffer).arg_number, first, first + size)


def _parts(ranges: list[_Range]) -> dict[int, list[tuple[int, _Part]]]:
    """By the argument, stretches between the ends of ranges, by where they begin."""
    borders: dict[int, set[int]] = {}
    for one in ranges:
        borders.setdefault(one.argument, set()).update((one.first, one.end))
    return {
        argument: [(first, _Part(end - first)) for first, end in pairwise(found)]
        for argument, found in ((argument, sorted(found)) for argument, found in borders.items())
    }


def _inside(one: _Range, parts: dict[int, list[tuple[int, _Part]]]) -> Iterator[tuple[tuple[int, int], _Part]]:
    for first, part in parts[one.argument]:
        if one.first <= first < one.end:
            yield (one.argument, first), part
