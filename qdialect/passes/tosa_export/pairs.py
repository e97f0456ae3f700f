"""Functions of two quantized tensors."""

from __future__ import annotations

import numpy as np

from qdialect.arithmetic import AddArithmetic, FloatRounding, QuantParams, Rounding, Scaling, SubArithmetic, multipliers
from qdialect.arithmetic.elementwise import scale_of_sum
from qdialect.arithmetic.quantization import scale_factors
from qdialect.dialect import AddOp, MaximumOp, MinimumOp, MulOp, SubOp
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export import scaling
from qdialect.passes.tosa_export.builder import IDENTITY, apply, cast, clamp, of_rank, rescale, shift_right
from qdialect.passes.tosa_export.export import Export, UnsupportedError, exports, require, shape_of_result, sign_of

_OFFSET = 255
_SUM_SHIFT = 20
_LONGEST_SHIFT = 31
_FLOAT_RANGE = (-(2**23), 2**23)


def _sides(export: Export, op: BinaryOp) -> list[tuple[ir.Value, int]]:
    """Both operands as they are held, of one rank, with their zero points."""
    rank = len(shape_of_result(op))
    sides = ((op.lhs, op.lhs_zero_point), (op.rhs, op.rhs_zero_point))
    return [(of_rank(export.value(value), rank), point - sign_of(value.type)) for value, point in sides]


def _offsets(export: Export, op: BinaryOp) -> list[ir.Value]:
    """Both operands less their zero points, as i32."""
    return [rescale(value, "i32", [IDENTITY], (point, 0)) for value, point in _sides(export, op)]


@exports(MulOp)
def _mul(export: Export, op: MulOp) -> ir.Value:
    product = apply("mul", *_offsets(export, op))
    real = multipliers.real_multiplier(op.lhs_scale, [op.rhs_scale], op.output_scale, op.multiplier)
    params = multipliers.requantize_parameters(op.rounding, real)
    return _requantized(op, product, params, op.rounding, _OFFSET**2)


def _requantized(
    op: BinaryOp, value: ir.Value, params: multipliers.RequantizeParameters, rounding: Rounding, bound: int
) -> ir.Value:
    how = scaling.Requantization(params, rounding, bound, op.output_zero_point, op.quantization.bounds)
    return how.bytes_of(value, element_of(op.output.type))


exports(AddOp)(lambda export, op: _signed_sum(export, op, 1, op.arithmetic))


@exports(SubOp)
def _sub(export: Export, op: SubOp) -> ir.Value:
    if op.arithmetic is SubArithmetic.FLOAT:
        return _of_floats(export, op, "sub")
    arithmetic = op.arithmetic.addition
    assert arithmetic is not None
    return _signed_sum(export, op, -1, arithmetic)


@exports(MaximumOp, MinimumOp)
def _extreme(export: Export, op: MaximumOp | MinimumOp) -> ir.Value:
    """Of quantized values where all parameters are equal, else of f32 values."""
    name = "maximum" if isinstance(op, MaximumOp) else "minimum"
    if not op.lhs_params == op.rhs_params == op.output_params:
        return _of_floats(export, op, name)
    sign = sign_of(op.output.type)
    wide = [cast(value, "i32") for value, _ in _sides(export, op)]
    return cast(clamp(apply(name, *wide), op.output_min - sign, op.output_max - sign), "i8")


def _signed_sum(export: Export, op: AddOp | SubOp, sign: int, arithmetic: AddArithmetic) -> ir.Value:
    join = "add" if sign > 0 else "sub"
    if arithmetic.f32_scaling is not None:
        return _of_floats(export, op, join, arithmetic.f32_scaling)
    if arithmetic.shifted_roundings is not None:
        return _shifted(export, op, join, arithmetic.shifted_roundings)
    if arithmetic is AddArithmetic.FIXED_ONCE:
        return _fixed_once(export, op, join)
    if arithmetic is AddArithmetic.REQUANTIZE_EACH:
        return _of_each(export, op, join)
    raise UnsupportedError(f'arithmetic must be one without fused multiply-adds, but got "{arithmetic}"')


def _finished(op: BinaryOp, value: ir.Value) -> ir.Value:
    return scaling.held(clamp(value, *op.quantization.bounds), element_of(op.output.type))


def _shifted(export: Export, op: AddOp | SubOp, join: str, roundings: tuple[Rounding, Rounding]) -> ir.Value:
    """Operands at twice the larger scale with 20 more bits: at once, or shifted and multiplied as TFLite does."""
    common = scale_of_sum(*op.quantization.params)
    operands = [
        _lifted(value, point, scaling.multiplier_of(m), roundings[0])
        for (value, point), m in zip(_sides(export, op), (common.lhs, common.rhs), strict=True)
    ]
    total = apply(join, *operands)
    return _requantized(op, total, scaling.multiplier_of(common.output), roundings[1], 2 * (_OFFSET << _SUM_SHIFT))


def _lifted(value: ir.Value, zero_point: int, params: multipliers.FixedMultiplier, rounding: Rounding) -> ir.Value:
    if rounding is Rounding.FIXED64_UP:
        pairs = [(q, shift - _SUM_SHIFT) for q, shift in scaling.pairs_of(params)]
        return rescale(value, "i32", pairs, (zero_point, 0))
    offset = rescale(value, "i32", [IDENTITY], (zero_point, 0))
    return scaling.multiplied(apply("mul", offset, 1 << _SUM_SHIFT), params, rounding, _OFFSET << _SUM_SHIFT)


def _fixed_once(export: Export, op: AddOp | SubOp, join: str) -> ir.Value:
    factors = multipliers.sum_factors(op.lhs_scale, op.rhs_scale, op.output_scale)
    fits = factors.shift <= _LONGEST_SHIFT and _OFFSET * (factors.lhs + factors.rhs) < 1 << _LONGEST_SHIFT
    found = f"{factors.lhs} and {factors.rhs} * 2^-{factors.shift}"
    require(fits, f"scales must give factors whose sums have 32 bits and a shift by at most 31, but got {found}")
    lhs, rhs = _offsets(export, op)
    total = apply(join, apply("mul", lhs, factors.lhs), apply("mul", rhs, factors.rhs))
    return _finished(op, apply("add", shift_right(total, factors.shift, rounds=True), op.output_zero_point))


def _of_each(export: Export, op: AddOp | SubOp, join: str) -> ir.Value:
    """Each operand at the output's scale, without its zero point."""
    own = (op.lhs_params, op.rhs_params)
    operands = [_at_output(op, value, params) for value, params in zip(_offsets(export, op), own, strict=True)]
    return _finished(op, apply("add", apply(join, *operands), op.output_zero_point))


def _at_output(op: AddOp | SubOp, offset: ir.Value, own: QuantParams) -> ir.Value:
    if own == op.output_params:
        return offset
    real = multipliers.real_multiplier(own.scale, [1.0], op.output_scale, op.multiplier)
    params = multipliers.requantize_parameters(op.rounding, real)
    if isinstance(params, multipliers.FixedMultiplier):
        return scaling.multiplied(offset, params, op.rounding, _OFFSET)
    fits = _OFFSET * float(real[0]) < _FLOAT_RANGE[1] / 2
    require(fits, f"scales must give a multiplier below 2^14, but got {float(real[0])}")
    product = apply("mul", cast(offset, "f32"), params.m)
    found = scaling.rounded_floats(product, op.output_zero_point, _FLOAT_RANGE, op.rounding)
    return apply("add", found, -op.output_zero_point)


def _of_floats(export: Export, op: BinaryOp, name: str, how: Scaling = Scaling.DIVIDE) -> ir.Value:
    """A function of f32 values, quantized with ties to even."""
    scales = (op.lhs_scale, op.rhs_scale)
    values = [
        apply("mul", cast(offset, "f32"), float(np.float32(scale)))
        for offset, scale in zip(_offsets(export, op), scales, strict=True)
    ]
    result, output, bounds = apply(name, *values), op.output_params, op.quantization.bounds
    if how is Scaling.DIVIDE:
        quantized = scaling.quotient(result, output.scale, output.zero_point, bounds, FloatRounding.HALF_EVEN)
        return scaling.held(quantized, element_of(op.output.type))
    product = apply("mul", result, np.asarray(scale_factors(output.scale, how), np.float32))
    found = scaling.rounded_floats(product, output.zero_point, bounds, Rounding.F32_RNE_ZP_LAST)
    return scaling.held(found, element_of(op.output.type))
