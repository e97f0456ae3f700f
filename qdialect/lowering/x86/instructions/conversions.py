"""Conversions of f32 numbers to integers, rounded by the instruction itself, whatever mode the thread is in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from qdialect._mlir import arith, ir, math
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instructions.instruction import Array, Instruction, Lanes

_LANES = 16
_SMALLEST = -(2**31)
# Exceptions suppressed.
_ROUNDINGS: Mapping[str, tuple[int, Callable[[Array], Array], Callable[[ir.Value], ir.Value]]] = {
    "math.roundeven": (8, np.rint, lambda value: math.roundeven(value)),
    "math.floor": (9, np.floor, lambda value: math.floor(value)),
}


def _convert(how: int, rounded: Callable[[Array], Array], emit: Callable[[ir.Value], ir.Value]) -> Instruction:
    source, result = Lanes(_LANES, "float32"), Lanes(_LANES, "int32")

    def meaning(numbers: Array) -> Array:
        found = rounded(numbers.astype(np.float64))
        fits = (found >= _SMALLEST) & (found < -_SMALLEST)
        return np.where(fits, found, _SMALLEST).astype(np.int64).astype(np.int32)

    def portable(numbers: ir.Value) -> ir.Value:
        found = emit(numbers)
        low, high = (_splat(source.type, limit) for limit in (_SMALLEST, -_SMALLEST))
        above = arith.cmpf(arith.CmpFPredicate.OGE, found, low)
        fits = arith.andi(above, arith.cmpf(arith.CmpFPredicate.OLT, found, high))
        converted = arith.fptosi(result.type, arith.select(fits, found, _splat(source.type, 0)))
        return arith.select(fits, converted, b.splat(result.type, _SMALLEST))

    def arguments(numbers: ir.Value) -> Sequence[ir.Value]:
        i16, i32 = ir.IntegerType.get_signless(16), ir.IntegerType.get_signless(32)
        every_lane = arith.constant(i16, ir.IntegerAttr.get(i16, -1))
        rounding = arith.constant(i32, ir.IntegerAttr.get(i32, how))
        return numbers, b.splat(result.type, 0), every_lane, rounding

    name, needed = "llvm.x86.avx512.mask.cvtps2dq.512", (frozenset({"avx512f"}),)
    return Instruction("vcvtps2dq.512", name, needed, (source,), result, meaning, portable, arguments)


def _splat(type_: ir.VectorType, value: float) -> ir.Value:
    number = ir.FloatAttr.get(type_.element_type, value)
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number))


VCVTPS2DQ: Mapping[str, Instruction] = {name: _convert(*how) for name, how in _ROUNDINGS.items()}
"""By the op that rounds: 16 numbers.  One that 32 bits do not hold, or that is none, becomes -2^31."""
