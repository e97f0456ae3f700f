"""Sums and products of 8-bit quantized values as TOSA writes them: rescale both to 32 bits, join, rescale back.

A sum is that of `qnn.add` where the larger of the operands' multipliers is 2^19: they meet at twice the larger scale,
with 20 more bits.  A product is that of `qnn.mul` where the operands lose their zero points and nothing else.  What is
neither stays a sum or a product of 32-bit integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import AddOp, MulOp, build
from qdialect.dialect.attribute_kinds import is_scale
from qdialect.dialect.binary_quantization import attributes_of
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of
from qdialect.passes.quant_types import storage_type
from qdialect.passes.tosa.conversion import Conversion, UnsupportedError, result_element
from qdialect.passes.tosa.scaling import QuantizedValues, Scaling, Target, input_values, scaling_of
from qdialect.quant_math import AddArithmetic, BinaryQuantization, QuantParams, Rounding, quantize_multiplier
from qdialect.quant_math.common_scale import scale_of_sum

_LIFT = 2.0**20
_LARGER = _LIFT / 2


@dataclass(frozen=True)
class Pair:
    """Two values of 8-bit quantized values that meet as 32-bit integers, their rescales, and the rescale back."""

    lhs: ir.Value
    rhs: ir.Value
    rescales: tuple[ir.Operation, ir.Operation]
    scaling: Scaling


@dataclass(frozen=True)
class Sum(Pair):
    """A sum of `qnn.add`."""

    lhs_multiplier: float
    rhs_multiplier: float


@dataclass(frozen=True)
class Product(Pair):
    """A product of `qnn.mul`."""


def sum_of(conversion: Conversion, op: ir.Operation) -> Sum | Product | None:
    """The sum or product of 8-bit quantized values that the ``tosa.rescale`` `op` ends; None where it ends none."""
    try:
        return _pair_of(conversion, op)
    except UnsupportedError:
        # The op of which this is true says so itself.
        return None


def _pair_of(conversion: Conversion, op: ir.Operation) -> Sum | Product | None:
    join, scaling = op.operands[0].owner, scaling_of(conversion, op)
    ends = result_element(op) in ("i8", "ui8") and len(scaling.multipliers) == 1
    if not isinstance(join, ir.Operation | ir.OpView) or join.name not in ("tosa.add", "tosa.mul") or not ends:
        return None
    operands = list(join.operation.operands)
    lhs, rhs = (_widening(conversion, value) for value in operands[:2])
    if lhs is None or rhs is None or conversion.zero_point(op.operands[3], "input_zp") != 0:
        return None
    multipliers = [scaling_of(conversion, rescale).multipliers[0] for rescale in (lhs, rhs)]
    values = (lhs.operands[0], rhs.operands[0], (lhs, rhs), scaling)
    if join.name == "tosa.add":
        is_sum = max(multipliers) == _LARGER and min(*multipliers, *scaling.multipliers) > 0
        return Sum(*values, *multipliers) if is_sum else None
    is_product = multipliers == [1.0, 1.0] and conversion.zero_point(operands[2], "shift") == 0
    return Product(*values) if is_product else None


def _widening(conversion: Conversion, value: ir.Value) -> ir.Operation | None:
    """The rescale that gives `value` from 8-bit quantized values, with one rounding and without zero point."""
    rescale = value.owner
    if not isinstance(rescale, ir.Operation | ir.OpView) or rescale.name != "tosa.rescale":
        return None
    scaling = scaling_of(conversion, rescale.operation)
    is_single = len(scaling.multipliers) == 1 and scaling.rounding is Rounding.FIXED64_UP
    if not is_single or conversion.zero_point(rescale.operation.operands[4], "output_zp") != 0:
        return None
    source = element_of(storage_type(rescale.operation.operands[0].type))
    return rescale.operation if source in ("i8", "ui8") else None


def joined_operands(conversion: Conversion, op: ir.Operation, target: Target) -> ir.Value | None:
    """The 8-bit sum or product that the rescale `op` ends; None where it ends none."""
    pair = sum_of(conversion, op)
    if pair is None:
        return None
    values = [input_values(conversion, rescale) for rescale in pair.rescales]
    if isinstance(pair, Product):
        scales = (pair.scaling.multipliers[0], 1.0, 1.0)
        return _joined(MulOp, values, scales, target, rounding=pair.scaling.rounding) if is_scale(scales[0]) else None
    is_double = pair.scaling.rounding is Rounding.FIXED64_DOUBLE
    arithmetic = AddArithmetic.SHIFTED_DOUBLE if is_double else AddArithmetic.SHIFTED_SINGLE
    scales = (conversion.scale(pair.lhs), conversion.scale(pair.rhs), conversion.scale(op.results[0]))
    if not _has_multipliers(pair, scales):
        scales = (
            pair.lhs_multiplier / _LARGER,
            pair.rhs_multiplier / _LARGER,
            1 / (_LARGER * pair.scaling.multipliers[0]),
        )
    holds = all(map(is_scale, scales)) and _has_multipliers(pair, scales)
    return _joined(AddOp, values, scales, target, arithmetic=arithmetic) if holds else None


def _has_multipliers(pair: Sum, scales: tuple[float, float, float]) -> bool:
    """Whether `qnn.add` at these scales multiplies as the rescales do: by ``2^20 * s / t`` and ``t / (2^20 * s_y)``."""
    lhs, rhs, output = (QuantParams(scale, 0) for scale in scales)
    common = scale_of_sum(lhs, rhs, output)
    wanted = (pair.lhs_multiplier / _LIFT, pair.rhs_multiplier / _LIFT, pair.scaling.multipliers[0])
    found = (common.lhs, common.rhs, common.output)
    return list(map(quantize_multiplier, wanted)) == list(map(quantize_multiplier, found))


def _joined(
    op_class: type[AddOp | MulOp],
    values: Sequence[QuantizedValues],
    scales: tuple[float, float, float],
    target: Target,
    **how: Any,
) -> ir.Value:
    lhs, rhs = values
    points = (lhs.zero_point, rhs.zero_point, target.zero_point)
    params = [QuantParams(scale, zero_point) for scale, zero_point in zip(scales, points, strict=True)]
    quantization = BinaryQuantization(*params, bounds=ELEMENT_RANGES[target.element])
    joined = build(
        op_class,
        lhs.value,
        rhs.value,
        element=target.element,
        **attributes_of(quantization),
        **how,
    )
    return joined.output
