"""Channels that are reordered for products in pairs: the same results, and pairs that keep the bound."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphs import graph, ops_of, random_inputs, run_both
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from together import check_compiled, variants_together

from qdialect.arithmetic import Rounding
from qdialect.dialect import AvgPool2DOp, ConcatOp, FusedConv2DOp, FusedDenseOp, MeanOp, MulOp, SigmoidOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.stages.builtin_stages import AddStage, RequantizeStage
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.pair_sums import LARGEST, conflicts, paired_order
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.pair_channels import PairChannelsPass
from qdialect.passes.matching import producer
from qdialect.reference.interpreter import run
from qdialect.targets import TARGETS, host_features

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


def test_layers_of_matrices_are_reordered() -> None:
    def dense(data: ir.Value, outputs: int) -> ir.Value:
        rng = np.random.default_rng(outputs)
        own = weights(rng, (outputs, shape_of(data.type)[-1]))
        bias = constant(rng.integers(-99, 99, outputs).astype(np.int32))
        stages = (RequantizeStage(rounding=Rounding.FIXED64_UP),)
        return build(
            FusedDenseOp, data, constant(own), bias, element="ui8", epilogue=stages, weight_scales=(0.01,), **SAME
        ).output

    module = graph(["tensor<9x8xui8>"], lambda x: dense(dense(x, HIDDEN), 8))
    assert str(run_both(module, PairChannelsPass())) != str(module)


FILTERS = hnp.arrays(
    np.int16, st.tuples(*[st.integers(1, 3)] * 2, st.sampled_from([8, 10, 12])), elements=st.integers(-255, 255)
)


@given(FILTERS)
def test_conflicts_are_what_exceeds_the_bound(filters: NDArray[np.int16]) -> None:
    channels = filters.shape[-1]
    sums = [part[..., :, None] + part[..., None, :] for part in (filters.clip(min=0), (-filters).clip(min=0))]
    wanted = (np.maximum(*sums) > LARGEST).any(axis=(0, 1)) & ~np.eye(channels, dtype=np.bool_)
    found = conflicts(filters, channels)
    if found is not None:
        np.testing.assert_array_equal(found & ~np.eye(channels, dtype=np.bool_), wanted)
    else:
        assert (~wanted).sum() < 5 * channels


@given(hnp.arrays(np.bool_, st.sampled_from([(n, n) for n in (2, 8, 10, 24)])))
def test_an_order_has_every_channel_and_fewer_conflicts(drawn: NDArray[np.bool_]) -> None:
    conflict = drawn | drawn.T
    order = paired_order(conflict)
    if order is None:
        return
    np.testing.assert_array_equal(np.sort(order), np.arange(len(conflict)))
    before, after = (conflict[one[0::2], one[1::2]] for one in (np.arange(len(conflict)), order))
    assert after.sum() < before.sum() or after.sum() <= len(after) // 2


def test_every_channel_of_a_sparse_graph_finds_a_partner() -> None:
    rng = np.random.default_rng(0)
    fits = rng.random((200, 200)) < 0.04
    order = paired_order(~(fits | fits.T))
    assert order is not None
    assert not (~(fits | fits.T))[order[0::2], order[1::2]].any()
