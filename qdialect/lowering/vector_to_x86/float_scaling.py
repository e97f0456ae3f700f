"""Divisions of f32 numbers by constants as products, and products with powers of two by `vscalefps`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from qdialect.arithmetic.float32.machine import EXPONENT_BIAS, ROUNDER, SCALE_BOUND, SCALED
from qdialect.arithmetic.quantization import LEAST_DIVIDEND, ShortReciprocal
from qdialect.ir._mlir import arith, ir, math, scf, vector
from qdialect.lowering.ir import building as b
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure

# Helpers of patterns on vectors of float32 numbers: constants, bits, and whether all lanes are in a range.

LANES = 16
"""Lanes of a vector that the patterns match."""


def splat(type_: ir.VectorType, value: float) -> ir.Value:
    """A constant that is `value` in all lanes."""
    number = ir.FloatAttr.get(type_.element_type, value)
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number))


def as_integer(number: float) -> int:
    """The bits of a float32 number: those of positive numbers are ordered as the numbers are."""
    return int(np.float32(number).view(np.int32))


def folded(fold: Callable[[ir.Value, ir.Value], ir.Value], values: ir.Value) -> ir.Value:
    """One vector of `LANES` lanes of all."""
    type_ = ir.VectorType(values.type)
    count = int(np.prod(type_.shape)) // LANES
    rows = vector.shape_cast(ir.VectorType.get([count, LANES], type_.element_type), values)
    return reduce(fold, (b.extract(rows, (row,)) for row in range(count)))


def every(lanes: ir.Value) -> ir.Value:
    """Whether all of a vector of bits are set."""
    count = int(np.prod(b.shape_of(lanes)))
    bit = ir.IntegerType.get_signless(1)
    flat = vector.shape_cast(ir.VectorType.get([count], bit), lanes)
    return vector.reduction(bit, vector.CombiningKind.AND, flat)


# Divisions of float32 numbers by a short constant -> two products, where the divider is slow.
#
# See `ShortReciprocal`.  Vectors with a smaller number than it allows are divided.

DIVIDED = "qnn.divided"
"""The attribute of a division that is not rewritten."""


class ConstantDivision(InstructionPattern[ShortReciprocal]):
    """[..., 16 n] float32 numbers divided by one constant with an odd part of few bits, such as 6 or 49."""

    name: ClassVar[str] = "constant-division"
    roots = ("arith.divf",)

    def check(self, op: ir.Operation) -> ShortReciprocal | MatchFailure | None:
        divisor = _splat_of(op.operands[1])
        if divisor is None or DIVIDED in op.attributes:
            return None
        type_ = op.results[0].type
        if not isinstance(type_, ir.VectorType) or not isinstance(type_.element_type, ir.F32Type):
            return None
        if b.lanes_of(op.results[0]) % LANES:
            return MatchFailure(f"must be of vectors of a multiple of 16 lanes, but got {type_}")
        reciprocal = ShortReciprocal.of(divisor)
        return reciprocal or MatchFailure(
            f"must have a divisor from 2^-20 to 2^20 of 2 to 19 bits, but got {divisor:g}"
        )

    def emit(self, op: ir.Operation, match: ShortReciprocal) -> ir.Value:
        numbers, divisor = op.operands
        type_ = ir.VectorType(numbers.type)
        choice = scf.IfOp(_fit(numbers), [type_], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            rest = arith.mulf(numbers, splat(type_, match.low))
            scf.YieldOp([math.fma(numbers, splat(type_, match.high), rest)])
        with ir.InsertionPoint(choice.else_block):
            quotient = arith.divf(numbers, divisor)
            quotient.owner.attributes[DIVIDED] = ir.UnitAttr.get()
            scf.YieldOp([quotient])
        return choice.results[0]


def _splat_of(value: ir.Value) -> float | None:
    """The number of a constant that is the same in all lanes."""
    constant = b.defining(value, "arith.constant")
    attribute = constant.attributes["value"] if constant else None
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    number = attribute.get_splat_value()
    return ir.FloatAttr(number).value if isinstance(number, ir.FloatAttr) else None


def _fit(numbers: ir.Value) -> ir.Value:
    """Whether all numbers are zeros or not too small: 2 |a| as an integer, from which 1 is subtracted, wraps at 0."""
    bits = arith.bitcast(ir.VectorType.get(b.shape_of(numbers), ir.IntegerType.get_signless(32)), numbers)
    type_ = ir.VectorType(bits.type)
    sizes = arith.subi(arith.shli(bits, b.splat(type_, 1)), b.splat(type_, 1))
    smallest = folded(arith.minui, sizes)
    bound = b.splat(ir.VectorType(smallest.type), 2 * as_integer(LEAST_DIVIDEND) - 1)
    return every(arith.cmpi(arith.CmpIPredicate.uge, smallest, bound))


# A product with a power of two in one `vscalefps`.

SCALE = "llvm.x86.avx512.mask.scalef.ps.512"
"""(vector<16xf32>, exponents vector<16xf32>, pass-through vector<16xf32>, mask i16, rounding i32) -> vector<16xf32>."""

# Half to even, exceptions suppressed.
_ROUNDING = 8
_ROUNDS_TO_ZERO = -151.0
"""Products with an exponent of this or less round to zero."""


@dataclass(frozen=True)
class _Scaled:
    """``value * 2^k`` with `biased` = k + 254 + `ROUNDER`."""

    value: ir.Value
    biased: ir.Value


class ScaleExponent(InstructionPattern[_Scaled]):
    """``value * 2^h * 2^(k - h)`` of [..., 16 n] float32 numbers, the first product exact.

    It is tagged where k is in range.
    """

    name: ClassVar[str] = "scale-exponent"
    roots = ("arith.mulf",)

    def __init__(self, masks: bool = True) -> None:
        """With `masks`, lanes whose product rounds to zero are masked out."""
        self._scale = _masked if masks else _scaled

    def check(self, op: ir.Operation) -> _Scaled | MatchFailure | None:
        if SCALED not in op.attributes:
            return None
        first = b.defining(op.operands[0], "arith.mulf")
        # The op `name` whose result is the exponent of `value`.
        cast = b.defining(op.operands[1], "arith.bitcast")
        shifted = b.defining(cast.operands[0], "arith.shli") if cast else None
        rest = b.defining(shifted.operands[0], "arith.subi") if shifted else None
        biased = _biased(rest)
        if first is None or biased is None:
            return MatchFailure("must be the product of a number and two powers of two")
        lanes = b.lanes_of(op.results[0])
        if lanes % LANES:
            return MatchFailure(f"vectors must have a multiple of 16 lanes, but got {lanes}")
        return _Scaled(first.operands[0], biased)

    def emit(self, op: ir.Operation, match: _Scaled) -> ir.Value:
        type_ = ir.VectorType(op.results[0].type)
        exponents = arith.subf(match.biased, splat(type_, ROUNDER + 2 * EXPONENT_BIAS))
        *outer, lanes = list(type_.shape)
        blocks = ir.VectorType.get([*outer, lanes // LANES, LANES], type_.element_type)
        values, powers = (vector.shape_cast(blocks, value) for value in (match.value, exponents))
        result = splat(blocks, 0.0)
        for position in np.ndindex(*list(blocks.shape)[:-1]):
            result = b.insert(self._scale(b.extract(values, position), b.extract(powers, position)), result, position)
        return vector.shape_cast(type_, result)


def _biased(rest: ir.Operation | None) -> ir.Value | None:
    """The halved operand, as a float32 number."""
    cast = b.defining(rest.operands[0], "arith.bitcast") if rest else None
    return cast.operands[0] if cast else None


def _masked(value: ir.Value, exponents: ir.Value) -> ir.Value:
    """The product, plus zero where it rounds to zero: some cores take 60 ns to find that out in the instruction.

    2^-151 times a value below 2, as a tagged product has it, is less than half of the smallest number.  NaN stays.
    """
    least = splat(ir.VectorType(value.type), _ROUNDS_TO_ZERO)
    lanes = arith.cmpf(arith.CmpFPredicate.UGT, exponents, least)
    mask = b.bitcast(ir.VectorType.get([1], ir.IntegerType.get_signless(16)), lanes)
    return _emit(value, exponents, b.extract_lane(mask, 0))


def _scaled(value: ir.Value, exponents: ir.Value) -> ir.Value:
    i16 = ir.IntegerType.get_signless(16)
    return _emit(value, exponents, arith.constant(i16, ir.IntegerAttr.get(i16, -1)))


def _emit(value: ir.Value, exponents: ir.Value, mask: ir.Value) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    type_ = ir.VectorType(value.type)
    rounding = arith.constant(i32, ir.IntegerAttr.get(i32, _ROUNDING))
    return b.intrinsic(SCALE, type_, value, exponents, splat(type_, 0.0), mask, rounding)


# Removes the lower clamp of a value that only a product in one `vscalefps` uses: masked lanes do not need it.
#
#     bounded = x < bound ? bound : x
#     f(bounded) * 2^k(bounded)          ->        f(x) * 2^k(x)
#
# The bound is tagged where k(x) is -151 or less from it down, with and without it.  There `ScaleExponent` masks the
# product to zero, whatever f(x) is, infinity and NaN too: the bound changes no result.  A NaN passes through both.

_LANEWISE = ("arith", "math")
_SHAPES = ("vector.shape_cast", "vector.extract", "vector.bitcast")


class ScaleBound(InstructionPattern[ir.Value]):
    """The bounded number, all of whose uses end in products that `ScaleExponent` rewrites: the number itself."""

    name: ClassVar[str] = "scale-bound"
    roots = ("arith.select",)

    def check(self, op: ir.Operation) -> ir.Value | MatchFailure | None:
        if SCALE_BOUND not in op.attributes:
            return None
        return _escape(op) or op.operands[2]

    def emit(self, op: ir.Operation, match: ir.Value) -> ir.Value:
        return match


def _escape(op: ir.Operation) -> MatchFailure | None:
    """Why something other than such products is computed from the result of `op`."""
    seen: set[ir.Operation] = set()
    left = _users(op)
    while left:
        user = left.pop()
        if user in seen or _is_scaling(user):
            continue
        if reason := _other_use(user):
            return reason
        seen.add(user)
        left += _users(user) if SCALED not in user.attributes else []
    return None


def _users(op: ir.Operation) -> list[ir.Operation]:
    return [use.owner.operation for result in op.results for use in result.uses]


def _is_scaling(op: ir.Operation) -> bool:
    """Whether `op` is the rewritten form of such a product."""
    return op.name == "llvm.call_intrinsic" and ir.StringAttr(op.attributes["intrin"]).value == SCALE


def _other_use(op: ir.Operation) -> MatchFailure | None:
    """Why `op` is neither such a product nor on the way to one."""
    if SCALED in op.attributes:
        found = ScaleExponent().check(op)
        return found if isinstance(found, MatchFailure) else None
    if op.name.split(".")[0] in _LANEWISE or op.name in _SHAPES:
        return None
    return MatchFailure(f"must be used in scaled products alone, but '{op.name}' reads it")
