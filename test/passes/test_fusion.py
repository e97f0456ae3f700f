"""Each fusion pass: the bits before and after are the same, and what must not be fused is not.

The graphs are run by the reference before and after each pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawn_graphs import Body, failures, graph, op_names, ops_of, run_both
from quantized_layers import (
    CHANNELS,
    SCALE,
    WEIGHT_SCALES,
    ZERO_POINT,
    add,
    bias_of,
    clamp,
    clip,
    conv,
    dense,
    fused,
    lut,
    random_table,
    requantize,
    unary,
)

from qdialect.arithmetic import Activation, AddArithmetic, Multiplier, Rounding, Scaling
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.dialect import (
    AvgPool2DOp,
    BroadcastOp,
    DequantizeOp,
    MaxPool2DOp,
    PadOp,
    QuantizeOp,
    Relu6Op,
    ReluOp,
    build,
)
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.stages.builtin_stages import (
    ActivationStage,
    ClampStage,
    DequantizeStage,
    QuantizeStage,
    RequantizeStage,
    SumStage,
)
from qdialect.dialect.type_constraints import QuantizedType, shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.passes.decompose_fused import DecomposeFusedPass
from qdialect.passes.float_chains import build_activation, uniform_constant
from qdialect.passes.fold_padding import FoldPaddingPass
from qdialect.passes.fuse_bias import FuseBiasPass
from qdialect.passes.fuse_clamp import FuseClampPass
from qdialect.passes.fuse_float_epilogue import FuseFloatEpiloguePass
from qdialect.passes.fuse_lut import FuseLutPass
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.fuse_requantize import FuseRequantizePass
from qdialect.passes.fuse_residual import FuseResidualPass

IMAGE = "tensor<1x6x7x4xui8>"
Layer = Callable[[ir.Value], ir.Value]
OUT = "tensor<1x6x7x5xui8>"


def plus(accumulators: ir.Value, addend: ir.Value) -> ir.Value:
    return arith.AddIOp(accumulators, addend).result


def per_channel(shape: tuple[int, ...]) -> ir.Value:
    values = np.arange(CHANNELS, dtype=np.int32) * 1000 - 2500
    return constant(np.broadcast_to(values, shape))


# fuse-requantize (R11, R12)


@pytest.mark.parametrize("rounding", list(Rounding))
@pytest.mark.parametrize("element", ["ui8", "i8"])
def test_requantize_fuses_into_conv(rounding: Rounding, element: str) -> None:
    module = graph([IMAGE], lambda x: requantize(conv(x, bias=bias_of()), element, rounding=rounding))
    after = run_both(module, FuseRequantizePass())
    assert op_names(after) == ["qnn.fused_conv2d"]
    assert ops_of(after, "qnn.fused_conv2d")[0].epilogue == (RequantizeStage(rounding=rounding),)


def test_requantize_fuses_into_dense_and_missing_bias_becomes_zeros() -> None:
    module = graph(["tensor<3x20xui8>"], lambda x: requantize(dense(x), weight_scales=(0.01,), axis=0))
    after = run_both(module, FuseRequantizePass())
    assert op_names(after) == ["qnn.fused_dense"]
    bias = constant_value(ops_of(after, "qnn.fused_dense")[0].bias)
    assert bias is not None
    assert bias.tolist() == [0] * CHANNELS


def test_one_weight_scale_matches_the_same_scale_for_each_channel() -> None:
    def body(x: ir.Value) -> ir.Value:
        return requantize(conv(x, weight_scales=(0.01,)), weight_scales=(0.01,) * CHANNELS)

    assert op_names(run_both(graph([IMAGE], body), FuseRequantizePass())) == ["qnn.fused_conv2d"]


def test_requantize_with_a_weight_of_run_time_fuses() -> None:
    module = graph([IMAGE, "tensor<5x3x3x4xi8>"], lambda x, w: requantize(conv(x, weight=w)))
    assert "qnn.fused_conv2d" in op_names(run_both(module, FuseRequantizePass()))


# fuse-bias (R12)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("constant_first", [False, True])
def test_addition_fuses_as_bias(with_bias: bool, constant_first: bool) -> None:
    def body(x: ir.Value) -> ir.Value:
        accumulators, addend = conv(x, bias=bias_of() if with_bias else None), per_channel((1, 6, 7, CHANNELS))
        return plus(addend, accumulators) if constant_first else plus(accumulators, addend)

    assert op_names(run_both(graph([IMAGE], body), FuseBiasPass())) == ["qnn.conv2d"]


def test_bias_sum_wraps_as_the_accumulator_does() -> None:
    def body(x: ir.Value) -> ir.Value:
        largest = constant(np.full(CHANNELS, 2**31 - 1, dtype=np.int32))
        return plus(conv(x, bias=largest), per_channel((1, 6, 7, CHANNELS)))

    assert op_names(run_both(graph([IMAGE], body), FuseBiasPass())) == ["qnn.conv2d"]


# fold-padding (R12, R8)


def padded(x: ir.Value, value: int = 3, high: tuple[int, ...] = (0, 1, 3, 0)) -> ir.Value:
    return build(PadOp, x, element="ui8", low=(0, 2, 0, 0), high=high, value=value).output


@pytest.mark.parametrize("layer", [conv, fused])
def test_pad_with_the_zero_point_folds(layer: Any) -> None:
    after = run_both(graph([IMAGE], lambda x: layer(padded(x))), FoldPaddingPass())
    assert len(op_names(after)) == 1
    assert ops_of(after, op_names(after)[0])[0].padding == (3, 1, 2, 4)


def test_pad_with_another_user_stays_for_it() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        grown = padded(x)
        return [conv(grown), grown]

    assert op_names(run_both(graph([IMAGE], body), FoldPaddingPass())) == ["qnn.pad", "qnn.conv2d"]


# fuse-clamp (R12)


@pytest.mark.parametrize(("low", "high"), [(7, 127), (0, 40), (200, 220)])
def test_clip_fuses_into_the_op_that_feeds_it(low: int, high: int) -> None:
    def pool(op_class: Any, **more: Any) -> Layer:
        how: dict[str, Any] = {"kernel": (2, 2), "output_min": 20, "output_max": 180, **more}
        return lambda x: build(op_class, x, element="ui8", **how).output

    producers: list[Layer] = [
        fused,
        lambda x: add(x, x, output_min=20, output_max=180),
        pool(MaxPool2DOp),
        pool(AvgPool2DOp, zero_point=3),
        lambda x: clip(x, 30, 190),
        lambda x: fused(x, "ui8", ClampStage(min=25, max=100)),
    ]
    for make in producers:

        def body(x: ir.Value, make: Layer = make) -> ir.Value:
            return clip(make(x), low, high)

        after = run_both(graph([IMAGE], body), FuseClampPass())
        assert len(op_names(after)) == 1


@pytest.mark.parametrize("op_class", [ReluOp, Relu6Op])
def test_relu_fuses_where_it_is_a_clamp(op_class: Any) -> None:
    same: dict[str, Any] = {"output_scale": SCALE, "output_zero_point": ZERO_POINT}
    after = run_both(graph([IMAGE], lambda x: unary(op_class, fused(x), **same)), FuseClampPass())
    (op,) = ops_of(after, "qnn.fused_conv2d")
    assert op.epilogue[1:] == (ClampStage(min=ZERO_POINT, max=255 if op_class is ReluOp else ZERO_POINT + 120),)


def test_clip_after_a_residual_clamps_the_sum_alone() -> None:
    after = run_both(
        graph([IMAGE, OUT], lambda x, r: clip(add(fused(x), r), 20, 90)), FuseResidualPass(), FuseClampPass()
    )
    (op,) = ops_of(after, "qnn.fused_conv2d")
    assert [stage.name for stage in op.epilogue] == ["requantize", "add", "clamp"]
    assert op.epilogue[-1] == ClampStage(min=20, max=90)


def test_a_clamp_of_a_clamp_is_one_and_one_of_everything_is_none() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        whole = clip(fused(x), 0, 255)
        return [clip(fused(x, "ui8", ClampStage(min=25, max=100)), 0, 50), whole]

    module = run_both(graph([IMAGE], body), FuseClampPass())
    whole, narrowed = ops_of(module, "qnn.fused_conv2d")
    assert narrowed.epilogue[1:] == (ClampStage(min=25, max=50),)
    assert [stage.name for stage in whole.epilogue] == ["requantize"]


# fuse-lut (R1)


@pytest.mark.parametrize("middle", ["ui8", "i8"])
@pytest.mark.parametrize("final", ["ui8", "i8"])
def test_table_fuses_for_every_code(middle: str, final: str) -> None:
    module = graph(["tensor<1x40x40x4xui8>"], lambda x: lut(fused(x, middle), random_table(), final))
    after = run_both(module, FuseLutPass())
    (op,) = ops_of(after, "qnn.fused_conv2d")
    assert op_names(after) == ["qnn.fused_conv2d"]
    first, last = op.stages()
    assert (op.output_scale, op.output_zero_point) == (0.125, 11)
    assert first.after == last.before == QuantizedType(SCALE, ZERO_POINT, middle)
    assert last.after == QuantizedType(0.125, 11, final)


def test_second_table_is_composed_with_the_first() -> None:
    def body(x: ir.Value) -> ir.Value:
        first = lut(fused(x), random_table(1))
        return lut(first, random_table(2), input_scale=0.125, input_zero_point=11)

    assert op_names(run_both(graph(["tensor<1x40x40x4xui8>"], body), FuseLutPass())) == ["qnn.fused_conv2d"]


def test_tables_that_must_not_fuse_are_refused() -> None:
    def twice(x: ir.Value) -> list[ir.Value]:
        found = fused(x)
        return [lut(found, random_table()), found]

    assert "has 2 uses" in failures(graph([IMAGE], twice), FuseLutPass())[0]
    module = graph([IMAGE], lambda x: lut(fused(x), random_table(), input_scale=0.06))
    assert "input_scale must be 0.05, but got 0.06" in failures(module, FuseLutPass())[0]
    module = graph([IMAGE], lambda x: lut(fused(x), random_table(), input_zero_point=8))
    assert "input_zero_point must be 7, but got 8" in failures(module, FuseLutPass())[0]


# fuse-residual (N6)


@pytest.mark.parametrize("arithmetic", list(AddArithmetic))
@pytest.mark.parametrize("on_the_left", [True, False])
def test_residual_fuses(arithmetic: AddArithmetic, on_the_left: bool) -> None:
    how: dict[str, Any] = {"arithmetic": arithmetic, "rounding": Rounding.FIXED32_DOUBLE}
    side = "rhs" if on_the_left else "lhs"
    how |= {f"{side}_scale": 0.04, f"{side}_zero_point": 9, "output_min": 12, "output_max": 240}

    def body(x: ir.Value, r: ir.Value) -> ir.Value:
        return add(fused(x), r, **how) if on_the_left else add(r, fused(x), **how)

    module = graph([IMAGE, OUT], body)
    after = run_both(module, FuseResidualPass())
    assert op_names(after) == ["qnn.fused_conv2d"]
    assert ops_of(after, "qnn.fused_conv2d")[0].residual is not None


def test_residual_of_another_type() -> None:
    def body(x: ir.Value, r: ir.Value) -> ir.Value:
        return add(fused(x), r, "i8", output_zero_point=-5)

    after = run_both(graph([IMAGE, "tensor<1x6x7x5xi8>"], body), FuseResidualPass())
    assert op_names(after) == ["qnn.fused_conv2d"]


def test_of_two_convolutions_the_later_one_takes_the_sum() -> None:
    def body(x: ir.Value) -> ir.Value:
        early, late = fused(x), fused(x, "ui8", ClampStage(min=9, max=255))
        return add(early, late)

    after = run_both(graph([IMAGE], body), FuseResidualPass())
    first, second = ops_of(after, "qnn.fused_conv2d")
    assert first.residual is None
    assert ClampStage(min=9, max=255) in second.epilogue
    assert second.residual is not None


# Float epilogues fuse with their bits, and what rounds elsewhere is refused.

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


@pytest.mark.parametrize("is_integer", [False, True])
def test_what_is_fused_and_decomposed_fuses_again(is_integer: bool) -> None:
    def body(x: ir.Value, r: ir.Value) -> ir.Value:
        value = f32(conv(x, bias=bias_of() if is_integer else None))
        value = arith.addf(value if is_integer else arith.addf(value, bias(value)), residual_of(r))
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


def test_weights_known_at_run_time_fuse() -> None:
    def body(x: ir.Value, weight: ir.Value) -> ir.Value:
        return quantized(f32(conv(x, weight=weight)))

    op = fused_of(body, [IMAGE, "tensor<5x3x3x4xi8>"])
    assert op["epilogue"] == (DequantizeStage(multiplier=Multiplier.F32), QuantizeStage(scaling=Scaling.RECIPROCAL))
