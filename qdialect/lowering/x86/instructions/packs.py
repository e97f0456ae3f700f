"""Packs, 128 bits at a time: two vectors of integers as one of integers half as wide; and sums.  All saturate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qdialect._mlir import arith, ir
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instructions.instruction import Array, Instruction, Lanes

_PART = 16
"""Bytes that an instruction packs by themselves."""
_NAMES = {4: "llvm.x86.sse2.{}.128", 8: "llvm.x86.avx2.{}", 16: "llvm.x86.avx512.{}.512"}
_FEATURES = {4: frozenset[str](), 8: frozenset({"avx2"}), 16: frozenset({"avx512bw"})}
# Bits before, and the smallest and the largest integer after.
_WORDS, _BYTES = (32, -(2**15), 2**15 - 1), (16, 0, 255)


def _order(count: int, bits: int) -> list[int]:
    """Where each lane of the result comes from, of the first operand's `count` lanes and then the second's."""
    part = _PART * 8 // bits
    return [side * count + start + i for start in range(0, count, part) for side in (0, 1) for i in range(part)]


def _pack(lanes: int, name: str, limits: tuple[int, int, int]) -> Instruction:
    bits, low, high = limits
    count = lanes * 32 // bits
    result = Lanes(2 * count, "int16" if bits == 32 else "uint8")
    order = _order(count, bits)

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


def _added(first: Array, second: Array) -> Array:
    _, low, high = _WORDS
    return np.clip(first.astype(np.int32) + second, low, high).astype(np.int16)


def _portable_sum(first: ir.Value, second: ir.Value) -> ir.Value:
    _, low, high = _WORDS
    wide = b.vector_type(b.shape_of(first)[0], 32)
    total = arith.addi(arith.extsi(wide, first), arith.extsi(wide, second))
    limited = arith.minsi(arith.maxsi(total, b.splat(wide, low)), b.splat(wide, high))
    return arith.trunci(first.type, limited)


_ALL_WORDS = Lanes(32, "int16")
ADD_WORDS: Mapping[int, Instruction] = {
    16: Instruction(
        "vpaddsw.512",
        "llvm.sadd.sat",
        (frozenset({"avx512bw"}),),
        (_ALL_WORDS, _ALL_WORDS),
        _ALL_WORDS,
        _added,
        _portable_sum,
    )
}
"""By 32-bit lanes of a register: sums of words that saturate; only where `vpsravw` shifts each by its own number."""
