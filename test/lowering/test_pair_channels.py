"""Products of 16-bit pairs: reordered channels, bounds of sums, and data stored as 16-bit words."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check_compiled, variants_together
from drawn_graphs import convolution, graph, ops_of, random_inputs, run_both
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.arithmetic import Rounding
from qdialect.dialect import AvgPool2DOp, ConcatOp, FusedConv2DOp, MeanOp, MulOp, SigmoidOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.stages.builtin_stages import AddStage, RequantizeStage
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.cost.register_tiles import parts_that_fit, sums_fit
from qdialect.lowering.cost.strategy import Strategy, strategy_of
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.contractions import emission
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes
from qdialect.lowering.qnn_to_linalg.pair_channels import PairChannelsPass
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Program
from qdialect.passes.pattern import producer
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.targets import TARGETS, host_features, resolve

AVX2 = TARGETS["avx2"]
HERE = "avx2" if AVX2.features <= host_features() else "avx2,portable"
HIDDEN = 24
INPUT = "tensor<1x5x5x4xui8>"
Body = Callable[[ir.Value], ir.Value | list[ir.Value]]
SAME: dict[str, Any] = {"input_scale": 0.1, "input_zero_point": 120, "output_scale": 0.1, "output_zero_point": 120}
PRODUCT: dict[str, Any] = {
    **{f"{name}_scale": 0.1 for name in ("lhs", "rhs", "output")},
    **{f"{name}_zero_point": 120 for name in ("lhs", "rhs", "output")},
    "output_min": 0,
    "output_max": 255,
}


def weights(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int8]:
    """Random weights; those of many input channels are large in the first half, where all neighbours conflict."""
    inputs = shape[-1]
    values = rng.integers(-9, 10, shape)
    if inputs >= HIDDEN:
        values[..., : inputs // 2] = rng.integers(90, 100, (*shape[:-1], inputs // 2))
    return values.astype(np.int8)


def layer(
    data: ir.Value, outputs: int, *, taps: int = 1, groups: int = 1, residual: ir.Value | None = None
) -> ir.Value:
    """A convolution with other parameters for each output channel."""
    rng = np.random.default_rng(outputs + taps)
    shape = (outputs, taps, taps, shape_of(data.type)[-1] // groups)
    requantize = RequantizeStage(rounding=Rounding.FIXED64_UP)
    add = AddStage(residual_scale=0.1, residual_zero_point=120)
    return build(
        FusedConv2DOp,
        data,
        constant(weights(rng, shape)),
        constant(rng.integers(-999, 999, outputs).astype(np.int32)),
        residual,
        element="ui8",
        input_scale=0.1,
        input_zero_point=120,
        weight_scales=tuple(rng.uniform(0.01, 0.02, outputs)),
        weight_zero_points=tuple(int(point) for point in rng.integers(-2, 3, outputs)),
        output_scale=0.1,
        output_zero_point=120,
        padding=(taps // 2,) * 4,
        groups=groups,
        epilogue=(requantize, add) if residual is not None else (requantize,),
    ).output


def chain(x: ir.Value) -> ir.Value:
    return layer(layer(x, HIDDEN, taps=3), 8)


def depthwise(x: ir.Value) -> ir.Value:
    return layer(layer(layer(x, HIDDEN), HIDDEN, taps=3, groups=HIDDEN), 8)


def residual(x: ir.Value) -> ir.Value:
    first = layer(x, HIDDEN)
    return layer(layer(first, HIDDEN, residual=first), 8, taps=3)


def pooled(x: ir.Value) -> ir.Value:
    attributes: dict[str, Any] = {
        "kernel": (2, 2),
        "strides": (2, 2),
        "zero_point": 120,
        "output_min": 0,
        "output_max": 255,
    }
    pool = build(AvgPool2DOp, layer(x, HIDDEN), element="ui8", **attributes).output
    return layer(build(SigmoidOp, pool, element="ui8", entries="half_away_divide", nan="max", **SAME).output, 8)


def gated(x: ir.Value) -> ir.Value:
    """Squeeze and excitation: the mean of every channel is its factor."""
    hidden = layer(x, HIDDEN)
    mean = build(MeanOp, hidden, element="ui8", axes=(1, 2), keep_dims=True, rounding="fixed64_up", **SAME).output
    gate = layer(layer(mean, 6), HIDDEN)
    return layer(build(MulOp, hidden, gate, element="ui8", rounding="fixed64_up", **PRODUCT).output, 8)


def squared(x: ir.Value) -> ir.Value:
    """One tensor is both operands."""
    hidden = layer(x, HIDDEN)
    return layer(build(MulOp, hidden, hidden, element="ui8", rounding="fixed64_up", **PRODUCT).output, 8)


def joined(x: ir.Value) -> ir.Value:
    parts = [layer(x, HIDDEN), layer(x, HIDDEN, taps=3)]
    scales: dict[str, Any] = {
        "input_scales": (0.1, 0.1),
        "input_zero_points": (120, 120),
        "output_scale": 0.1,
        "output_zero_point": 120,
    }
    return layer(build(ConcatOp, *parts, element="ui8", axis=3, **scales).output, 8)


def returned(x: ir.Value) -> list[ir.Value]:
    hidden = layer(x, HIDDEN)
    return [layer(hidden, 8), hidden]


def grouped(x: ir.Value) -> ir.Value:
    return layer(layer(layer(x, HIDDEN), 2 * HIDDEN, groups=HIDDEN), 8, groups=2)


def constant_residual(x: ir.Value) -> ir.Value:
    """The channels of a constant stay where they are."""
    added = constant(np.arange(25 * HIDDEN, dtype=np.uint8).reshape(1, 5, 5, HIDDEN))
    return layer(layer(x, HIDDEN, residual=added), 8)


REORDERED: dict[str, Body] = {
    "chain": chain,
    "depthwise": depthwise,
    "residual": residual,
    "pooled": pooled,
    "gated": gated,
    "squared": squared,
}
KEPT: dict[str, Body] = {
    "joined": joined,
    "returned": returned,
    "grouped": grouped,
    "constant_residual": constant_residual,
}


@pytest.mark.parametrize("name", REORDERED)
def test_results_are_the_same_and_pairs_keep_the_bound(name: str) -> None:
    module = graph([INPUT], REORDERED[name])
    after = run_both(module, PairChannelsPass())
    assert str(after) != str(module)
    text = str(lower(module, AVX2, Phase.LINALG).module)
    assert "remainder" not in text
    assert "qnn.pair_sums_fit" in text


@pytest.mark.parametrize("name", KEPT)
def test_a_given_order_is_kept(name: str) -> None:
    module = graph([INPUT], KEPT[name])
    assert str(run_both(module, PairChannelsPass())) == str(module)


@variants_together
@pytest.mark.parametrize("name", REORDERED)
def test_compiled(name: str) -> None:
    module = graph([INPUT], REORDERED[name])
    arrays = random_inputs(module)
    check_compiled(module, HERE, [arrays], [run(module, arrays)])


def test_run_time_weights_keep_the_order() -> None:
    def body(x: ir.Value, weight: ir.Value) -> ir.Value:
        hidden = layer(x, HIDDEN)
        bias = constant(np.zeros(8, np.int32))
        own: dict[str, Any] = {name: SAME[name] for name in SAME} | {"weight_scales": (0.01,), "padding": (0, 0, 0, 0)}
        stages = (RequantizeStage(rounding=Rounding.FIXED64_UP),)
        return build(FusedConv2DOp, hidden, weight, bias, element="ui8", epilogue=stages, **own).output

    module = graph([INPUT, f"tensor<8x1x1x{HIDDEN}xi8>"], body)
    assert str(run_both(module, PairChannelsPass())) == str(module)


def test_a_constant_of_two_layers_is_reordered_for_one() -> None:
    def body(x: ir.Value, y: ir.Value) -> list[ir.Value]:
        first = layer(x, HIDDEN)
        second = producer(layer(first, 8))
        assert second is not None
        other = second.operation.clone()
        other.operands[0] = y
        return [second.operation.results[0], other.results[0]]

    module = graph([INPUT, f"tensor<1x5x5x{HIDDEN}xui8>"], body)
    after = run_both(module, PairChannelsPass())
    _, second, other = (op.weight for op in ops_of(after, "qnn.fused_conv2d"))
    assert second != other


# Products of bytes that are summed in pairs: exact whatever the weights, the zero points and the data.

EXTREMES = [-255, -129, -128, -127, -65, -64, -1, 0, 1, 63, 64, 65, 127, 128, 129, 255]


def test_the_bound_is_just_what_16_bits_hold() -> None:
    weights = np.arange(-128, 128)
    first, second = (each.ravel() for each in np.meshgrid(weights, weights))
    corners = [x * first + y * second for x in (0, 255) for y in (0, 255)]
    is_exact = (np.max(corners, axis=0) < 2**15) & (np.min(corners, axis=0) >= -(2**15))
    fits = [sums_fit(np.array(pair, np.int8)) for pair in zip(first, second, strict=True)]
    np.testing.assert_array_equal(fits, is_exact)


@given(st.lists(st.lists(st.sampled_from(EXTREMES) | st.integers(-255, 255), min_size=7, max_size=7), min_size=1))
def test_parts_add_up_and_every_pair_of_each_fits(rows: list[list[int]]) -> None:
    taps = np.array(rows, np.int16)
    parts = parts_that_fit(taps)
    np.testing.assert_array_equal(np.sum(parts, axis=0, dtype=np.int64), taps)
    assert all(sums_fit(np.pad(part, ((0, 0), (0, 1)))) for part in parts)


def test_a_kernel_refuses_pairs_that_may_saturate() -> None:
    kernel = Kernel(Program([], [], strategy_of(AVX2)))
    with pytest.raises(ValueError, match="weights must have pairs of weights whose sums of products fit 16 bits"):
        kernel.data("weights", np.array([0, 0, 64, 65], np.int8), is_weight=True, in_pairs=True)


def test_rare_pairs_beyond_the_bound_are_multiplied_once_more() -> None:
    weights = np.full((16, 1, 1, 64), 30, np.int8)
    weights[3, 0, 0, 20:22] = 127
    window = ((1, 4, 4, 64), weights.shape, (1, 1), (0, 0, 0, 0), (1, 1), 1)
    text = str(lower(convolution(window, "ui8", weights, (0,)), AVX2, Phase.LINALG).module)
    assert "qnn.pair_sums_fit" in text
    assert "remainder0" in text
    assert "remainder1" not in text
    weights[:] = 127
    text = str(lower(convolution(window, "ui8", weights, (0,)), AVX2, Phase.LINALG).module)
    assert "qnn.pair_sums_fit" not in text
    assert "xi16>" in text


WINDOWS = [
    ((1, 5, 7, 3), (8, 3, 3, 3), (2, 2), (0, 1, 1, 0), (1, 1), 1),
    ((1, 6, 6, 6), (33, 2, 3, 6), (1, 1), (1, 1, 1, 1), (2, 1), 1),
    ((2, 3, 5, 36), (72, 1, 1, 18), (1, 1), (0, 0, 0, 0), (1, 1), 2),
    ((1, 4, 4, 12), (24, 3, 3, 2), (1, 1), (1, 1, 1, 1), (1, 1), 6),
    ((1, 1, 9, 131), (40, 1, 1, 131), (1, 1), (0, 0, 0, 0), (1, 1), 1),
]


def extreme(shape: tuple[int, ...], element: str) -> NDArray[Any]:
    """Weights at both ends of their range and between."""
    rng = np.random.default_rng(len(shape) + shape[0])
    kind = np.uint8 if element == "ui8" else np.int8
    ends = np.iinfo(kind)
    return rng.choice([ends.min, ends.min + 1, ends.max // 2, ends.max - 1, ends.max], shape).astype(kind)


def always(op: Contraction, strategy: Strategy, group: ChannelGroup, axes: ReductionAxes) -> bool:
    del op, strategy, group, axes
    return True


def never(op: Contraction, strategy: Strategy) -> bool:
    del op, strategy
    return False


def check_exact(number: int, weight: str, target: str) -> None:
    """Compare the sums of extreme weights and zero points."""
    channels, data = WINDOWS[number][1][0], EIGHT_BIT[number % 2]
    low = 0 if weight == "ui8" else -128
    points = tuple(low + (0, 255, 128, 1)[(number + k) % 4] for k in range(channels if number % 2 else 1))
    module = convolution(WINDOWS[number], data, extreme(WINDOWS[number][1], weight), points)
    arrays = [extreme(WINDOWS[number][0], data)]
    check_compiled(module, target, [arrays], [run(module, arrays)])


@variants_together
@pytest.mark.parametrize("number", range(len(WINDOWS)))
@pytest.mark.parametrize("weight", EIGHT_BIT)
def test_extreme_weights_and_zero_points(number: int, weight: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contraction, "sums_pairs", always)
    monkeypatch.setattr(emission, "is_faster_on_words", never)
    check_exact(number, weight, HERE)


# Contractions of a user's signed values: multiplied as they are where an instruction does, copied elsewhere.

SIGNED = resolve("avxvnniint8")
ROWS, DEPTH, CHANNELS = 3, 40, 19


def dense(zero_points: str, element: str = "i8", extra: str = "") -> str:
    """A matrix product of rows of signed values; weights up to nine bits, with or without zero points."""
    rng = np.random.default_rng(1)
    low, high = (-128, 128) if element == "i8" else (0, 256)
    weights = rng.integers(low, high, (CHANNELS, DEPTH)).tolist()
    return f"""
    func.func @main(%x: tensor<{ROWS}x{DEPTH}xi8>) -> tensor<{ROWS}x{CHANNELS}xi32> {{
      %w = "qnn.constant"() {{value = dense<{weights}> : tensor<{CHANNELS}x{DEPTH}x{element}>}}
        : () -> tensor<{CHANNELS}x{DEPTH}x{element}>
      {extra}
      %0 = "qnn.dense"(%x, %w) {{
        input_scale = 0.5 : f64, input_zero_point = -7 : i64, weight_scales = array<f64: 0.25>,
        weight_zero_points = array<i64: {zero_points}>
      }} : (tensor<{ROWS}x{DEPTH}xi8>, tensor<{CHANNELS}x{DEPTH}x{element}>) -> tensor<{ROWS}x{CHANNELS}xi32>
      return %0 : tensor<{ROWS}x{CHANNELS}xi32>
    }}"""


@pytest.mark.parametrize(("zero_points", "element"), [("0", "i8"), ("3", "i8"), ("91", "ui8")])
def test_signed_values_are_multiplied_as_they_are(zero_points: str, element: str) -> None:
    module = parse(dense(zero_points, element))
    lowered = lower(module, SIGNED, Phase.X86)
    assert "llvm.x86.avx2.vpdpbssd" in str(lowered.module)
    assert "vpdpbusd" not in str(lowered.module)
    assert not any(label.startswith("input") for label in lowered.labels)
    rows = np.random.default_rng(2).choice([-128, -127, -1, 0, 127], (ROWS, DEPTH)).astype(np.int8)
    wanted = run(module, [rows])[0]
    targets = ["avxvnniint8,portable", *(["avxvnniint8"] if SIGNED.features <= host_features() else [])]
    for target in targets:
        np.testing.assert_array_equal(compile_module(module, target=target)(rows), wanted, err_msg=target)


# Words of bytes that are stored before they are multiplied: when they are, and the bits of what is computed so.

NAMES = ("avx512bw", "avx2", "sse4.1", "x86-64")
WORD_TARGETS = [name if TARGETS[name].features <= host_features() else f"{name},portable" for name in NAMES]


def on_words(op: Contraction, strategy: Strategy) -> bool:
    del op, strategy
    return True


@variants_together
@pytest.mark.parametrize("target", WORD_TARGETS)
@pytest.mark.parametrize("number", range(len(WINDOWS)))
def test_every_weight_and_zero_point_is_exact(target: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emission, "is_faster_on_words", on_words)
    check_exact(number, EIGHT_BIT[number // 2 % 2], target)
