"""Permutes: each lane of the result is the lane of an operand that an index names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qdialect._mlir import arith, ir
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instructions.instruction import Array, Instruction, Lanes

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
