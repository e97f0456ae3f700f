"""Instructions that move and convert lanes: permutes, packs, sums that saturate, and conversions that round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from qdialect.ir._mlir import arith, ir, math
from qdialect.lowering.instructions.instruction import Array, Instruction, Lanes
from qdialect.lowering.ir import building as b

# Permutes: each lane of the result is the lane of an operand that an index names.

_PART = 16
"""Bytes that `vpshufb` looks up by themselves."""


def _looked_up(low: Array, indices: Array, high: Array) -> Array:
    return np.concatenate([low, high])[indices.astype(np.int64) % (2 * len(low))]


def _portable_look_up(low: ir.Value, indices: ir.Value, high: ir.Value) -> ir.Value:
    count = b.shape_of(low)[0]
    return b.picked(b.shuffle(low, high, list(range(2 * count))), b.wrapped(indices, 2 * count))


def _permuted(source: Array, indices: Array) -> Array:
    return source[indices.astype(np.int64) % len(source)]


def _portable_permute(source: ir.Value, indices: ir.Value) -> ir.Value:
    return b.picked(source, b.wrapped(indices, b.shape_of(source)[0]))


def _shuffled(table: Array, indices: Array) -> Array:
    starts = np.arange(len(table)) // _PART * _PART
    return np.where(indices > 127, 0, table[starts + indices % _PART]).astype(np.uint8)


def _portable_shuffle(table: ir.Value, indices: ir.Value) -> ir.Value:
    type_ = ir.VectorType(table.type)
    count = type_.shape[0]
    starts = b.constant((np.arange(count) // _PART * _PART).astype(np.int8))
    zeros = b.splat(type_, 0)
    found = b.picked(table, arith.addi(b.wrapped(indices, _PART), starts))
    return arith.select(arith.cmpi(arith.CmpIPredicate.slt, indices, zeros), zeros, found)


def _bytes(count: int) -> Lanes:
    return Lanes(count, "uint8")


VPERMI2B = Instruction(
    "vpermi2b.512",
    "llvm.x86.avx512.vpermi2var.qi.512",
    (frozenset({"avx512vbmi"}),),
    (_bytes(64),) * 3,
    _bytes(64),
    _looked_up,
    _portable_look_up,
)
"""(the first 64 entries of a table, indices, the other 64)."""


def _words(count: int) -> Lanes:
    return Lanes(count, "int32")


VPERMI2D = Instruction(
    "vpermi2d.512",
    "llvm.x86.avx512.vpermi2var.d.512",
    (frozenset({"avx512f"}),),
    (_words(16),) * 3,
    _words(16),
    _looked_up,
    _portable_look_up,
)
"""(the first 16 entries of a table, indices, the other 16)."""

VPERMD: Mapping[int, Instruction] = {
    lanes: Instruction(
        f"vpermd.{lanes * 32}",
        intrinsic,
        (frozenset({feature}),),
        (_words(lanes),) * 2,
        _words(lanes),
        _permuted,
        _portable_permute,
    )
    for lanes, intrinsic, feature in (
        (16, "llvm.x86.avx512.permvar.si.512", "avx512f"),
        (8, "llvm.x86.avx2.permd", "avx2"),
    )
}
"""By 32-bit lanes: (integers, indices)."""

VPSHUFB: Mapping[int, Instruction] = {
    lanes: Instruction(
        f"vpshufb.{lanes * 32}",
        intrinsic,
        (frozenset({feature}),),
        (_bytes(lanes * 4),) * 2,
        _bytes(lanes * 4),
        _shuffled,
        _portable_shuffle,
    )
    for lanes, intrinsic, feature in (
        (16, "llvm.x86.avx512.pshuf.b.512", "avx512bw"),
        (8, "llvm.x86.avx2.pshuf.b", "avx2"),
        (4, "llvm.x86.ssse3.pshuf.b.128", "ssse3"),
    )
}
"""By 32-bit lanes: (a table for every 16 bytes, indices); zero where the index has its top bit set."""


# Packs, 128 bits at a time: two vectors of integers as one of integers half as wide; and sums.  All saturate.

_NAMES = {4: "llvm.x86.sse2.{}.128", 8: "llvm.x86.avx2.{}", 16: "llvm.x86.avx512.{}.512"}
_FEATURES = {4: frozenset[str](), 8: frozenset({"avx2"}), 16: frozenset({"avx512bw"})}
# Bits before, and the smallest and the largest integer after.
_WORDS, _BYTES = (32, -(2**15), 2**15 - 1), (16, 0, 255)


def _pack(lanes: int, name: str, limits: tuple[int, int, int]) -> Instruction:
    bits, low, high = limits
    count = lanes * 32 // bits
    result = Lanes(2 * count, "int16" if bits == 32 else "uint8")
    # Where each lane of the result comes from, of the first operand's `count` lanes and then the second's.
    part = _PART * 8 // bits
    order = [side * count + start + i for start in range(0, count, part) for side in (0, 1) for i in range(part)]

    def meaning(first: Array, second: Array) -> Array:
        return np.clip(np.concatenate([first, second]), low, high)[order].astype(result.dtype)

    def portable(first: ir.Value, second: ir.Value) -> ir.Value:
        both = b.shuffle(first, second, order)
        type_ = ir.VectorType(both.type)
        limited = arith.minsi(arith.maxsi(both, b.splat(type_, low)), b.splat(type_, high))
        return arith.trunci(result.type, limited)

    operand = Lanes(count, f"int{bits}")
    intrinsic = _NAMES[lanes].format(name)
    features = (_FEATURES[lanes],)
    return Instruction(f"v{name}.{lanes * 32}", intrinsic, features, (operand, operand), result, meaning, portable)


PACK_WORDS: Mapping[int, Instruction] = {lanes: _pack(lanes, "packssdw", _WORDS) for lanes in (16, 8, 4)}
"""By 32-bit lanes of an operand: signed words of two vectors of 32-bit integers."""
PACK_BYTES: Mapping[int, Instruction] = {lanes: _pack(lanes, "packuswb", _BYTES) for lanes in (16, 8, 4)}
"""By 32 bits of an operand: unsigned bytes of two vectors of words."""


# Conversions of f32 numbers to integers: rounded by the instruction's own mode, or by the thread's.
#
# Those of 512 bits have a static rounding mode, whatever the thread's mode.  `cvtps2dq`, which every CPU has, rounds as
# all arithmetic of the thread does: to even, unless a program has changed that.

_WIDE, _NARROW = 16, 4
_SMALLEST = -(2**31)
# Exceptions suppressed.
_ROUNDINGS: Mapping[str, tuple[int, Callable[[Array], Array], Callable[[ir.Value], ir.Value]]] = {
    "math.roundeven": (8, np.rint, lambda value: math.roundeven(value)),
    "math.floor": (9, np.floor, lambda value: math.floor(value)),
}


def _conversion(
    name: str, intrinsic: str, needed: frozenset[str], lanes: int, rounding: str, how: int | None = None
) -> Instruction:
    """The conversion of `lanes` numbers that rounds like the op `rounding`; `how` is the intrinsic's rounding mode."""
    source, result = Lanes(lanes, "float32"), Lanes(lanes, "int32")
    _, rounded, emit = _ROUNDINGS[rounding]

    def meaning(numbers: Array) -> Array:
        found = rounded(numbers.astype(np.float64))
        fits = (found >= _SMALLEST) & (found < -_SMALLEST)
        return np.where(fits, found, _SMALLEST).astype(np.int64).astype(np.int32)

    def portable(numbers: ir.Value) -> ir.Value:
        found = emit(numbers)
        low, high = (b.splat(source.type, limit) for limit in (_SMALLEST, -_SMALLEST))
        above = arith.cmpf(arith.CmpFPredicate.OGE, found, low)
        fits = arith.andi(above, arith.cmpf(arith.CmpFPredicate.OLT, found, high))
        converted = arith.fptosi(result.type, arith.select(fits, found, b.splat(source.type, 0)))
        return arith.select(fits, converted, b.splat(result.type, _SMALLEST))

    def arguments(numbers: ir.Value) -> Sequence[ir.Value]:
        if how is None:
            return (numbers,)
        i16, i32 = ir.IntegerType.get_signless(16), ir.IntegerType.get_signless(32)
        every_lane = arith.constant(i16, ir.IntegerAttr.get(i16, -1))
        mode = arith.constant(i32, ir.IntegerAttr.get(i32, how))
        return numbers, b.splat(result.type, 0), every_lane, mode

    return Instruction(name, intrinsic, (needed,), (source,), result, meaning, portable, arguments)


_MASKED, _AVX512 = "llvm.x86.avx512.mask.cvtps2dq.512", frozenset({"avx512f"})

VCVTPS2DQ: Mapping[str, Instruction] = {
    rounding: _conversion("vcvtps2dq.512", _MASKED, _AVX512, _WIDE, rounding, how)
    for rounding, (how, _, _) in _ROUNDINGS.items()
}
"""By the op that rounds: 16 numbers.  One that is out of range of i32, or NaN, becomes -2^31."""

CVTPS2DQ: Mapping[str, Instruction] = {
    "math.roundeven": _conversion("cvtps2dq.128", "llvm.x86.sse2.cvtps2dq", frozenset(), _NARROW, "math.roundeven")
}
"""The same of four numbers, in the mode of the thread."""
