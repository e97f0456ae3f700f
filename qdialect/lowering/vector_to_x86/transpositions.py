"""Transposed and strided vectors -> permutes: transpositions, gathers by them, strided reads, writes of planes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from qdialect.ir._mlir import arith, ir, vector
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.flat_address import Read, flat_address, read_of, require_access, transfer_problem
from qdialect.lowering.ir.functions import kind_of
from qdialect.lowering.ir.views import static_strides
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import require

# Two transpositions -> one, or none where the second takes the first back.
#
# With r = transpose(v, p), dimension k of r is dimension p(k) of v; dimension k of transpose(r, q) is dimension
# p(q(k)).


@dataclass(frozen=True)
class Transposition:
    """Of a vector, with the dimension of the vector that each dimension of the result is."""

    source: ir.Value
    order: list[int]


class TransposePair(InstructionPattern[Transposition]):
    """A transposition of a transposition."""

    roots = ("vector.transpose",)

    def check(self, op: ir.Operation) -> Transposition | None:
        first = b.defining(op.operands[0], "vector.transpose")
        if first is None:
            return None
        inner = b.order_of(first)
        return Transposition(first.operands[0], [inner[axis] for axis in b.order_of(op)])

    def emit(self, op: ir.Operation, match: Transposition) -> ir.Value:
        if match.order == sorted(match.order):
            return match.source
        return vector.transpose(op.results[0].type, match.source, match.order)


# `vector.gather` by transposed indices -> the transposed gather: vectorization leaves the order of loops there.
#
# Element by element a gather knows no order, so that
#
#   gather(transpose(i)) = transpose(gather(i)).
#
# Patterns of tables need the integers that indices were cast from, and then find them behind the cast.  If the
# result is transposed back, both transpositions are gone (`TransposePair`).


class TransposedGather(InstructionPattern[Transposition]):
    """A gather of every lane by transposed indices."""

    roots = ("vector.gather",)

    def check(self, op: ir.Operation) -> Transposition | None:
        _, _, indices, mask, _ = op.operands
        transposition = b.defining(indices, "vector.transpose")
        if transposition is None:
            return None
        require(b.is_all_true(mask), "mask must be true in every lane")
        return Transposition(transposition.operands[0], b.order_of(transposition))

    def emit(self, op: ir.Operation, match: Transposition) -> ir.Value:
        table, base, _, _, _ = op.operands
        result, shape = ir.VectorType(op.results[0].type), b.shape_of(match.source)
        own = ir.VectorType.get(shape, result.element_type)
        mask = b.splat(ir.VectorType.get(shape, ir.IntegerType.get_signless(1)), 1)
        # No lane is masked: the pass-through is unused.
        operands = [table, base, match.source, mask, b.splat(own, 0)]
        gathered = ir.Operation.create("vector.gather", results=[own], operands=operands).result
        return vector.transpose(result, gathered, match.order)


# `vector.transpose` of rows of 32-bit numbers -> shuffles of two vectors, each one instruction.
#
# Rows of 4 P numbers, of P parts of 128 bits, are a square of 4 P rows; fewer rows, or shorter ones, are filled up with
# poison.  Numbers are unpacked twice within parts: of rows 4 g to 4 g + 3 vector 4 g + j has in its part l the numbers
# of column 4 l + j.  For each j the parts of the P vectors 4 g + j are transposed as numbers were, with halves of the
# parts of two vectors in place of unpacked ones.  That is log2(4 P) instructions a vector.
#
# Of bytes it is up to 16 rows, and 16 columns for each part.  Row i and row i + 8 are unpacked to rows 2 i and 2 i + 1,
# four times: each time the highest bit of a byte's row number becomes the lowest bit of its place in a part, and the
# highest bit of its place the lowest of its row number.
#
# Lane by lane, LLVM finds instructions for the lanes of each result by themselves, two to three times as many, and
# keeps most of their indices in memory.

_BITS, _PART = 32, 4
_FEWEST = 4
"""Rows, and numbers of a row, from which on a square is worth its shuffles."""
_PLANES = range(2, 5)
"""Rows of bytes whose transpositions are written as pixels."""
_BYTES, _MOST_BYTES = 16, 64
"""Bytes of a part, and the rows of a square of them; the longest row."""


@dataclass(frozen=True)
class Square:
    """Rows of equal length in a square of `size`."""

    rows: int
    columns: int
    size: int


class TransposedSquare(InstructionPattern[Square]):
    """A transposition that exchanges the only two dimensions of a vector that are not 1."""

    roots = ("vector.transpose",)

    def __init__(self, lanes: int) -> None:
        """`lanes` are those of 32 bits of the widest vector."""
        self._lanes = lanes

    def check(self, op: ir.Operation) -> Square | None:
        shape, bits = b.shape_of(op.operands[0]), ir.VectorType(op.operands[0].type).element_type
        moved = [axis for axis in b.order_of(op) if shape[axis] != 1]
        are_bytes = b.is_integer(bits, 8)
        if moved == sorted(moved) or not (isinstance(bits, ir.F32Type) or b.is_integer(bits, _BITS) or are_bytes):
            return None
        require(len(moved) == 2, f"all dimensions but two must be 1, but got {list(shape)}")
        columns, rows = (shape[axis] for axis in moved)
        if are_bytes:
            # Fewer planes become pixels by permutes, and fewer columns are read by them.
            least, most = sorted((rows, columns))
            fits = max(_PLANES) < least <= _BYTES and most <= _MOST_BYTES
            wanted = f"bytes must be from 5 by 5 to {_BYTES} by {_MOST_BYTES}"
            require(fits, f"{wanted}, but got {rows} rows of {columns}")
            return Square(rows, columns, _BYTES)
        _require_square(rows, columns, self._lanes)
        size = next(size for size in (4, 8, 16) if size >= max(rows, columns))
        return Square(rows, columns, size)

    def emit(self, op: ir.Operation, match: Square) -> ir.Value:
        element = ir.VectorType(op.results[0].type).element_type
        source = vector.shape_cast(ir.VectorType.get([match.rows, match.columns], element), op.operands[0])
        lanes = -(-match.columns // match.size) * match.size
        rows = [b.widened(b.extract(source, [row]), lanes) for row in range(match.rows)]
        rows += [_poison(rows[0].type)] * (-match.rows % match.size)
        value = _poison(ir.VectorType.get([match.columns, match.rows], element))
        transposed = _transposed_bytes(rows) if b.is_integer(element, 8) else _transposed(rows)
        for column, own in enumerate(transposed[: match.columns]):
            value = b.insert(b.widened(own, match.rows), value, [column])
        return vector.shape_cast(op.results[0].type, value)


def _require_square(rows: int, columns: int, lanes: int) -> None:
    fits = min(rows, columns) >= _FEWEST and max(rows, columns) <= lanes
    require(fits, f"a square must have {_FEWEST} to {lanes} rows, but got {rows} of {columns}")


def _poison(type_: ir.Type) -> ir.Value:
    return b.emit("ub.poison", type_)


def _transposed(rows: list[ir.Value]) -> list[ir.Value]:
    """The columns of a square."""
    size = len(rows)
    fours: list[ir.Value] = []
    for row in range(0, size, _PART):
        low, high = (_unpacked(rows[i], rows[i + 1], 1) for i in (row, row + 2))
        fours += [vector for half in (0, 1) for vector in _unpacked(low[half], high[half], 2)]
    columns = [_transposed_parts(fours[j::_PART]) for j in range(_PART)]
    return [own[part] for part in range(size // _PART) for own in columns]


def _transposed_bytes(rows: list[ir.Value]) -> list[ir.Value]:
    """The columns of squares of bytes, which lie side by side or one below the other."""
    if len(rows) > _BYTES:
        return _network([_joined(rows[row::_BYTES]) for row in range(_BYTES)])
    starts, found = range(0, b.lanes_of(rows[0]), _BYTES), _network(rows)
    return [b.shuffle(row, row, range(start, start + _BYTES)) for start in starts for row in found]


def _network(rows: list[ir.Value]) -> list[ir.Value]:
    """Part p of vector c of the result is column c of the square of the parts p."""
    for _ in range(_BYTES.bit_length() - 1):
        pairs = zip(rows[: _BYTES // 2], rows[_BYTES // 2 :], strict=True)
        rows = [_interleaved(*pair, half) for pair in pairs for half in (0, _BYTES // 2)]
    return rows


def _joined(parts: list[ir.Value]) -> ir.Value:
    """One to four vectors side by side."""
    found = parts[0]
    for part in parts[1:]:
        size = b.lanes_of(found) + _BYTES
        wide = b.widened(part, b.lanes_of(found))
        found = b.shuffle(found, wide, range(size))
    return found


def _interleaved(first: ir.Value, second: ir.Value, start: int) -> ir.Value:
    """Eight bytes of each part of two vectors in turn, from `start` of the part on."""
    size = b.lanes_of(first)
    lanes = [part + start + i for part in range(0, size, _BYTES) for i in range(_BYTES // 2)]
    return b.shuffle(first, second, [source + lane for lane in lanes for source in (0, size)])


def _unpacked(first: ir.Value, second: ir.Value, width: int) -> tuple[ir.Value, ir.Value]:
    """`width` numbers of each in turn: from the first half of each part of 128 bits, and from the second."""
    size = b.lanes_of(first)
    found: list[ir.Value] = []
    for half in range(0, _PART, _PART // 2):
        starts = [part + half + i for part in range(0, size, _PART) for i in range(0, _PART // 2, width)]
        lanes = [source + start + i for start in starts for source in (0, size) for i in range(width)]
        found.append(b.shuffle(first, second, lanes))
    return found[0], found[1]


def _transposed_parts(vectors: list[ir.Value]) -> list[ir.Value]:
    """P vectors of P parts: vector l of the result has part l of each, for P of 1, 2 or 4."""
    if len(vectors) == 1:
        return vectors
    # Of neighbours the even parts, and the odd ones; then those of vectors further apart.
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    even, odd = ([_parts(*pair, first) for pair in pairs] for first in (0, _PART))
    if len(vectors) == 2:
        return [even[0], odd[0]]
    return [_parts(half[0], half[1], first) for first in (0, _PART) for half in (even, odd)]


def _parts(first: ir.Value, second: ir.Value, start: int) -> ir.Value:
    """Every other part of two vectors, from the one at `start` on."""
    lanes = [part + i for part in range(start, 2 * b.lanes_of(first), 2 * _PART) for i in range(_PART)]
    return b.shuffle(first, second, lanes)


# `vector.multi_reduction` of floats along rows -> operations on columns, which are vectors once rows are transposed.
#
# The terms of each row are folded in their order, which is that of upstream's lowering to a chain for each row.

_FLOAT_FOLDS = {"add": arith.addf, "mul": arith.mulf, "maximumf": arith.maximumf, "minimumf": arith.minimumf}


class FoldedRows(InstructionPattern[list[int]]):
    """The sums, products or extremes of some rows of float32 numbers; the match is their number and their length."""

    roots = ("vector.multi_reduction",)

    def __init__(self, lanes: int) -> None:
        """`lanes` are those of 32 bits of the widest vector."""
        self._lanes = lanes

    def check(self, op: ir.Operation) -> list[int] | None:
        source, start = op.operands
        is_float = isinstance(start.type, ir.VectorType) and isinstance(start.type.element_type, ir.F32Type)
        is_along_rows = 0 not in ir.DenseI64ArrayAttr(op.attributes["reduction_dims"])
        if not is_float or not is_along_rows or kind_of(op) not in _FLOAT_FOLDS:
            return None
        rows, *row = b.shape_of(source)
        found = b.shape_of(start)
        require(found == [rows], f"rows must be the first dimension, but got {[rows, *row]} for {found}")
        _require_square(rows, prod(row), self._lanes)
        return [rows, prod(row)]

    def emit(self, op: ir.Operation, match: list[int]) -> ir.Value:
        source, start = op.operands
        element, fold = ir.VectorType(source.type).element_type, _FLOAT_FOLDS[kind_of(op)]
        square = vector.shape_cast(ir.VectorType.get(match, element), source)
        columns = vector.transpose(ir.VectorType.get(match[::-1], element), square, [1, 0])
        total = start
        for column in range(match[1]):
            total = fold(total, b.extract(columns, [column]))
        return total


# Bytes, or numbers of 32 bits, that lie apart in two vectors -> two loads and a permute.
#
# A `vector.transfer_read` of n elements that are s apart spans (n - 1) s + 1 of them.  Where these are at most two
# vectors, the first and the last one of them hold all, and nothing outside of them is read; LLVM would load one by one.

_SIZES = (64, 32, 16, 8)
"""Bytes of a load."""


class StridedRead(InstructionPattern[Read]):
    """A read of one row of bytes, or of numbers of 32 bits, that are a constant distance apart."""

    roots = ("vector.transfer_read",)

    def check(self, op: ir.Operation) -> Read | None:
        type_ = op.results[0].type
        bits = b.element_bits(type_.element_type) if isinstance(type_, ir.VectorType) else 0
        if bits not in (8, 32) or not _is_row_apart(op):
            return None
        buffer = ir.MemRefType(op.operands[0].type)
        require(buffer.memory_space is None, f"elements must be in the default memory space, but got {buffer}")
        problem = transfer_problem(op, op.operands[0])
        require(problem is None, f"elements {problem}")
        read = read_of(op)
        strides, span = list(read.strides), _span(read) * bits // 8
        require(min(strides) >= 0, f"elements must lie at strides that are not negative, but got {strides}")
        fits = _SIZES[-1] <= span <= 2 * _SIZES[0]
        require(fits, f"elements must span {_SIZES[-1]} to {2 * _SIZES[0]} bytes, but got {span}")
        return read

    def emit(self, op: ir.Operation, match: Read) -> ir.Value:
        span, step = _span(match), match.strides[-1]
        size_of = b.element_bits(ir.VectorType(op.results[0].type).element_type) // 8
        size = next(size // size_of for size in _SIZES if size <= span * size_of)
        first, last = match.flat(), match.flat().further(span - size)
        order = [i * step if i * step < size else size + i * step - (span - size) for i in range(match.shape[-1])]
        bytes_ = vector.shuffle(first.load(size), last.load(size), order)
        return vector.shape_cast(op.results[0].type, bytes_)


def _is_row_apart(op: ir.Operation) -> bool:
    """Whether a transfer reads one row, of bytes that do not lie side by side."""
    type_, (*outer, count) = op.operands[0].type, b.shape_of(op.results[0]) or (1,)
    strides = static_strides(type_) if isinstance(type_, ir.MemRefType) else None
    return bool(strides) and strides[-1] not in (0, 1) and count > 1 and all(size == 1 for size in outer)


def _span(read: Read) -> int:
    return (read.shape[-1] - 1) * read.strides[-1] + 1


# Planes of bytes that are written as pixels -> permutes of two vectors.
#
# n pixels of r bytes are n r bytes side by side: byte r i + j is that of plane j at pixel i.  A vector of 64 of them
# takes r - 1 permutes, each of which adds the bytes of one plane; LLVM would go byte by byte.

_VECTOR = 64


@dataclass(frozen=True)
class _Pixels:
    """Planes, [..., r, n], as `n` pixels of `r` bytes, from `indices` of `buffer` on."""

    planes: ir.Value
    buffer: ir.Value
    indices: list[ir.Value]


class PixelWrite(InstructionPattern[_Pixels]):
    """A write of bytes whose two innermost dimensions were exchanged, where pixels are contiguous."""

    roots = ("vector.transfer_write",)

    def check(self, op: ir.Operation) -> _Pixels | None:
        value, buffer, *indices = op.operands
        transposition = b.defining(value, "vector.transpose")
        if transposition is None or not b.is_vector_of(value, 8) or len(b.shape_of(value)) < 2:
            return None
        *outer, pixels, planes = b.shape_of(value)
        if planes not in _PLANES:
            return None
        require_access(op, buffer, "bytes")
        *first, last, other = b.order_of(transposition)
        are_innermost = [*first, other, last] == [*range(len(outer) + 2)]
        require(are_innermost, "innermost dimensions alone must be exchanged")
        is_row = all(size == 1 for size in outer) and pixels <= _VECTOR
        require(is_row, f"pixels must be one row of at most {_VECTOR}, but got {[*outer, pixels]}")
        strides = static_strides(ir.MemRefType(buffer.type)) or ()
        is_dense = strides[-2:] == (planes, 1) and min(strides) >= 0
        require(is_dense, f"pixels must be contiguous, but got strides {list(strides)}")
        return _Pixels(transposition.operands[0], buffer, list(indices))

    def emit(self, op: ir.Operation, match: _Pixels) -> None:
        *outer, planes, pixels = b.shape_of(match.planes)
        rows = [_widened_to(b.extract(match.planes, [*[0] * len(outer), plane])) for plane in range(planes)]
        start, size = flat_address(match.buffer, match.indices), planes * pixels
        for first in range(0, size, _VECTOR):
            bytes_ = rows[0]
            for plane, row in enumerate(rows[1:], start=1):
                bytes_ = b.shuffle(bytes_, row, [_lane(plane, planes, first + at) for at in range(_VECTOR)])
            count = min(_VECTOR, size - first)
            whole = bytes_ if count == _VECTOR else b.shuffle(bytes_, bytes_, range(count))
            start.further(first).store(whole)


def _lane(plane: int, planes: int, position: int) -> int:
    """The source lane of the byte at `position` of the pixels: in the bytes merged so far, or in the row of `plane`."""
    pixel, own = divmod(position, planes)
    if own == plane:
        return _VECTOR + pixel % _VECTOR
    return position % _VECTOR if plane > 1 else pixel % _VECTOR


def _widened_to(row: ir.Value) -> ir.Value:
    """A vector whose first lanes are those of `row`."""
    lanes = b.shape_of(row)[0]
    return row if lanes == _VECTOR else b.shuffle(row, row, [at % lanes for at in range(_VECTOR)])
