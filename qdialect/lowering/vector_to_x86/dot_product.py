"""`vector.contract` of 8- and 16-bit integers -> dot products: of equal widths, and of u8 data by s16 weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qdialect.ir._mlir import arith, ir, vector
from qdialect.lowering.instructions.dot_products import HALF, UPPER_HALF, EmitDot, widened
from qdialect.lowering.instructions.instruction_set import InstructionSet
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.flat_address import Read, argument_attribute
from qdialect.lowering.ir.functions import at, constant
from qdialect.lowering.ir.views import start_of
from qdialect.lowering.qnn_to_linalg.program.kernel_text import NORMAL_SUMS, PAIR_SUMS_FIT
from qdialect.lowering.vector_to_x86 import integer_products, prefetch
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.lowering.vector_to_x86.integer_products import NarrowContraction
from qdialect.passes.pattern import MatchFailure, require
from qdialect.targets.machine import Machine

# `vector.contract` of u8 x s8 -> `vpdpbusd`, of s8 x s8 -> `vpdpbssd`, of s16 x s16 -> `vpdpwssd`.
#
# In each 32-bit lane, the instructions add four products of bytes, or two of s16 words, to the accumulator, exactly.
# A factor that has the loop over lanes is loaded as it lies in memory, with the taps of a lane adjacent; one that does
# not is broadcast.  So a register tile of R rows and V vectors of weights is R * V instructions; if both factors have
# the lanes, every lane multiplies its own factors: with ones for weights it is their sum.  Unsigned bytes may be fields
# of the bits that are loaded.
#
# The rows of a tile are many short streams: they are prefetched into L1 while the previous tile computes, a little at
# each step.  Weights are one stream, which the hardware prefetches, though not far enough ahead for data from memory; a
# one-row tile is already bandwidth-bound, and prefetches would only add instructions.

_PAIR = 2
_LARGEST_OF_PAIRS = 127
"""Unsigned bytes up to it: two products with any signed ones fit 16 bits together."""


class DotProduct(InstructionPattern[NarrowContraction]):
    """A contraction whose innermost reduction is taps that fill 32 bits side by side, for every lane of the result."""

    roots = ("vector.contract",)

    def __init__(self, instructions: InstructionSet) -> None:
        self._instructions = instructions

    def check(self, op: ir.Operation) -> NarrowContraction | None:
        if integer_products.factors_of(op) is integer_products.WIDENED:
            return None
        found = integer_products.narrow_contraction(op, has_fields=True)
        if found is None:
            return None
        lanes, known = found.lanes, sorted(found.factors.dots(self._instructions))
        if not known:
            return None
        if lanes not in known:
            wanted = " or ".join([", ".join(map(str, known[:-1])), str(known[-1])] if known[1:] else ["4"])
            raise MatchFailure(f"result must have {wanted} lanes innermost, but got {lanes}")
        _check_taps(found)
        _check_lanes(found)
        return found

    def emit(self, op: ir.Operation, match: NarrowContraction) -> ir.Value:
        found, loops = match, match.loops
        emit = byte_dots(self._instructions, found)[found.lanes]
        lane, tap = loops.result[-1], found.data.loops[-1]
        outer_weights, weights = _load(op, found.weights, found)
        # For the same products, words need twice the loads of bytes, which leaves few load slots for prefetches.
        is_loading = found.factors is integer_products.WORDS and self._instructions.multiplies_words
        if lane not in found.data.loops:
            _prefetch_ahead(found, self._instructions.machine, is_loading)
        outer_data, data = _load(op, found.data, found)
        result = found.start
        terms = [loop for loop in loops.reduced if loop != tap]
        for point in loops.points(loops.result[:-1]):
            position = at(point, loops.result[:-1])
            own = b.extract(found.start, position)
            for term in loops.points(terms):
                step = {**point, **term}
                factors = data[at(step, outer_data)], weights[at(step, outer_weights)]
                own = emit(own, *factors)
            result = b.insert(own, result, position) if position else own
        return result


def byte_dots(instructions: InstructionSet, found: NarrowContraction) -> Mapping[int, EmitDot]:
    """The instructions by lanes; those that sum pairs only if the weights' argument attribute allows them."""
    fits = found.data.largest <= _LARGEST_OF_PAIRS or _pair_sums_fit(found.weights.read)
    if instructions.pair_dots and found.factors is integer_products.BYTES and fits:
        return instructions.pair_dots
    return found.factors.dots(instructions)


def _pair_sums_fit(read: Read) -> bool:
    """Whether taps are pairs of an argument all of whose pairs satisfy the bound of `cost.register_tiles`."""
    start, last = start_of(read.buffer), constant(read.indices[-1])
    # A pair begins at an even byte of the argument; a dynamic offset may be odd.
    if start is None or last is None or argument_attribute(read.buffer, PAIR_SUMS_FIT) is None:
        return False
    steps = (start.constant, last, *start.factors.values(), *read.strides[:-1])
    return all(step % _PAIR == 0 for step in steps)


def _check_taps(found: NarrowContraction) -> None:
    """The innermost loop of both factors is a reduction of the adjacent taps that the instruction sums."""
    data, weights, loops = found.data, found.weights, found.loops
    is_one = data.loops[-1:] == weights.loops[-1:] != () and data.loops[-1] not in loops.result
    require(is_one, "innermost loop of both factors must be one reduction")
    taps, wanted = loops.extents[data.loops[-1]], found.factors.taps
    require(taps == wanted, f"innermost reduction must have {wanted} taps, but got {taps}")
    require(data.read.moving[-1] == weights.read.moving[-1] == 1, "taps must lie side by side")


def _check_lanes(found: NarrowContraction) -> None:
    """The lanes of a factor, each with its taps, are contiguous."""
    lane, taps = found.loops.result[-1], found.factors.taps
    with_lanes = [side for side in (found.data, found.weights) if lane in side.loops]
    require(len(with_lanes) > 0, "one of the factors must have the lanes of the result")
    for side in with_lanes:
        require(side.loops[-2] == lane, "lanes must be the loop around the taps")
        buffer = side.read.buffer
        is_dense = side.read.moving[-2] == taps and b.shape_of(buffer)[-2:] == [found.loops.extents[lane], taps]
        require(is_dense, f"lanes must lie side by side in their buffer, but got {buffer.type}")


def _load(
    op: ir.Operation, side: integer_products.Side, found: NarrowContraction
) -> tuple[Sequence[int], dict[tuple[int, ...], ir.Value]]:
    """The outer loops of a factor, and by their indices its taps for all lanes."""
    taps, has_lanes = found.factors.taps, found.loops.result[-1] in side.loops
    outer = side.loops[: -2 if has_lanes else -1]
    k_groups: dict[tuple[int, ...], ir.Value] = {}
    with side.read.before(op):
        source = b.collapse_inner(side.read.buffer, 2) if has_lanes else side.read.buffer
        fetch = _load_lanes if has_lanes else _broadcast
        for point in found.loops.points(outer):
            position = at(point, outer)
            k_groups[position] = side.taken(fetch(side.read, source, position, found.lanes, taps))
    return outer, k_groups


def _load_lanes(read: Read, flat: ir.Value, position: Sequence[int], lanes: int, taps: int) -> ir.Value:
    """The taps of all lanes: the whole of the two innermost dimensions, which `flat` has as one."""
    zero = arith.constant(ir.IndexType.get(), 0)
    return b.load(lanes * taps, flat, [*read.position([*position, 0, 0])[:-2], zero])


def _broadcast(read: Read, buffer: ir.Value, position: Sequence[int], lanes: int, taps: int) -> ir.Value:
    """The same taps for every lane."""
    return broadcast_taps(buffer, read.position([*position, 0]), lanes, taps)


def broadcast_taps(buffer: ir.Value, indices: Sequence[ir.Value], lanes: int, taps: int) -> ir.Value:
    """The taps at `indices`, which fill 32 bits, for every lane."""
    k_group = b.bitcast(b.vector_type(1, 32), b.load(taps, buffer, indices))
    attributes = {"static_position": ir.DenseI64ArrayAttr.get([0])}
    i32 = ir.IntegerType.get_signless(32)
    word = ir.Operation.create("vector.extract", results=[i32], operands=[k_group], attributes=attributes).result
    return b.bitcast(b.vector_type(lanes * taps, 32 // taps), vector.broadcast(b.vector_type(lanes, 32), word))


def _prefetch_ahead(found: NarrowContraction, machine: Machine, is_loading: bool) -> None:
    """Prefetch the operands of the next tiles, if there are any; if the loop `is_loading`, only the next weights."""
    axis, size = prefetch.tile_axis(found.data.read, prefetch.INNER), found.factors.bits // 8
    if axis is None:
        return
    if is_loading:
        prefetch.prefetch_to_l1(found.weights.read, size, prefetch.VECTOR, machine)
    else:
        _fetch_next_tile(found.data.read, axis, found.factors.taps)
        prefetch.fetch_weights(found.weights.read, size, machine)


def _fetch_next_tile(read: Read, axis: int, taps: int) -> None:
    """Prefetch the rows of the next tile along `axis`, at the position of this step in the loop."""
    tile, steps = prefetch.tile_size(read, axis), b.shape_of(read.buffer)[-prefetch.INNER]
    # A step of the loop reads one K group: prefetch only those that the current tile has not read.
    stride = -(-tile * read.strides[axis] // (steps * taps))
    indices = list(read.indices)
    indices[axis] = arith.addi(indices[axis], b.index(tile))
    indices[-prefetch.INNER] = arith.muli(indices[-prefetch.INNER], b.index(stride))
    prefetch.prefetch(read.buffer, indices, prefetch.L1)


# `vector.contract` of u8 x s16 -> `vpmaddwd`, which adds the products of a pair of s16 words in each 32-bit lane.
#
# Weights are stored as s16 words, so that only the data is widened at run time.  A K group is four bytes of data (kr =
# 4), which are the same in every lane: they are loaded and broadcast, and a mask and a shift make two operands of words
# of them, of the even bytes and of the odd ones.  The weights lie accordingly, for each K group and vector first the
# even taps of every lane, then the odd ones.

_TAPS = 4


class WidenedDot(InstructionPattern[NarrowContraction]):
    """A contraction of K groups of four bytes by s16 words, whose weights are stored by even and odd taps."""

    roots = ("vector.contract",)

    def __init__(self, instructions: InstructionSet) -> None:
        self._dots = instructions.word_dots

    def check(self, op: ir.Operation) -> NarrowContraction | None:
        if integer_products.factors_of(op) is not integer_products.WIDENED:
            return None
        found = integer_products.narrow_contraction(op)
        if found is None:
            return None
        wanted = ", ".join(map(str, sorted(self._dots)))
        require(found.lanes in self._dots, f"lanes of the result must be one of {wanted}, but got {found.lanes}")
        _check_data(found)
        _check_weights(found)
        return found

    def emit(self, op: ir.Operation, match: NarrowContraction) -> ir.Value:
        found, loops, emit = match, match.loops, self._dots[match.lanes]
        pair, odd = found.data.loops[-2:]
        data, around, outer = _data(op, found), found.weights.loops[:-2], (*found.data.loops[:-2], odd)
        sums = {position: b.extract(found.start, position) for position in np.ndindex(*b.shape_of(found.start)[:-1])}
        others = [loop for loop in (*loops.result[:-1], *loops.reduced) if loop not in (*around, pair)]
        # Weights are loaded next to their use: then they take one register at a time.
        for point in loops.points(around):
            weights = _weights(op, found, at(point, around))
            for other in loops.points(others):
                step = {**point, **other}
                position = at(step, loops.result[:-1])
                sums[position] = emit(sums[position], data[at(step, outer)], weights)
        result = found.start
        for position, own in sums.items():
            result = b.insert(own, result, position) if position else own
        return result


def _check_data(found: NarrowContraction) -> None:
    """The innermost loops of the data are pairs of four adjacent taps, the same in every lane."""
    data, loops = found.data, found.loops
    extents = [loops.extents[loop] for loop in data.loops[-2:]]
    are_taps = extents == [_PAIR] * 2 and not set(data.loops[-2:]) & set(loops.result)
    require(are_taps, "innermost loops of the data must be two reductions of two taps")
    require(data.read.moving[-2:] == (_PAIR, 1), f"taps must lie side by side, but got {data.read.buffer.type}")
    require(loops.result[-1] not in data.loops, "data must be the same in every lane")


def _check_weights(found: NarrowContraction) -> None:
    """The weights are the even taps of every lane, then the odd ones."""
    (pair, odd), lane, read = found.data.loops[-2:], found.loops.result[-1], found.weights.read
    is_ordered = found.weights.loops[-3:] == (odd, lane, pair)
    require(is_ordered, "innermost loops of the weights must be odd taps, lanes and pairs")
    lanes = found.loops.extents[lane]
    is_dense = read.moving[-3:] == (_PAIR * lanes, _PAIR, 1) and b.shape_of(read.buffer)[-3:] == [_PAIR, lanes, _PAIR]
    require(is_dense, f"weights must lie side by side in their buffer, but got {read.buffer.type}")


def _weights(op: ir.Operation, found: NarrowContraction, position: Sequence[int]) -> ir.Value:
    """The s16 weights of all lanes at the indices of the loops around them."""
    side = found.weights
    with side.read.before(op):
        flat = b.collapse_inner(side.read.buffer, 2)
        return b.load(_PAIR * found.lanes, flat, _start(side.read.position([*position, 0, 0])))


def _start(indices: Sequence[ir.Value]) -> list[ir.Value]:
    """Indices of a buffer whose two innermost dimensions became one."""
    return [*indices[:-2], b.index(0)]


def _data(op: ir.Operation, found: NarrowContraction) -> dict[tuple[int, ...], ir.Value]:
    """By the indices of each K group, its even (0) and odd (1) bytes as words for every lane."""
    side, outer = found.data, found.data.loops[:-2]
    loaded: dict[tuple[int, ...], ir.Value] = {}
    with side.read.before(op):
        flat = b.collapse_inner(side.read.buffer, 2)
        for point in found.loops.points(outer):
            position = at(point, outer)
            indices = _start(side.read.position([*position, 0, 0]))
            for odd, words in enumerate(widened(broadcast_taps(flat, indices, found.lanes, _TAPS))):
                loaded[*position, odd] = words
    return loaded


# `math.fma` of the lower halves of words, added to that of the upper ones -> `vdpbf16ps`.


_Pairs = tuple[ir.Value, ir.Value, ir.Value]
"""Accumulators, and two factors: words of two bf16 numbers each."""


class PairDot(InstructionPattern[_Pairs]):
    """Two products of bf16 numbers, which are halves of the same words, added one after the other to normal sums."""

    roots = ("math.fma",)

    def __init__(self, instructions: InstructionSet) -> None:
        self._dots = instructions.bf16_dots

    def check(self, op: ir.Operation) -> _Pairs | None:
        if NORMAL_SUMS not in op.attributes:
            return None
        *lower, start = op.operands
        first = b.defining(start, "math.fma")
        *upper, start = first.operands if first else op.operands
        lanes = b.lanes_of(start)
        require(lanes in self._dots, f"lanes must be one of {', '.join(map(str, self._dots))}, but got {lanes}")
        words = [_word(value, "arith.shli", HALF) for value in lower]
        others = [_word(value, "arith.andi", UPPER_HALF) for value in upper]
        if words[0] is None or words[1] is None or words != others:
            raise MatchFailure("factors must be the lower halves of words, and those of the addend the upper ones")
        return start, words[0], words[1]

    def emit(self, op: ir.Operation, match: _Pairs) -> ir.Value:
        result, *factors = match
        shape = b.shape_of(result)
        emit, pairs = self._dots[shape[-1]], ir.VectorType.get([2 * shape[-1]], ir.BF16Type.get())
        words = [_spread(word, shape) for word in factors]
        for position in np.ndindex(*shape[:-1]):
            start, *own = (b.extract(value, position) if position else value for value in (match[0], *words))
            sums = emit(start, *(b.bitcast(pairs, word) for word in own))
            result = b.insert(sums, result, position) if position else sums
        return result


def _word(value: ir.Value, name: str, constant: int) -> ir.Value | None:
    """The words whose `name` with `constant` is the bits of the f32 numbers `value`; perhaps one for all lanes."""
    cast = b.defining(b.looked_through(value, "vector.broadcast"), "arith.bitcast")
    op = b.defining(cast.operands[0], name) if cast else None
    return op.operands[0] if op and b.splat_value(op.operands[1]) == constant else None


def _spread(word: ir.Value, shape: Sequence[int]) -> ir.Value:
    """Words of all lanes."""
    type_ = ir.VectorType.get(shape, ir.IntegerType.get_signless(32))
    return word if word.type == type_ else vector.broadcast(type_, word)
