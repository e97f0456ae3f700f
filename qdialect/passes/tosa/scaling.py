"""RESCALE: the one op that rounds.

A multiplier is ``q * 2^-shift``, which a double holds exactly.  `qnn.requantize` gets it as a scale and takes it apart
into q * 2^k in [2^30, 2^31) and shift + k again.  With SINGLE_ROUND both pairs give the same integer:
``floor((v * q + 2^(s-1)) / 2^s)`` does not change when both sides of the division are multiplied by 2^k.  The second
nudge of DOUBLE_ROUND is 2^30 whatever k is, so that q must be in that range already, or both shifts be 31 at most.
A multiplier below 2^-32, which quantization flushes to zero, takes every 32-bit number to less than one half, and that
rounds to zero too.

TOSA leaves open what a rescale gives whose scaled value does not fit 32 bits; here it saturates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import LutOp, build
from qdialect.dialect.attribute_kinds import LARGEST_SCALE, SMALLEST_SCALE
from qdialect.dialect.type_constraints import element_of
from qdialect.passes.tosa.conversion import Conversion, Plan, UnsupportedError, flag, mode, require, result_element
from qdialect.quant_math import Rounding

_MIN_SHIFT, _MAX_SHIFT, _MAX_DOUBLE_ROUND_SHIFT = 2, 62, 31
_SIGN_BIT = np.arange(256, dtype=np.uint8) ^ 0x80


@dataclass(frozen=True)
class Scaling:
    """The multipliers of a rescale, one or one for each channel, and how it rounds."""

    multipliers: tuple[float, ...]
    rounding: Rounding


@dataclass(frozen=True)
class QuantizedValues:
    """Quantized values of which `qnn` knows the sign, and their zero point."""

    value: ir.Value
    zero_point: int


def scaling_of(conversion: Conversion, op: ir.Operation) -> Scaling:
    """The scaling of a ``tosa.rescale``; raises `UnsupportedError` where no requantization has it."""
    multipliers = conversion.array(op.operands[1], "multiplier").astype(np.int64).ravel()
    shifts = conversion.array(op.operands[2], "shift").astype(np.int64).ravel()
    pairs = list(zip(multipliers.tolist(), shifts.tolist(), strict=True))
    for multiplier, shift in pairs:
        require(multiplier >= 0, f"multiplier must not be negative, but got {multiplier}")
        wanted = f"in [{_MIN_SHIFT}, {_MAX_SHIFT}]"
        require(_MIN_SHIFT <= shift <= _MAX_SHIFT, f"shift must be {wanted}, but got {shift}")
    rounding = Rounding.FIXED64_DOUBLE if _rounds_twice(op, pairs) else Rounding.FIXED64_UP
    return Scaling(tuple(float(np.ldexp(multiplier, -shift)) for multiplier, shift in pairs), rounding)


def _rounds_twice(op: ir.Operation, pairs: list[tuple[int, int]]) -> bool:
    if mode(op, "rounding_mode") != "DOUBLE_ROUND" or all(
        shift <= _MAX_DOUBLE_ROUND_SHIFT or multiplier == 0 for multiplier, shift in pairs
    ):
        return False
    for multiplier, shift in pairs:
        headroom = 31 - multiplier.bit_length()
        holds = multiplier == 0 or headroom == 0 or shift + headroom <= _MAX_DOUBLE_ROUND_SHIFT
        require(holds, f"multiplier of DOUBLE_ROUND must be 2^30 or more with a shift by {shift}, but got {multiplier}")
    return True


def signed_values(conversion: Conversion, old: ir.Value, zero_point: int, *, is_unsigned: bool) -> QuantizedValues:
    """The quantized values of `old`; where its signless bytes are unsigned ones, less 128, as is their zero point."""
    value = conversion.value(old)
    if not is_unsigned or element_of(value.type) == "ui8":
        return QuantizedValues(value, zero_point)
    require(element_of(value.type) == "i8", f"unsigned input must have 8 bits, but got {element_of(value.type)}")
    return QuantizedValues(_with_other_sign(value), zero_point - 128)


def _with_other_sign(value: ir.Value) -> ir.Value:
    """Bytes less or plus 128: a signed value and an unsigned one in the same 8 bits."""
    identity: dict[str, Any] = {"input_scale": 1.0, "input_zero_point": 0, "output_scale": 1.0, "output_zero_point": 0}
    return build(LutOp, value, element="i8", table=_SIGN_BIT, **identity).output


def input_values(conversion: Conversion, op: ir.Operation) -> QuantizedValues:
    """What a ``tosa.rescale`` reads."""
    is_unsigned = flag(op, "input_unsigned")
    zero_point = conversion.zero_point(op.operands[3], "input_zp", is_unsigned=is_unsigned)
    return signed_values(conversion, op.operands[0], zero_point, is_unsigned=is_unsigned)


@dataclass(frozen=True)
class Target:
    """What a ``tosa.rescale`` gives: element type and zero point in `qnn`, and whether the sign bit must be flipped."""

    element: str
    zero_point: int
    flips_sign: bool

    def finished(self, value: ir.Value) -> ir.Value:
        """`value`, which has element type and zero point of the target, as the op's result."""
        return _with_other_sign(value) if self.flips_sign else value


def target_of(conversion: Conversion, op: ir.Operation) -> Target:
    """The target of a ``tosa.rescale``."""
    element, is_unsigned = result_element(op), flag(op, "output_unsigned")
    zero_point = conversion.zero_point(op.operands[4], "output_zp", is_unsigned=is_unsigned)
    if not is_unsigned or element == "ui8":
        return Target(element, zero_point, flips_sign=False)
    require(element == "i8", f"unsigned result must have 8 bits, but got {element}")
    return Target(element, zero_point - 128, flips_sign=True)


def plan_of(input_scale: float, scaling: Scaling, output_scale: float) -> Plan:
    """Scales with the multipliers of `scaling`: the weights' take what the two others leave.

    A double holds the quotient of scales closely enough for the 31 bits of a multiplier to come back.  Raises
    `UnsupportedError` where the scales of an interface leave no such scales.
    """
    weights = tuple(max(m, SMALLEST_SCALE) * output_scale / input_scale for m in scaling.multipliers)
    if not all(0 < weight <= LARGEST_SCALE for weight in weights):
        raise UnsupportedError(f"weight scales must be in (0, 2^30], but got {max(weights)}")
    return Plan(input_scale, weights, output_scale)


def sole_rescale(value: ir.Value) -> ir.Operation | None:
    """The rescale that alone reads `value`, where it is signed with zero point 0; None where others read it too."""
    users = [use.owner.operation for use in value.uses]
    return users[0] if len(users) == 1 and users[0].name == "tosa.rescale" else None
