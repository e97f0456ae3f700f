"""Dot products: in each 32-bit lane the products of narrower integers are added to an accumulator.

``vpdpbusd`` sums four products of an unsigned by a signed byte, ``vpdpwssd`` and ``vpmaddwd`` two of signed words; all
are exact modulo 2^32.  Without VNNI, ``vpmaddwd`` and an addition are ``vpdpwssd``, and bytes are widened first: of the
four bytes of a lane, the even ones make one operand of words and the odd ones another.  ``vpmaddubsw`` sums two
products of bytes to a word, which saturates: it is for weights that keep the bound of
`qdialect.lowering.cost.register_tiles`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from qdialect.arithmetic.machine import multiply_add
from qdialect.ir._mlir import arith, ir, math
from qdialect.lowering.instructions.instruction import Array, Instruction, Lanes, every
from qdialect.lowering.ir import building as b

EmitDot = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]
"""(accumulators, first factors, second factors) -> accumulators."""

_BYTES_PER_LANE, _WORDS_PER_LANE = 4, 2
_WORD_RANGE = -(2**15), 2**15 - 1
_VNNI = (frozenset({"avx512vnni"}),)
_SHORT_VNNI = (frozenset({"avx512vnni", "avx512vl"}), frozenset({"avxvnni"}))


def _sums(acc: Array, x: Array, w: Array) -> Array:
    products = x.astype(np.int64) * w.astype(np.int64)
    return (acc.astype(np.int64) + products.reshape(len(acc), -1).sum(axis=1)).astype(np.uint64).astype(np.uint32)


def _dot(acc: Array, x: Array, w: Array) -> Array:
    return _sums(acc, x, w).view(np.int32)


def _pair_sums(x: Array, w: Array) -> Array:
    return _dot(np.zeros(len(x) // _WORDS_PER_LANE, np.int32), x, w)


def _products(x: ir.Value, w: ir.Value, is_unsigned: bool, per_lane: int) -> list[ir.Value]:
    """Products of 32 bits, one vector for each of the factors of a lane."""
    count = b.shape_of(x)[0]
    wide = b.vector_type(count, 32)
    left = arith.extui(wide, x) if is_unsigned else arith.extsi(wide, x)
    products = arith.muli(left, arith.extsi(wide, w))
    return [every(products, start, per_lane) for start in range(per_lane)]


def _portable_bytes(is_unsigned: bool, acc: ir.Value, x: ir.Value, w: ir.Value) -> ir.Value:
    for product in _products(x, w, is_unsigned, _BYTES_PER_LANE):
        acc = arith.addi(acc, product)
    return acc


def _portable_pairs(x: ir.Value, w: ir.Value) -> ir.Value:
    return arith.addi(*_products(x, w, False, _WORDS_PER_LANE))


def _vnni(name: str, lanes: int, dtypes: tuple[str, str], portable: EmitDot) -> Instruction:
    per_lane = 4 // np.dtype(dtypes[0]).itemsize
    sums, factors = Lanes(lanes, "int32"), (Lanes(lanes * per_lane, dtype) for dtype in dtypes)
    features = _VNNI if lanes == 16 else _SHORT_VNNI
    bits = lanes * 32
    return Instruction(
        f"{name}.{bits}", f"llvm.x86.avx512.{name}.{bits}", features, (sums, *factors), sums, _dot, portable
    )


VPDPBUSD: Mapping[int, Instruction] = {
    lanes: _vnni("vpdpbusd", lanes, ("uint8", "int8"), partial(_portable_bytes, True)) for lanes in (16, 8, 4)
}
"""By 32-bit lanes: (accumulators, unsigned bytes, signed bytes)."""
VPDPWSSD: Mapping[int, Instruction] = {
    lanes: _vnni("vpdpwssd", lanes, ("int16", "int16"), lambda acc, x, w: arith.addi(acc, _portable_pairs(x, w)))
    for lanes in (16, 8, 4)
}
"""By 32-bit lanes: (accumulators, words, words)."""


def _signed_vnni(lanes: int) -> Instruction:
    sums, factors = Lanes(lanes, "int32"), Lanes(lanes * _BYTES_PER_LANE, "int8")
    name, needed = f"vpdpbssd.{lanes * 32}", (frozenset({"avxvnniint8"}),)
    operands = (sums, factors, factors)
    return Instruction(name, f"llvm.x86.avx2.{name}", needed, operands, sums, _dot, partial(_portable_bytes, False))


VPDPBSSD: Mapping[int, Instruction] = {lanes: _signed_vnni(lanes) for lanes in (8, 4)}
"""By 32-bit lanes: (accumulators, signed bytes, signed bytes)."""


def _multiply_add(lanes: int, intrinsic: str, feature: str) -> Instruction:
    factors = (Lanes(2 * lanes, "int16"),) * 2
    needed = (frozenset({feature} if feature else ()),)
    sums = Lanes(lanes, "int32")
    return Instruction(f"vpmaddwd.{lanes * 32}", intrinsic, needed, factors, sums, _pair_sums, _portable_pairs)


VPMADDWD: Mapping[int, Instruction] = {
    16: _multiply_add(16, "llvm.x86.avx512.pmaddw.d.512", "avx512bw"),
    8: _multiply_add(8, "llvm.x86.avx2.pmadd.wd", "avx2"),
    4: _multiply_add(4, "llvm.x86.sse2.pmadd.wd", ""),
}
"""By 32-bit lanes: (words, words)."""


def word_dot(lanes: int) -> EmitDot:
    """``vpdpwssd`` by ``vpmaddwd``."""
    return lambda acc, x, w: arith.addi(acc, VPMADDWD[lanes].emit(x, w))


def _saturated_pairs(x: Array, w: Array) -> Array:
    return np.clip(_pair_sums(x, w), *_WORD_RANGE).astype(np.int16)


def _portable_saturated_pairs(x: ir.Value, w: ir.Value) -> ir.Value:
    total = arith.addi(*_products(x, w, True, _WORDS_PER_LANE))
    type_ = ir.VectorType(total.type)
    low, high = (b.splat(type_, limit) for limit in _WORD_RANGE)
    return arith.trunci(b.vector_type(type_.shape[0], 16), arith.minsi(arith.maxsi(total, low), high))


def _multiply_add_bytes(lanes: int, intrinsic: str, feature: str) -> Instruction:
    operands, sums = (Lanes(4 * lanes, "uint8"), Lanes(4 * lanes, "int8")), Lanes(2 * lanes, "int16")
    name, needed = f"vpmaddubsw.{lanes * 32}", (frozenset({feature}),)
    return Instruction(name, intrinsic, needed, operands, sums, _saturated_pairs, _portable_saturated_pairs)


VPMADDUBSW: Mapping[int, Instruction] = {
    16: _multiply_add_bytes(16, "llvm.x86.avx512.pmaddubs.w.512", "avx512bw"),
    8: _multiply_add_bytes(8, "llvm.x86.avx2.pmadd.ub.sw", "avx2"),
    4: _multiply_add_bytes(4, "llvm.x86.ssse3.pmadd.ub.sw.128", "ssse3"),
}
"""By 32-bit lanes: (unsigned bytes, signed bytes)."""


def pair_dot(lanes: int) -> EmitDot:
    """``vpdpbusd`` by ``vpmaddubsw``, where the sum of every two products fits 16 bits."""

    def emit(acc: ir.Value, x: ir.Value, w: ir.Value) -> ir.Value:
        sums = VPMADDUBSW[lanes].emit(x, w)
        return arith.addi(acc, VPMADDWD[lanes].emit(sums, b.splat(ir.VectorType(sums.type), 1)))

    return emit


def widened(data: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Unsigned bytes as words: the even ones of them, and the odd ones."""
    words = b.vector_type(b.shape_of(data)[0] // 2, 16)
    pairs = b.bitcast(words, data)
    return arith.andi(pairs, b.splat(words, 255)), arith.shrui(pairs, b.splat(words, 8))


def byte_dot(lanes: int) -> EmitDot:
    """``vpdpbusd`` by ``vpmaddwd``."""

    def emit(acc: ir.Value, x: ir.Value, w: ir.Value) -> ir.Value:
        words = b.vector_type(2 * lanes, 16)
        even, odd = widened(x)
        w, eight = b.bitcast(words, w), b.splat(words, 8)
        first = VPMADDWD[lanes].emit(even, arith.shrsi(arith.shli(w, eight), eight))
        second = VPMADDWD[lanes].emit(odd, arith.shrsi(w, eight))
        return arith.addi(arith.addi(acc, first), second)

    return emit


UPPER_HALF, HALF = -1 << 16, 16
"""The bits of a word that are a bf16 number as f32, and where they begin."""


def _bf16_dot(acc: Array, x: Array, w: Array) -> Array:
    x, w = x.astype(np.float32), w.astype(np.float32)
    with np.errstate(all="ignore"):
        return multiply_add(x[::2], w[::2], multiply_add(x[1::2], w[1::2], acc))


def _halves(pairs: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The upper and the lower number of each pair, as f32."""
    words = b.vector_type(b.shape_of(pairs)[0] // 2, 32)
    pairs, floats = b.bitcast(words, pairs), ir.VectorType.get(words.shape, ir.F32Type.get())
    upper, lower = arith.andi(pairs, b.splat(words, UPPER_HALF)), arith.shli(pairs, b.splat(words, HALF))
    return b.bitcast(floats, upper), b.bitcast(floats, lower)


def _portable_bf16(acc: ir.Value, x: ir.Value, w: ir.Value) -> ir.Value:
    for own, other in zip(_halves(x), _halves(w), strict=True):
        acc = math.fma(own, other, acc)
    return acc


def _bf16_pairs(lanes: int) -> Instruction:
    sums, factors = Lanes(lanes, "float32"), Lanes(2 * lanes, "bfloat16")
    name, needed = f"vdpbf16ps.{lanes * 32}", (frozenset({"avx512bf16"}),)
    intrinsic, operands = f"llvm.x86.avx512bf16.dpbf16ps.{lanes * 32}", (sums, factors, factors)
    return Instruction(name, intrinsic, needed, operands, sums, _bf16_dot, _portable_bf16)


VDPBF16PS: Mapping[int, Instruction] = {16: _bf16_pairs(16)}
"""By 32-bit lanes: (accumulators, pairs of bf16, pairs of bf16). The product of the upper numbers is added first, each
sum is rounded once. It takes subnormal numbers for zeros, in sums too; its meaning holds where there are none."""
