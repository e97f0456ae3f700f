"""Tables looked up by permutes of registers: of bytes, and of numbers, whole or one table for each of their bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import ClassVar, Protocol

import numpy as np

from qdialect.arithmetic.float32.machine import ENTRIES
from qdialect.ir._mlir import arith, ir, vector
from qdialect.lowering.instructions.instruction_set import InstructionSet
from qdialect.lowering.instructions.lanes import VPERMD, VPERMI2B, VPERMI2D, VPSHUFB
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.accesses import effects_of
from qdialect.lowering.ir.functions import LOOP, constant, inside
from qdialect.lowering.ir.views import may_alias, static_strides
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure, require

# `vector.gather` from a table: the conditions of every pattern that looks entries up in registers.


@dataclass(frozen=True)
class Lookup:
    """A gather from all of a table, and in every lane."""

    table: ir.Value
    indices: ir.Value
    """Integers whose low bits select the entry."""


def table_type(gather: ir.Operation, entries: int) -> ir.MemRefType | None:
    """The type of the buffer that `gather` reads; None if it does not have the number of entries."""
    type_ = gather.operands[0].type
    return type_ if isinstance(type_, ir.MemRefType) and list(type_.shape) == [entries] else None


def lookup_of(gather: ir.Operation, integers: Callable[[ir.Value], ir.Value | None], wanted: str) -> Lookup:
    """The lookup of `gather` in a buffer, from its first entry on.

    `integers` finds the integers of the lookup behind casts of the indices, or None if they are not as `wanted`.
    """
    table, base, indices, mask, _ = gather.operands
    type_, start = ir.MemRefType(table.type), constant(base)
    is_plain = static_strides(type_) == (1,) and type_.memory_space is None
    require(is_plain, f"table must lie side by side in the default memory space, but got {type_}")
    require(start == 0, f"base index must be 0, but got {'a variable' if start is None else start}")
    require(b.is_all_true(mask), "mask must be true in every lane")
    cast = b.defining(indices, "arith.index_cast") or b.defining(indices, "arith.index_castui")
    found = integers(cast.operands[0]) if cast else None
    if found is None:
        raise MatchFailure(f"indices must be cast from {wanted}")
    return Lookup(table, found)


# `vector.gather` from as many elements as a few registers hold -> permutes of them.
#
# A gather loads lane by lane.  Of 256 numbers of 32 bits one `vpermi2d` looks up 32 in two registers by the low five
# bits of each index; eight of them look up all, and seven selects on the three bits above choose among them.  Where
# registers are scarce the sixteen parts of the table are reloaded, which is still at most one load per lane.

BYTE_ENTRIES = 256
_BITS, _BYTE = 32, 8
_LANES, _REGISTER = 16, 64
"""Of the widest register: numbers, and bytes."""


class RegisterTable(InstructionPattern[Lookup]):
    """A gather in every lane from up to 32 numbers of 32 bits, or from two registers of bytes where `vpermi2b` is.

    Registers of 16 numbers may be 16, too.
    """

    roots = ("vector.gather",)

    def __init__(self, lanes: int, *, has_bytes: bool) -> None:
        """`lanes` are the 32-bit lanes of the widest vector that has a permute."""
        self._lanes, self._has_bytes = lanes, has_bytes

    def check(self, op: ir.Operation) -> Lookup | None:
        type_ = op.operands[0].type
        if not isinstance(type_, ir.MemRefType) or type_.rank != 1:
            return None
        lanes, entries = self._lanes_of(type_), type_.shape[0]
        is_long = entries == BYTE_ENTRIES and lanes == _LANES
        if lanes == 0 or not (0 < entries <= 2 * max(lanes, _LANES) or is_long):
            return None
        is_wrapping = has_numbers(type_) and entries <= ENTRIES
        found = lookup_of(op, _unwrapped if is_wrapping else whole_indices, "a vector of 8 or 32-bit integers")
        fits = b.lanes_of(found.indices) % lanes == 0 or (not is_long and _is_short(found.indices, lanes))
        rows = f"rows of a multiple of {lanes} lanes"
        wanted = rows if is_long else f"at most {lanes} lanes or rows of a multiple of them"
        require(fits, f"vectors must have {wanted}, but got {b.shape_of(found.indices)}")
        return found

    def _lanes_of(self, table: ir.MemRefType) -> int:
        """Elements of a register; 0 where no permute takes them."""
        if has_numbers(table):
            return self._lanes
        return _REGISTER if self._has_bytes and b.is_integer(table.element_type, _BYTE) else 0

    def emit(self, op: ir.Operation, match: Lookup) -> ir.Value:
        type_, table = ir.VectorType(op.results[0].type), ir.MemRefType(match.table.type)
        lanes, entries = self._lanes_of(table), table.shape[0]
        known = _as_words(match.indices) if has_numbers(table) else match.indices
        parts = [
            _register_part(match.table, start, min(lanes, entries - start), lanes) for start in range(0, entries, lanes)
        ]
        own, integers = (ir.VectorType.get([lanes], one) for one in (table.element_type, _element(parts[0])))
        if _is_short(known, lanes):
            count = math.prod(type_.shape)
            row = vector.shape_cast(ir.VectorType.get([count], _element(known)), known)
            return vector.shape_cast(type_, b.widened(b.bitcast(own, _picked(parts, b.widened(row, lanes))), count))
        *outer, last = type_.shape
        blocks = [*outer, last // lanes, lanes]
        indices = vector.shape_cast(ir.VectorType.get(blocks, integers.element_type), known)
        # Any register will do to insert into: every position is written.
        result = b.emit("ub.poison", ir.VectorType.get(blocks, table.element_type))
        for position in np.ndindex(*blocks[:-1]):
            result = b.insert(b.bitcast(own, _picked(parts, b.extract(indices, position))), result, position)
        return vector.shape_cast(type_, result)


def _is_short(indices: ir.Value, lanes: int) -> bool:
    """Whether one register has all."""
    return math.prod(b.shape_of(indices)) <= lanes


def _element(value: ir.Value) -> ir.Type:
    return ir.VectorType(value.type).element_type


def _register_part(table: ir.Value, start: int, count: int, lanes: int) -> ir.Value:
    """A register of a table, as integers; lanes beyond its entries are any."""
    whole = b.widened(b.load(count, table, [b.index(start)]), lanes)
    return b.bitcast(b.vector_type(lanes, b.element_bits(_element(whole))), whole)


def _picked(parts: list[ir.Value], indices: ir.Value) -> ir.Value:
    """Entries of registers by their indices."""
    lanes, type_ = b.lanes_of(indices), ir.VectorType(indices.type)
    if lanes == _REGISTER:
        return VPERMI2B.emit(parts[0], indices, parts[-1])
    if len(parts) == 1 or lanes != _LANES:
        found, bit = [VPERMD[lanes].emit(part, indices) for part in parts], lanes
    else:
        found, bit = (
            [VPERMI2D.emit(low, indices, high) for low, high in zip(parts[::2], parts[1::2], strict=True)],
            2 * lanes,
        )
    # The bits above those that a permute reads select the register.
    while len(found) > 1:
        is_high = arith.cmpi(arith.CmpIPredicate.ne, arith.andi(indices, b.splat(type_, bit)), b.splat(type_, 0))
        found = [arith.select(is_high, high, low) for low, high in zip(found[::2], found[1::2], strict=True)]
        bit *= 2
    return found[0]


def _unwrapped(indices: ir.Value) -> ir.Value | None:
    """Integers whose low four bits a permute reads: what the `indices` are modulo 16."""
    wrapped = b.defining(indices, "arith.andi")
    is_wrapped = wrapped is not None and b.splat_value(wrapped.operands[1]) == ENTRIES - 1
    return whole_indices(wrapped.operands[0] if wrapped is not None and is_wrapped else indices)


def whole_indices(indices: ir.Value) -> ir.Value | None:
    """`indices` where they are integers of 8 or 32 bits."""
    return indices if any(b.is_vector_of(indices, bits) for bits in (_BYTE, _BITS)) else None


def _as_words(indices: ir.Value) -> ir.Value:
    if b.is_vector_of(indices, _BITS):
        return indices
    return arith.extui(ir.VectorType.get(b.shape_of(indices), ir.IntegerType.get_signless(_BITS)), indices)


def has_numbers(table: ir.MemRefType) -> bool:
    """Whether entries are floats or integers of 32 bits."""
    return isinstance(table.element_type, ir.F32Type) or b.is_integer(table.element_type, _BITS)


# `vector.gather` from a 256-byte table -> `vpermi2b`, or `vpshufb`.
#
# With byte permutes the table stands in four registers.  One `vpermi2b` looks 64 bytes up in 128 entries by the low 7
# bits of each index; two of them and a select on the top bit make 256 entries.
#
# A byte shuffle looks up 16 entries, and gives zero where the index has its top bit set.  With T_i the entries from 16
# i on, as for i in 0..7 and an index x < 128,
#
#   T_(x / 16)[x mod 16] = xor of (T_i xor T_(i-1))[x mod 16] over i <= x / 16,      T_(-1) = 0,
#
# and x - 16 i, saturating, is negative just where i > x / 16, or where x is 128 or more, read as signed.  So eight
# shuffles by x, x - 16, ... look up one half of the table, and eight more by x xor 128 the other half.

_ENTRIES = 256
_PART = 16


class Table(Protocol):
    """A 256-byte table in registers."""

    width: int
    """Bytes that are looked up at once."""

    def look_up(self, indices: ir.Value) -> ir.Value:
        """Entries by `width` unsigned bytes."""
        ...


class _PermutedTable:
    """A table for `vpermi2b`."""

    width = 64

    def __init__(self, buffer: ir.Value) -> None:
        self._quarters = [b.load(self.width, buffer, [b.index(self.width * q)]) for q in range(4)]
        self._zero = b.splat(b.vector_type(self.width, 8), 0)

    def look_up(self, indices: ir.Value) -> ir.Value:
        """64 entries by 64 unsigned bytes."""
        first, second, third, fourth = self._quarters
        low = VPERMI2B.emit(first, indices, second)
        high = VPERMI2B.emit(third, indices, fourth)
        top_bit = arith.cmpi(arith.CmpIPredicate.slt, indices, self._zero)
        return arith.select(top_bit, high, low)


class _ShuffledTable:
    """A table for `vpshufb`: the xor of each 16 entries with the 16 before, for every 16 bytes of a vector."""

    def __init__(self, buffer: ir.Value, lanes: int) -> None:
        self.width = 4 * lanes
        self._shuffle = VPSHUFB[lanes]
        self._halves = [self._differences(buffer, start) for start in (0, _ENTRIES // 2)]

    def look_up(self, indices: ir.Value) -> ir.Value:
        """Entries by a whole vector of unsigned bytes."""
        type_ = ir.VectorType(indices.type)
        step = b.splat(type_, _PART)
        found: ir.Value | None = None
        for differences, flip in zip(self._halves, (0, -128), strict=True):
            index = arith.xori(indices, b.splat(type_, flip)) if flip else indices
            for position, difference in enumerate(differences):
                index = b.intrinsic("llvm.ssub.sat", type_, index, step) if position else index
                part = self._shuffle.emit(difference, index)
                found = part if found is None else arith.xori(found, part)
        assert found is not None, "a table has entries"
        return found

    def _differences(self, buffer: ir.Value, start: int) -> list[ir.Value]:
        parts = [b.load(_PART, buffer, [b.index(position)]) for position in range(start, start + _ENTRIES // 2, _PART)]
        own = [parts[0], *(arith.xori(*pair) for pair in pairwise(parts))]
        order = [position % _PART for position in range(self.width)]
        return [part if self.width == _PART else b.shuffle(part, part, order) for part in own]


def table_of(buffer: ir.Value, instructions: InstructionSet) -> Table:
    """The table in `buffer`, loaded into registers; the target must have byte permutes or shuffles."""
    return _PermutedTable(buffer) if instructions.has_byte_permutes else _ShuffledTable(buffer, instructions.lanes)


class ByteTable(InstructionPattern[Lookup]):
    """A gather from a table of 256 bytes, from its first entry on and in every lane."""

    roots = ("vector.gather",)

    def __init__(self, instructions: InstructionSet) -> None:
        self._instructions = instructions

    def check(self, op: ir.Operation) -> Lookup | None:
        return look_up(op)

    def emit(self, op: ir.Operation, match: Lookup) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        shape = list(type_.shape)
        table, indices = table_of(match.table, self._instructions), _as_bytes(match.indices)
        # Any register will do to insert into: every position is written.
        result = b.splat(type_, 0)
        for position in np.ndindex(*shape[:-1]):
            row = b.extract(indices, position) if position else indices
            found = _look_up_any(table, row, shape[-1])
            result = b.insert(found, result, position) if position else found
        return result


def is_table_read(op: ir.Operation) -> bool:
    """Whether `op` gathers from a table of 256 bytes."""
    type_ = table_type(op, _ENTRIES) if op.name == "vector.gather" else None
    return type_ is not None and b.is_integer(type_.element_type, _BYTE)


def look_up(gather: ir.Operation) -> Lookup | None:
    """The lookup of `gather`; None if it does not read a table of 256 bytes.

    An index beyond the table is undefined behaviour, so that the low byte of an index is all of it.
    """
    if not is_table_read(gather):
        return None
    return lookup_of(gather, _whole_bytes, "a vector of integers of at least 8 bits")


def _whole_bytes(indices: ir.Value) -> ir.Value | None:
    return indices if b.integer_bits(indices.type) >= _BYTE and ir.VectorType(indices.type).rank else None


def _as_bytes(source: ir.Value) -> ir.Value:
    extended = b.defining(source, "arith.extui")
    if extended and b.is_vector_of(extended.operands[0], _BYTE):
        return extended.operands[0]
    if b.is_vector_of(source, _BYTE):
        return source
    return arith.trunci(ir.VectorType.get(b.shape_of(source), ir.IntegerType.get_signless(_BYTE)), source)


def _look_up_any(table: Table, indices: ir.Value, lanes: int) -> ir.Value:
    """Look up a 1-d vector of any length, a register at a time, the last one filled up."""
    width = table.width
    if lanes == width:
        return table.look_up(indices)
    total = math.ceil(lanes / width) * width
    parts = [
        table.look_up(b.shuffle(indices, indices, [min(start + i, lanes - 1) for i in range(width)]))
        for start in range(0, total, width)
    ]
    joined = parts[0]
    for count, part in enumerate(parts[1:], start=1):
        whole = b.splat(b.vector_type((count + 1) * width, 8), 0)
        joined = _strided(part, _strided(joined, whole, 0), count * width)
    return b.shuffle(joined, joined, list(range(lanes)))


def _strided(value: ir.Value, destination: ir.Value, offset: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    attributes = {
        "offsets": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, offset)]),
        "strides": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, 1)]),
    }
    operands = [value, destination]
    name = "vector.insert_strided_slice"
    return ir.Operation.create(name, results=[destination.type], operands=operands, attributes=attributes).result


# `vector.gather` of 64 numbers from a table of 256 numbers of 32 bits -> byte permutes, one table for each byte.
#
# Byte p of every entry makes plane p, 256 bytes in four registers, where two `vpermi2b` and a select on the top bit of
# each index look up 64 bytes.  Unpacking puts the bytes of the four planes together: bytes of planes 0 and 1, and of 2
# and 3, become words, and those numbers.  That is nine permutes, four selects and eight unpacks for 64 numbers, where
# `vpermi2d` takes 32 permutes and 28 selects (`qdialect.lowering.vector_to_x86.lookup_tables`).
#
# Unpacking within 128-bit lanes takes byte 16 l + 4 v + i to vector v, number 4 l + i, so that indices are permuted
# before: byte 16 l + 4 v + i is the index of number 16 v + 4 l + i.
#
# Planes are made before the outermost loop that does not write the table.

_BYTES, _WORD, _NUMBER = 64, 16, 32
_PLANES, _PLANE_PART = 4, 16
_QUARTERS = BYTE_ENTRIES // _BYTES
_CASTS = ("arith.extui", "arith.extsi", "vector.shape_cast", "vector.transpose")


@dataclass(frozen=True)
class _Match:
    lookup: Lookup
    place: ir.Operation
    """Before which the planes are made."""


class BytePlaneTable(InstructionPattern[_Match]):
    """A gather from 256 numbers of 32 bits, from the first one on and in 64 n lanes.

    An index beyond the table is undefined behaviour, so that the low byte of an index is all of it.
    """

    roots = ("vector.gather",)
    benefit: ClassVar[int] = 2

    def check(self, op: ir.Operation) -> _Match | None:
        type_ = table_type(op, BYTE_ENTRIES)
        if type_ is None or not has_numbers(type_):
            return None
        found = lookup_of(op, whole_indices, "a vector of 8 or 32-bit integers")
        shape = [extent for extent in b.shape_of(found.indices) if extent > 1]
        fits = len(shape) > 0 and shape[-1] % _PLANE_PART == 0 and prod(shape) % _BYTES == 0
        wanted = f"a multiple of {_BYTES} entries in rows of a multiple of {_PLANE_PART}"
        require(fits, f"must look up {wanted}, but got {'x'.join(map(str, shape))}")
        return _Match(found, _outermost(op, found.table))

    def emit(self, op: ir.Operation, match: _Match) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        with ir.InsertionPoint(match.place):
            # For each byte of an entry four vectors, a quarter of the entries each.
            quarters = [_quarter(match.lookup.table, _BYTES * quarter) for quarter in range(_QUARTERS)]
            planes = [list(plane) for plane in zip(*quarters, strict=True)]
        count = prod(b.shape_of(match.lookup.indices)) // _BYTES
        indices = vector.shape_cast(_integers([count, _BYTES], 8), _low_bytes(match.lookup.indices))
        # Any register will do to insert into: every position is written.
        result = b.splat(_integers([count, _PLANES, _PLANE_PART], _NUMBER), 0)
        for block in range(count):
            for part, numbers in enumerate(_look_up(planes, b.extract(indices, [block]))):
                result = b.insert(numbers, result, [block, part])
        found = vector.shape_cast(_integers(list(type_.shape), _NUMBER), result)
        return found if found.type == type_ else vector.bitcast(type_, found)


def _outermost(op: ir.Operation, table: ir.Value) -> ir.Operation:
    """The outermost of the loops around `op`, one in the other, that leave `table` as it is; else `op` itself."""
    place, parent = op, op.parent
    while parent is not None and parent.name == LOOP and _keeps(parent.operation, table):
        place = parent.operation
        parent = place.parent
    return place


def _keeps(loop: ir.Operation, memory: ir.Value) -> bool:
    """Whether `loop` neither writes nor defines `memory`."""
    owner = memory.owner
    for op in inside(loop):
        effects = effects_of(op)
        is_made_here = not isinstance(owner, ir.Block) and owner.operation == op
        if is_made_here or not effects.is_known:
            return False
        if any(may_alias(op.operands[number], memory) for number in effects.writes):
            return False
    return True


def _quarter(table: ir.Value, start: int) -> list[ir.Value]:
    """The bytes of 64 entries, plane by plane: 32 entries of two planes at a time, then 64 of one."""
    entries = [_part(table, start + _PLANE_PART * part) for part in range(_PLANES)]
    pairs: list[list[ir.Value]] = []
    for plane in (0, 2):
        order = [_PLANES * entry + byte for byte in (plane, plane + 1) for entry in range(2 * _PLANE_PART)]
        pairs.append([b.shuffle(entries[i], entries[i + 1], order) for i in (0, 2)])
    half = list(range(_BYTES // 2))
    low, high = ([*(lane + start for lane in half), *(lane + start + _BYTES for lane in half)] for start in (0, 32))
    return [b.shuffle(first, second, order) for first, second in pairs for order in (low, high)]


def _part(table: ir.Value, start: int) -> ir.Value:
    return vector.bitcast(b.vector_type(_BYTES, 8), b.load(_PLANE_PART, table, [b.index(start)]))


def _look_up(planes: list[list[ir.Value]], indices: ir.Value) -> list[ir.Value]:
    """64 entries by 64 bytes of indices, 16 in each vector."""
    words = vector.bitcast(b.vector_type(_PLANE_PART, _NUMBER), indices)
    transposed = np.arange(_PLANE_PART).reshape(_PLANES, _PLANES).T.ravel().tolist()
    permuted = vector.bitcast(b.vector_type(_BYTES, 8), b.shuffle(words, words, transposed))
    is_second_half = arith.cmpi(arith.CmpIPredicate.slt, permuted, b.splat(b.vector_type(_BYTES, 8), 0))
    found = [_of_plane(plane, permuted, is_second_half) for plane in planes]
    low, high = (_unpacked(found[i], found[i + 1], _WORD) for i in (0, 2))
    return [part for pair in zip(low, high, strict=True) for part in _unpacked(*pair, _NUMBER)]


def _of_plane(quarters: list[ir.Value], indices: ir.Value, is_second_half: ir.Value) -> ir.Value:
    first, second, third, fourth = quarters
    return arith.select(is_second_half, VPERMI2B.emit(third, indices, fourth), VPERMI2B.emit(first, indices, second))


def _unpacked(low: ir.Value, high: ir.Value, bits: int) -> list[ir.Value]:
    """Numbers of `bits`, each with its low half from `low`: of the first half of every 128 bits, and of the second."""
    count, part = b.lanes_of(low), 2 * 128 // bits
    halves = np.arange(count).reshape(-1, 2, part // 2)
    orders = (np.stack([halves[:, i], halves[:, i] + count], axis=-1).ravel().tolist() for i in range(2))
    return [vector.bitcast(b.vector_type(count // 2, bits), b.shuffle(low, high, order)) for order in orders]


def _low_bytes(integers: ir.Value) -> ir.Value:
    """The low bytes of a vector's integers, packed.

    The low byte of a difference is the difference of the low bytes, so indices of a byte table need no widening.
    """
    owner = integers.owner
    if isinstance(owner, ir.Block) or b.is_vector_of(integers, 8):
        return _truncated(integers)
    if owner.name in _CASTS and _keeps_order(owner.operation):
        return _low_bytes(owner.operands[0])
    if owner.name == "arith.subi":
        return arith.subi(*(_low_bytes(operand) for operand in owner.operands))
    if owner.name == "vector.broadcast":
        return _spread(owner.operands[0], b.shape_of(integers))
    return _truncated(integers)


def _keeps_order(cast: ir.Operation) -> bool:
    """Whether elements come in the same order, row by row: a transposition may move extents of 1 alone."""
    if cast.name != "vector.transpose":
        return True
    extents = b.shape_of(cast.operands[0])
    moved = [position for position in b.order_of(cast) if extents[position] > 1]
    return moved == sorted(moved)


def _truncated(integers: ir.Value) -> ir.Value:
    shape = b.shape_of(integers)
    bytes_ = integers if b.is_vector_of(integers, 8) else arith.trunci(_integers(shape, 8), integers)
    return vector.shape_cast(b.vector_type(prod(shape), 8), bytes_)


def _spread(source: ir.Value, shape: list[int]) -> ir.Value:
    """The low bytes of the operand of a broadcast to `shape`."""
    if not isinstance(source.type, ir.VectorType):
        number = arith.trunci(ir.IntegerType.get_signless(8), source)
        return vector.broadcast(b.vector_type(prod(shape), 8), number)
    bytes_ = vector.shape_cast(_integers(b.shape_of(source), 8), _low_bytes(source))
    return _truncated(vector.broadcast(_integers(shape, 8), bytes_))


def _integers(shape: list[int], bits: int) -> ir.VectorType:
    return ir.VectorType.get(shape, ir.IntegerType.get_signless(bits))
