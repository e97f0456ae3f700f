"""Fused ops that round once: scaled, biased, summed and activated as f32 values, compiled as the reference says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiled_ops import TABLE, check, ends, tensor
from graphs import graph
from together import variants_together

from qdialect.arithmetic import Activation, AddArithmetic, Rounding, Scaling, activate, requantize_f32
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.dialect import FusedConv2DOp, FusedDenseOp, FusedOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.stages.builtin_stages import (
    ActivationStage,
    AddStage,
    ClampStage,
    DequantizeStage,
    LutStage,
    QuantizeStage,
    SumStage,
)
from qdialect.dialect.stages.stage_base import Stage
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import ir

FLOATS = [rounding for rounding in Rounding if not rounding.is_fixed]
INPUT_SCALE, OUTPUT_SCALE = 0.02, 0.0470588244497776


def f32_stages(activation: Activation | None = None, *, before: Sequence[Stage] = (), **how: Any) -> list[Stage]:
    """Stages of f32 values, with one rounding: those of `before`, then an activation."""
    alpha = 0.1 if activation is not None and activation.has_alpha else 0.0
    activated = [] if activation is None else [ActivationStage(function=activation, alpha=alpha)]
    attributes: dict[str, Any] = {"scaling": Scaling.RECIPROCAL, **how}
    return [DequantizeStage(), *before, *activated, QuantizeStage(**attributes)]


def check_fused(
    op: type[FusedOp],
    data: tuple[int, ...],
    weight: tuple[int, ...],
    element: str,
    epilogue: Sequence[Stage],
    residual: tuple[int, ...] | None = None,
    f32_bias: bool = True,
    **attributes: Any,
) -> None:
    """Compiled for every kind of CPU the op gives what the reference gives."""
    rng, low = np.random.default_rng(5), ends(element)[0]
    channels = weight[0]
    depth = int(np.prod(weight[1:]))
    scales = rng.uniform(0.5, 1.5, channels) / (INPUT_SCALE * 75 * 75 * np.sqrt(depth)) * 3
    bias = rng.normal(size=channels).astype(np.float32) if f32_bias else rng.integers(-500, 500, channels, np.int32)

    def body(*values: ir.Value) -> ir.Value:
        quantized = constant(rng.integers(-128, 128, weight, dtype=np.int8))
        operands = (values[0], quantized, constant(bias), *values[1:])
        parameters: dict[str, Any] = {
            "input_scale": INPUT_SCALE,
            "input_zero_point": low + 128,
            "weight_scales": tuple(scales),
            "output_scale": OUTPUT_SCALE,
            "output_zero_point": low + 37,
            "epilogue": epilogue,
            **attributes,
        }
        return build(op, *operands, element=element, **parameters).operation.results[0]

    shapes = [data] if residual is None else [data, residual]
    check(graph([tensor(shape, element) for shape in shapes], body))


@variants_together
@pytest.mark.parametrize("activation", [None, *STAGE_ACTIVATIONS])
@pytest.mark.parametrize("element", ["i8", "ui8"])
def test_every_activation(activation: Activation | None, element: str) -> None:
    check_fused(FusedDenseOp, (3, 9), (21, 9), element, f32_stages(activation))


@variants_together
@pytest.mark.parametrize("rounding", FLOATS)
@pytest.mark.parametrize("scaling", Scaling)
def test_every_rounding(rounding: Rounding, scaling: Scaling) -> None:
    stages = f32_stages(Activation.HARDSWISH, rounding=rounding, scaling=scaling)
    check_fused(FusedDenseOp, (5, 16), (67, 16), "i8", stages, f32_bias=False, output_scale=2.0**-4)


@variants_together
@pytest.mark.parametrize(("channels", "depth", "groups"), [(5, 3, 1), (17, 6, 1), (12, 12, 12), (6, 4, 2)])
def test_convolutions(channels: int, depth: int, groups: int) -> None:
    weight = (channels, 3, 3, depth // groups)
    window: dict[str, Any] = {"strides": (2, 1), "padding": (1, 1, 1, 1), "groups": groups}
    for element in ("i8", "ui8"):
        check_fused(FusedConv2DOp, (1, 5, 7, depth), weight, element, f32_stages(Activation.SILU), **window)


@variants_together
@pytest.mark.parametrize("activation", [None, Activation.LEAKY_RELU])
@pytest.mark.parametrize("pixels", [1, 11])
def test_a_residual_before_the_rounding(activation: Activation | None, pixels: int) -> None:
    shapes: dict[str, Any] = {"data": (1, 1, pixels, 8), "weight": (19, 1, 1, 8), "residual": (1, 1, pixels, 19)}
    for element in ("i8", "ui8"):
        low, high = ends(element)
        added = SumStage(residual_scale=0.03, residual_zero_point=high)
        stages = [*f32_stages(activation, before=[added]), ClampStage(min=max(0, low), max=high)]
        check_fused(FusedConv2DOp, element=element, epilogue=stages, **shapes)


def test_stages_of_f32_values_in_any_order() -> None:
    """A sum after the activation, and a second activation after the sum."""
    added = SumStage(residual_scale=0.03, residual_zero_point=7)
    first = ActivationStage(function=Activation.TANH)
    stages = f32_stages(Activation.ELU, before=[first, added])
    check_fused(FusedDenseOp, (5, 8), (19, 8), "i8", stages, residual=(5, 19))


@variants_together
@pytest.mark.parametrize("residual_is_lhs", [False, True])
def test_a_residual_after_the_rounding_and_a_table(residual_is_lhs: bool) -> None:
    sum_means: dict[str, Any] = {"scale": 0.0712, "zero_point": 37}
    how: dict[str, Any] = {"residual_is_lhs": residual_is_lhs, "arithmetic": AddArithmetic.FLOAT_ONCE, **sum_means}
    stages = [
        *f32_stages(Activation.GELU, scale=OUTPUT_SCALE, zero_point=37),
        AddStage(residual_scale=0.013, residual_zero_point=0, **how),
        LutStage(table=TABLE),
    ]
    output: dict[str, Any] = {"output_scale": 0.5, "output_zero_point": 3}
    check_fused(FusedDenseOp, (7, 8), (33, 8), "ui8", stages, residual=(7, 33), **output)


def test_one_rounding_is_not_two() -> None:
    """A value that a table of the rounded code would send elsewhere."""
    f32 = np.array([0.26], np.float32)
    half = (0.5, 0, -128, 127, Rounding.F32_RNE_ZP_LAST, Scaling.DIVIDE)
    once = requantize_f32(activate(Activation.LEAKY_RELU, 2.0, -f32), *half)
    first = requantize_f32(-f32, *half).astype(np.float32) * np.float32(0.5)
    twice = requantize_f32(activate(Activation.LEAKY_RELU, 2.0, first), *half)
    assert (once.tolist(), twice.tolist()) == ([-1], [-2])


@pytest.mark.parametrize("dtype", ["i8", "ui8"])
def test_values_saturate(dtype: str) -> None:
    """f32 values far outside of the quantized values' range end at its ends."""
    low, high = ends(dtype)
    values = np.array([-(2.0**90), 2.0**90], np.float32)
    found = requantize_f32(values, 2.0**-60, 5, low, high, Rounding.F32_RNE_ZP_FIRST, Scaling.DIVIDE)
    assert found.astype(NUMPY_DTYPES[dtype]).tolist() == [low, high]
