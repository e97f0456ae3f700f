"""Decomposes the stages of fused ops into separate ops, and fuses ops into fused ops as stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Multiplier, Rounding, real_multiplier
from qdialect.dialect import AnyContraction, AnyFused, BroadcastOp, DequantizeOp, QuantizeOp, build
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.contraction_ops import PlacedStage, shortened
from qdialect.dialect.fields import LARGEST_SCALE
from qdialect.dialect.stages.builtin_stages import ActivationStage, DequantizeStage, QuantizeStage, SumStage
from qdialect.dialect.stages.stage_base import Stage
from qdialect.dialect.type_constraints import QuantizedType, element_of, shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.passes.float_chains import build_activation
from qdialect.passes.pattern import MatchFailure, PatternPass, producer, rebuilt, require

BuildStage = Callable[[AnyFused, PlacedStage, ir.Value], ir.Value]
"""(fused op, stage, value that the stage takes) -> value that it leaves, by ops at the insertion point."""
Obstacle = Callable[[AnyFused, Any], str | None]
"""(fused op, stage) -> why the stage cannot be decomposed, or None."""


@dataclass(frozen=True)
class Decomposition:
    """The function that builds a stage's ops, and the one that explains why it cannot."""

    build: BuildStage
    obstacle: Obstacle


DECOMPOSITIONS: dict[type[Stage], Decomposition] = {}


def decomposes(stage_class: type[Stage], obstacle: Obstacle | None = None) -> Callable[[BuildStage], BuildStage]:
    """Register the decorated function as the decomposition of a stage.

    Raises `ValueError` where the stage has a decomposition already.
    """

    def register(build: BuildStage) -> BuildStage:
        if stage_class in DECOMPOSITIONS:
            raise ValueError(f"stage '{stage_class.name}' has a decomposition already")
        DECOMPOSITIONS[stage_class] = Decomposition(build, obstacle or (lambda _, __: None))
        return build

    return register


def quantized(values: QuantizedType | None) -> QuantizedType:
    """`values`, for a stage that takes or leaves quantized ones."""
    assert values is not None, "the verifier has seen that values are quantized here"
    return values


class StageFusionPass(PatternPass):
    """A pass that fuses an op after a fused one as another stage of it.

    `fuse-qnn` runs every registered one, in the order of their names, between contractions with their clamps and the
    tables that end them.
    """


def resolved_stages(op: AnyFused) -> tuple[Stage, ...]:
    """The stages of `op`, with all defaults resolved."""
    return tuple(placed.stage for placed in op.stages())


def with_stages(
    op: AnyFused, stages: Sequence[Stage], output: QuantizedType, residual: ir.Value | None = None
) -> AnyFused:
    """A copy of `op` at the insertion point with other stages, resolved ones, whose result means `output`.

    A `residual` becomes the residual operand of an op that lacks one.
    """
    operands = [*op.operation.operands, *([] if residual is None else [residual])]
    return rebuilt(
        op,
        *operands,
        element=output.element,
        output_scale=output.scale,
        output_zero_point=output.zero_point,
        epilogue=shortened(stages, output),
    )


def _scale_obstacle(op: AnyFused, stage: DequantizeStage) -> str | None:
    outside = next((scale for scale in _scales(op, stage) if not 0 < scale <= LARGEST_SCALE), None)
    return None if outside is None else f"must have products of scales in (0, 2^30], but got {outside}"


@decomposes(DequantizeStage, _scale_obstacle)
def _dequantize(op: AnyFused, placed: PlacedStage, value: ir.Value) -> ir.Value:
    dequantized = _dequantized(value, _scales(op, placed.stage), 0)
    if element_of(op.bias.type) == "i32":
        return dequantized
    bias = build(BroadcastOp, op.bias, element="f32", shape=shape_of(value.type)).output
    return arith.addf(dequantized, bias)


@decomposes(SumStage)
def _sum(op: AnyFused, placed: PlacedStage, value: ir.Value) -> ir.Value:
    stage: Any = placed.stage
    assert op.residual is not None, "the verifier has seen a residual"
    return arith.addf(value, _dequantized(op.residual, (stage.residual_scale,), stage.residual_zero_point))


@decomposes(ActivationStage)
def _activation(_: AnyFused, placed: PlacedStage, value: ir.Value) -> ir.Value:
    stage: Any = placed.stage
    return build_activation(stage.function, value, stage.alpha)


def _rounding_obstacle(_: AnyFused, stage: QuantizeStage) -> str | None:
    if stage.rounding is Rounding.F32_RNE_ZP_LAST:
        return None
    return f"must have rounding f32_rne_zp_last, that of qnn.quantize, but got {stage.rounding}"


@decomposes(QuantizeStage, _rounding_obstacle)
def _quantize(_: AnyFused, placed: PlacedStage, value: ir.Value) -> ir.Value:
    stage: Any = placed.stage
    after = quantized(placed.after)
    return build(
        QuantizeOp,
        value,
        element=after.element,
        scales=(after.scale,),
        zero_points=(after.zero_point,),
        axis=len(shape_of(value.type)) - 1,
        scaling=stage.scaling,
    ).output


def _dequantized(values: ir.Value, scales: tuple[float, ...], zero_point: int) -> ir.Value:
    axis = len(shape_of(values.type)) - 1
    return build(DequantizeOp, values, element="f32", scales=scales, zero_points=(zero_point,), axis=axis).output


def _scales(op: AnyFused, stage: Any) -> tuple[float, ...]:
    products = real_multiplier(op.input_scale, op.weight_scales, 1.0, stage.multiplier)
    return tuple(products.astype(np.float32).astype(np.float64).tolist())


def contraction_behind(value: ir.Value) -> AnyContraction | None:
    """The first contraction whose dequantized accumulators `value` depends on, through float ops alone."""
    seen: set[ir.Value] = set()
    pending = [value]
    while pending:
        found = pending.pop()
        op = producer(found)
        if op is None or found in seen:
            continue
        seen.add(found)
        if isinstance(op, DequantizeOp):
            contraction = producer(op.input)
            if isinstance(contraction, AnyContraction):
                return contraction
        elif op.operation.name.startswith(("arith.", "math.")):
            pending += op.operation.operands
    return None


def bias_of(contraction: AnyContraction) -> ir.Value:
    """The bias of a contraction, zeros where it has none."""
    return contraction.bias or constant(np.zeros(shape_of(contraction.output.type)[-1], dtype=np.int32))


def channel_values(value: ir.Value) -> NDArray[np.float32] | None:
    """The constant f32 value of each channel, float32[C], where `value` differs along its last dimension alone."""
    shape = shape_of(value.type)
    broadcast = producer(value)
    array = constant_value(broadcast.input if isinstance(broadcast, BroadcastOp) else value)
    if array is None or array.dtype != np.float32 or not shape:
        return None
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    if np.any(rows != rows[0]):
        return None
    return np.broadcast_to(rows[0], shape[-1:])


def multiplier_of(contraction: AnyContraction, dequantize: DequantizeOp) -> Multiplier:
    """In which precision the scales of `dequantize` are the products of the contraction's own."""
    last = len(shape_of(contraction.output.type)) - 1
    channels = shape_of(contraction.output.type)[last]
    require(not any(dequantize.zero_points), "must dequantize accumulators with zero point 0")
    is_along = len(dequantize.scales) == 1 or dequantize.axis == last
    require(is_along, f"must dequantize accumulators along axis {last}, but got {dequantize.axis}")
    wanted = np.broadcast_to(np.array(dequantize.scales, dtype=np.float32), channels)
    for multiplier in (Multiplier.F32, Multiplier.F64):
        products = real_multiplier(contraction.input_scale, contraction.weight_scales, 1.0, multiplier)
        if np.array_equal(np.broadcast_to(products.astype(np.float32), channels), wanted):
            return multiplier
    raise MatchFailure("must dequantize accumulators with the products of input_scale and weight_scales")
