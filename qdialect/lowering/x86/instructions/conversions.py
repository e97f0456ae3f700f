"""Conversions of f32 numbers to integers that round: as the instruction says, or as the thread's mode does.

Those of 512 bits say how they round, whatever mode the thread is in.  `cvtps2dq`, which every CPU has, rounds as all
arithmetic of the thread does: to even, unless a program has changed that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from qdialect._mlir import arith, ir, math
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instructions.instruction import Array, Instruction, Lanes

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
    """The conversion of `lanes` numbers that rounds as the op `rounding` does, which `how` says to the intrinsic."""
    source, result = Lanes(lanes, "float32"), Lanes(lanes, "int32")
    _, rounded, emit = _ROUNDINGS[rounding]

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
        if how is None:
            return (numbers,)
        i16, i32 = ir.IntegerType.get_signless(16), ir.IntegerType.get_signless(32)
        every_lane = arith.constant(i16, ir.IntegerAttr.get(i16, -1))
        mode = arith.constant(i32, ir.IntegerAttr.get(i32, how))
        return numbers, b.splat(result.type, 0), every_lane, mode

    return Instruction(name, intrinsic, (needed,), (source,), result, meaning, portable, arguments)


def _splat(type_: ir.VectorType, value: float) -> ir.Value:
    number = ir.FloatAttr.get(type_.element_type, value)
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number))


_MASKED, _AVX512 = "llvm.x86.avx512.mask.cvtps2dq.512", frozenset({"avx512f"})

VCVTPS2DQ: Mapping[str, Instruction] = {
    rounding: _conversion("vcvtps2dq.512", _MASKED, _AVX512, _WIDE, rounding, how)
    for rounding, (how, _, _) in _ROUNDINGS.items()
}
"""By the op that rounds: 16 numbers.  One that 32 bits do not hold, or that is none, becomes -2^31."""

CVTPS2DQ: Mapping[str, Instruction] = {
    "math.roundeven": _conversion("cvtps2dq.128", "llvm.x86.sse2.cvtps2dq", frozenset(), _NARROW, "math.roundeven")
}
"""The same of four numbers, in the mode of the thread."""
