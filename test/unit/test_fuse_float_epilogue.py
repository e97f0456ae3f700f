"""Float epilogues fuse with their bits, and what rounds elsewhere is refused."""

from typing import Any

import numpy as np
import pytest
from graphs import Body, failures, graph, op_names, ops_of, run_both
from quantized_layers import CHANNELS, WEIGHT_SCALES, bias_of, clamp, conv, dense

from qdialect.arithmetic import Activation, Multiplier, Scaling
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.dialect import BroadcastOp, DequantizeOp, QuantizeOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.stages.builtin_stages import ActivationStage, ClampStage, DequantizeStage, QuantizeStage, SumStage
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.passes.decompose_fused import DecomposeFusedPass
from qdialect.passes.float_chains import build_activation, uniform_constant
from qdialect.passes.fuse_float_epilogue import FuseFloatEpiloguePass
from qdialect.passes.fuse_qnn import FuseQnnPass

IMAGE, OUT = "tensor<1x6x7x4xui8>", "tensor<1x6x7x5xui8>"
FUSED = "qnn.fused_conv2d"
SCALES = tuple(float(np.float32(0.02) * np.float32(scale)) for scale in WEIGHT_SCALES)


def f32(accumulators: ir.Value, scales: tuple[float, ...] = SCALES, axis: int = 3, zero_point: int = 0) -> ir.Value:
    """The f32 values of accumulators."""
    parameters: dict[str, Any] = {"scales": scales, "zero_points": (zero_point,), "axis": axis}
    return build(DequantizeOp, accumulators, element="f32", **parameters).output


def residual_of(quantized: ir.Value) -> ir.Value:
    return build(DequantizeOp, quantized, element="f32", scales=(0.04,), zero_points=(9,)).output


def bias(like: ir.Value) -> ir.Value:
    values = constant(np.array([0.5, -0.25, 0.0, 1.75, -3.0], np.float32))
    return build(BroadcastOp, values, element="f32", shape=shape_of(like.type)).output


def quantized(value: ir.Value, element: str = "ui8", **changes: Any) -> ir.Value:
    parameters: dict[str, Any] = {"scales": (0.05,), "zero_points": (7,), "scaling": Scaling.RECIPROCAL, **changes}
    return build(QuantizeOp, value, element=element, **parameters).output


def fused_of(body: Body, types: list[str] | None = None) -> dict[str, Any]:
    """Attributes and type of bias of the one op that `body` becomes, with the same bits."""
    after = run_both(graph(types or [IMAGE], body), FuseFloatEpiloguePass())
    assert op_names(after) == [FUSED]
    (op,) = ops_of(after, FUSED)
    return op.attribute_values() | {"bias": str(op.bias.type)}


def reason(body: Body, types: list[str] | None = None) -> str:
    """Why `body` is refused."""
    module = graph(types or [IMAGE], body)
    (found,) = failures(module, FuseFloatEpiloguePass())
    assert FUSED not in op_names(module)
    return found


@pytest.mark.parametrize("activation", STAGE_ACTIVATIONS)
@pytest.mark.parametrize("scaling", Scaling)
def test_every_activation_fuses(activation: Activation, scaling: Scaling) -> None:
    alpha = 0.1 if activation.has_alpha else 0.0
    op = fused_of(lambda x: quantized(build_activation(activation, f32(conv(x)), alpha), scaling=scaling))
    activated = ActivationStage(function=activation, alpha=float(np.float32(alpha)))
    assert op["epilogue"] == (DequantizeStage(multiplier=Multiplier.F32), activated, QuantizeStage(scaling=scaling))


@pytest.mark.parametrize("element", ["i8", "ui8"])
def test_bias_residual_and_clamps_fuse(element: str) -> None:
    def body(x: ir.Value, r: ir.Value) -> ir.Value:
        value = f32(conv(x))
        value = arith.addf(residual_of(r), arith.addf(value, bias(value)))
        return quantized(clamp(value, 0.0, 6.0), element)

    op = fused_of(body, [IMAGE, OUT])
    assert op["epilogue"] == (
        DequantizeStage(multiplier=Multiplier.F32),
        SumStage(residual_scale=0.04, residual_zero_point=9),
        QuantizeStage(scaling=Scaling.RECIPROCAL),
        ClampStage(min=7, max=127),
    )


def test_what_is_fused_and_decomposed_fuses_again() -> None:
    def body(x: ir.Value, r: ir.Value) -> ir.Value:
        value = f32(conv(x))
        value = arith.addf(arith.addf(value, bias(value)), residual_of(r))
        return quantized(build_activation(Activation.LEAKY_RELU, value, 0.2))

    once = run_both(graph([IMAGE, OUT], body), FuseFloatEpiloguePass())
    again = run_both(once, DecomposeFusedPass(), FuseFloatEpiloguePass())
    assert str(ops_of(once, FUSED)[0]).split("{", 1)[1] == str(ops_of(again, FUSED)[0]).split("{", 1)[1]


def test_biases_of_integers_of_f32_values_and_none() -> None:
    integers = fused_of(lambda x: quantized(f32(conv(x, bias=bias_of()))))
    assert integers["bias"] == f"tensor<{CHANNELS}xi32>"
    uniform = fused_of(lambda x: quantized(arith.addf(f32(conv(x)), uniform_constant(1.5, f32(conv(x)).type))))
    assert uniform["bias"] == f"tensor<{CHANNELS}xf32>"
    assert fused_of(lambda x: quantized(f32(conv(x))))["bias"] == f"tensor<{CHANNELS}xi32>"


def test_dense_and_one_scale() -> None:
    def body(x: ir.Value) -> ir.Value:
        value = f32(dense(x), (float(np.float32(0.02) * np.float32(0.01)),), axis=0)
        return quantized(build_activation(Activation.GELU, value))

    after = run_both(graph(["tensor<3x20xui8>"], body), FuseFloatEpiloguePass())
    assert op_names(after) == ["qnn.fused_dense"]


def test_the_pipeline_fuses_what_comes_after() -> None:
    """An addition and a clamp of quantized values join the same kernel."""

    def body(x: ir.Value) -> ir.Value:
        return quantized(build_activation(Activation.HARDSWISH, f32(conv(x))))

    after = run_both(graph([IMAGE], lambda x: quantized(f32(conv(body(x))))), FuseQnnPass())
    assert op_names(after) == [FUSED, FUSED]


def test_uses_beside_the_chain_are_refused() -> None:
    def shared_accumulators(x: ir.Value) -> list[ir.Value]:
        accumulators = conv(x)
        return [quantized(f32(accumulators)), accumulators]

    def shared_sum(x: ir.Value) -> list[ir.Value]:
        value = f32(conv(x))
        return [quantized(value), value]

    def shared_source(x: ir.Value) -> list[ir.Value]:
        value = f32(conv(x))
        return [quantized(build_activation(Activation.HARDSWISH, value)), value]

    def shared_result(x: ir.Value) -> list[ir.Value]:
        value = build_activation(Activation.TANH, f32(conv(x)))
        return [quantized(value), value]

    assert "needs the result of 'qnn.conv2d' alone, but it has 2 uses" in reason(shared_accumulators)
    assert "needs the result of 'qnn.dequantize' alone, but it has 2 uses" in reason(shared_sum)
    assert "must use the ops of its hardswish alone" in reason(shared_source)
    assert "needs the result of 'math.tanh' alone, but it has 2 uses" in reason(shared_result)


def test_unknown_chains_are_refused() -> None:
    def squared(x: ir.Value) -> ir.Value:
        value = f32(conv(x))
        return quantized(arith.mulf(value, value))

    def residual_first(x: ir.Value, r: ir.Value) -> ir.Value:
        value = arith.addf(f32(conv(x)), residual_of(r))
        return quantized(arith.addf(value, bias(value)))

    def per_element(x: ir.Value) -> ir.Value:
        offsets = constant(np.arange(210, dtype=np.float32).reshape(1, 6, 7, 5))
        return quantized(arith.addf(f32(conv(x)), offsets))

    assert "must be a known activation of sums of dequantized accumulators, but there is 'arith.mulf'" in reason(
        squared
    )
    assert "must add one residual, after the bias" in reason(residual_first, [IMAGE, OUT])
    assert "must add biases of the channels and one dequantized 8-bit tensor alone" in reason(per_element)
    two = reason(lambda x: quantized(arith.addf(f32(conv(x)), f32(conv(x)))))
    assert "must add biases of the channels" in two


def test_other_parameters_are_refused() -> None:
    def two_biases(x: ir.Value) -> ir.Value:
        value = f32(conv(x, bias=bias_of()))
        return quantized(arith.addf(value, bias(value)))

    assert "rounding must be half_even, but got half_away" in reason(
        lambda x: quantized(f32(conv(x)), rounding="half_away")
    )
    assert "must have an 8-bit result, but got i16" in reason(lambda x: quantized(f32(conv(x)), "i16"))
    channels: dict[str, Any] = {"scales": (0.05,) * CHANNELS, "axis": 3}
    assert "must have one scale and one zero point" in reason(lambda x: quantized(f32(conv(x)), **channels))
    tiny = reason(lambda x: quantized(f32(conv(x)), scales=(2.0**-70,)))
    assert "must have a scale of at least 2^-60" in tiny
    assert "the products of input_scale and weight_scales" in reason(lambda x: quantized(f32(conv(x), (0.001,))))
    assert "with zero point 0" in reason(lambda x: quantized(f32(conv(x), zero_point=1)))
    square = ["tensor<1x5x5x4xui8>"]
    assert "along axis 3, but got 1" in reason(lambda x: quantized(f32(conv(x), axis=1)), square)
    assert "must have one bias, but there is one of integers and one of f32 values" in reason(two_biases)


def test_a_residual_by_channel_is_refused() -> None:
    def body(x: ir.Value, r: ir.Value) -> ir.Value:
        parameters: dict[str, Any] = {"scales": (0.04,) * CHANNELS, "zero_points": (9,), "axis": 3}
        other = build(DequantizeOp, r, element="f32", **parameters).output
        return quantized(arith.addf(f32(conv(x)), other))

    assert "a residual with one zero point and one scale" in reason(body, [IMAGE, OUT])


def test_weights_known_at_run_time_fuse() -> None:
    def body(x: ir.Value, weight: ir.Value) -> ir.Value:
        return quantized(f32(conv(x, weight=weight)))

    op = fused_of(body, [IMAGE, "tensor<5x3x3x4xi8>"])
    assert op["epilogue"] == (DequantizeStage(multiplier=Multiplier.F32), QuantizeStage(scaling=Scaling.RECIPROCAL))
