"""`qnn-fuse-float-epilogue`: a contraction whose f32 values are quantized once becomes one fused op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Activation, FloatRounding, Multiplier, quantize_array
from qdialect.arithmetic.expressions import Alpha, Input
from qdialect.dialect import FUSED_CLASSES, AnyContraction, DequantizeOp, QuantizeOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.fields import is_scale
from qdialect.dialect.stages.builtin_stages import ActivationStage, ClampStage, DequantizeStage, QuantizeStage, SumStage
from qdialect.dialect.stages.stage_base import Stage
from qdialect.dialect.type_constraints import dtype_of, element_of, range_of
from qdialect.ir._mlir import ir
from qdialect.passes import pattern
from qdialect.passes.float_chains import ChainMatch, match_activation, match_function
from qdialect.passes.fused_stages import bias_of, channel_values, contraction_behind, multiplier_of
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, refuse, require
from qdialect.passes.registry import register
from qdialect.passes.tabulate import is_eight_bit

Bounds = tuple[int, int]
_CLAMPS = {"at_least": Input().at_least(Alpha()), "at_most": Input().at_most(Alpha())}


@dataclass
class _Epilogue:
    """The ops between a contraction and the quantization of its f32 values, found from the quantization upwards."""

    bounds: Bounds
    activation: Activation | None = None
    alpha: float = 0.0
    residual: DequantizeOp | None = None
    bias: NDArray[np.float32] | None = None
    alone: list[ir.Value] = field(default_factory=list[ir.Value])
    """Values that must have one use."""


@dataclass(frozen=True)
class _Match:
    contraction: AnyContraction
    multiplier: Multiplier
    epilogue: _Epilogue


class FuseFloatEpilogue(Replacement[_Match]):
    """``quantize(activation(dequantize(contraction) + bias + dequantize(residual)))``: bias, residual and activation
    may be absent, and clamps of f32 values become the range of the quantized values, for rounding keeps the order.

    The activations are those of `qdialect.arithmetic.activations`, written as their float ops.
    """

    roots = ("qnn.quantize",)

    def check(self, op: QuantizeOp) -> _Match | None:
        contraction = contraction_behind(op.input)
        if contraction is None:
            return None
        _check_rounding(op)
        epilogue = _Epilogue(range_of(op.output.type), alone=[op.input])
        dequantize = _unsummed(epilogue, _activated(epilogue, _unclamped(epilogue, op)))
        for value in (*epilogue.alone, contraction.output):
            refuse(pattern.second_use(value))
        has_one = contraction.bias is None or epilogue.bias is None
        require(has_one, "must have one bias, but there is one of integers and one of f32 values")
        refuse(pattern.not_constant(contraction, is_fused=True))
        return _Match(contraction, multiplier_of(contraction, dequantize), epilogue)

    def emit(self, op: QuantizeOp, match: _Match) -> ir.Value:
        contraction, epilogue = match.contraction, match.epilogue
        bias = bias_of(contraction) if epilogue.bias is None else constant(epilogue.bias)
        residual = [] if epilogue.residual is None else [epilogue.residual.input]
        return build(
            FUSED_CLASSES[type(contraction)],
            *(contraction.data, contraction.weight, bias, *residual),
            element=element_of(op.output.type),
            output_scale=op.scales[0],
            output_zero_point=op.zero_points[0],
            epilogue=tuple(_stages(op, match)),
            **contraction.attribute_values(),
        ).output


def _stages(op: QuantizeOp, match: _Match) -> Iterator[Stage]:
    epilogue = match.epilogue
    yield DequantizeStage(multiplier=match.multiplier)
    if epilogue.residual is not None:
        scale, zero_point = epilogue.residual.scales[0], epilogue.residual.zero_points[0]
        yield SumStage(residual_scale=scale, residual_zero_point=zero_point)
    if epilogue.activation is not None:
        yield ActivationStage(function=epilogue.activation, alpha=epilogue.alpha)
    yield QuantizeStage(scaling=op.scaling)
    if epilogue.bounds != range_of(op.output.type):
        yield ClampStage(min=epilogue.bounds[0], max=epilogue.bounds[1])


def _check_rounding(op: QuantizeOp) -> None:
    require(is_eight_bit(op.output), f"must have an 8-bit result, but got {element_of(op.output.type)}")
    require(len(op.scales) == len(op.zero_points) == 1, "must have one scale and one zero point")
    require(is_scale(op.scales[0]), f"must have a scale of at least 2^-60, but got {op.scales[0]}")
    refuse(pattern.differences(rounding=(FloatRounding.HALF_EVEN, op.rounding)))


def _unclamped(epilogue: _Epilogue, op: QuantizeOp) -> ir.Value:
    """The operand of clamps of f32 values, which become bounds of the quantized values."""
    value, limits = op.input, list[Bounds]()
    while (found := match_function(value, _CLAMPS)) is not None and found.is_closed:
        limits.append(_limit(op, found))
        value = found.source
    for low, high in reversed(limits):
        minimum, maximum = epilogue.bounds
        epilogue.bounds = min(max(minimum, low), high), min(max(maximum, low), high)
    return value


def _limit(op: QuantizeOp, clamp: ChainMatch[str]) -> Bounds:
    """The bounds of the quantized values of a clamp."""
    how = (FloatRounding(op.rounding), op.scaling, op.nan)
    number = np.asarray(clamp.alpha, np.float32)
    bound = quantize_array(number, op.scales, op.zero_points, 0, dtype_of(op.output.type), *how)
    low, high = range_of(op.output.type)
    return (int(bound), high) if clamp.activation == "at_least" else (low, int(bound))


def _activated(epilogue: _Epilogue, value: ir.Value) -> ir.Value:
    """The operand of the activation that ends in `value`; `value` itself without an activation."""
    found = match_activation(value)
    if found is None:
        return value
    found.require_closed()
    epilogue.activation, epilogue.alpha = found.activation, found.alpha
    return found.source


def _unsummed(epilogue: _Epilogue, value: ir.Value) -> DequantizeOp:
    """The dequantized accumulators below the sums; sums of f32 values are rounded, so the bias comes first."""
    while not isinstance(found := pattern.producer(value), DequantizeOp):
        if found is None or found.operation.name != "arith.addf":
            name = "an argument" if found is None else f"'{found.operation.name}'"
            raise MatchFailure(f"must be a known activation of sums of dequantized accumulators, but there is {name}")
        value = _without_addend(epilogue, *found.operation.operands)
        epilogue.alone.append(value)
    return found


def _without_addend(epilogue: _Epilogue, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """The other operand of a sum with a bias or a residual."""
    for addend, rest in ((rhs, lhs), (lhs, rhs)):
        bias = channel_values(addend)
        if bias is not None and epilogue.bias is None and np.all(np.isfinite(bias)):
            epilogue.bias = bias
            return rest
    for addend, rest in ((rhs, lhs), (lhs, rhs)):
        residual = pattern.producer(addend)
        if isinstance(residual, DequantizeOp) and is_eight_bit(residual.input):
            require(epilogue.bias is None and epilogue.residual is None, "must add one residual, after the bias")
            is_one = len(residual.scales) == len(residual.zero_points) == 1 and is_scale(residual.scales[0])
            require(is_one, "must add a residual with one zero point and one scale of at least 2^-60")
            epilogue.residual = residual
            return rest
    raise MatchFailure("must add biases of the channels and one dequantized 8-bit tensor alone")


@register
class FuseFloatEpiloguePass(GraphPass):
    """Fuse dequantize, bias, residual sum, activation and quantize into the contraction: one rounding, one kernel."""

    name: ClassVar[str] = "qnn-fuse-float-epilogue"
    rewrites = (FuseFloatEpilogue,)
