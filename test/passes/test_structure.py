"""Passes on the structure of the graph: canonicalize, transposes, the float32 epilogue, and fused ops taken apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawn_graphs import graph, op_names, ops_of, run_both
from quantized_layers import (
    CHANNELS,
    SCALE,
    WEIGHT_SCALES,
    ZERO_POINT,
    add,
    clip,
    conv,
    dense,
    fused,
    lut,
    random_table,
    requantize,
    sigmoid,
)

from qdialect.arithmetic import AddArithmetic, Rounding, identity_table
from qdialect.dialect import ConcatOp, GatherOp, PadOp, RequantizeOp, ReshapeOp, SigmoidOp, SliceOp, TransposeOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.stages.builtin_stages import ClampStage
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.passes.canonicalize import CanonicalizePass
from qdialect.passes.decompose_fused import DecomposeFusedPass
from qdialect.passes.fuse_clamp import FuseClampPass
from qdialect.passes.fuse_lut import FuseLutPass
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.fuse_requantize import FuseRequantizePass
from qdialect.passes.fuse_residual import FuseResidualPass
from qdialect.passes.raise_requantize import RaiseRequantizePass
from qdialect.passes.sink_transpose import SinkTransposePass

IMAGE = "tensor<1x6x7x4xui8>"
PLANES = "tensor<1x4x6x7xui8>"
TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def transpose(x: ir.Value, permutation: tuple[int, ...]) -> ir.Value:
    return build(TransposeOp, x, element=element_of(x.type), permutation=permutation).output


def reshape(x: ir.Value, *shape: int) -> ir.Value:
    return build(ReshapeOp, x, element=element_of(x.type), shape=shape).output


def rescale(x: ir.Value, **changes: Any) -> ir.Value:
    attributes: dict[str, Any] = {
        "input_scale": SCALE,
        "input_zero_points": (ZERO_POINT,),
        "output_scale": SCALE,
        "output_zero_point": ZERO_POINT,
        "rounding": Rounding.FIXED64_UP,
        **changes,
    }
    return build(RequantizeOp, x, element=element_of(x.type), **attributes).output


def part(x: ir.Value, begin: tuple[int, ...], size: tuple[int, ...]) -> ir.Value:
    return build(SliceOp, x, element=element_of(x.type), begin=begin, size=size, strides=(1,) * len(size)).output


def gathered(x: ir.Value, axis: int, indices: tuple[int, ...]) -> ir.Value:
    return build(GatherOp, x, element=element_of(x.type), axis=axis, indices=indices).output


# canonicalize


@pytest.mark.parametrize("rounding", list(Rounding))
def test_requantize_to_the_same_parameters_is_nothing(rounding: Rounding) -> None:
    """N1: the multiplier is exactly one, in every rounding mode."""
    assert op_names(run_both(graph([IMAGE], lambda x: rescale(x, rounding=rounding)), CanonicalizePass())) == []


def test_identities_are_nothing() -> None:
    same: dict[str, Any] = {"output_scale": SCALE, "output_zero_point": ZERO_POINT}
    bodies: list[Callable[[ir.Value], ir.Value]] = [
        lambda x: lut(x, identity_table(), **same),
        lambda x: clip(x, 0, 255),
        lambda x: reshape(x, 1, 6, 7, 4),
        lambda x: transpose(x, (0, 1, 2, 3)),
        lambda x: build(PadOp, x, element="ui8", low=(0,) * 4, high=(0,) * 4, value=3).output,
        lambda x: part(x, (0, 0, 0, 0), (1, 6, 7, 4)),
        lambda x: gathered(x, 2, tuple(range(7))),
        lambda x: transpose(transpose(x, TO_NCHW), TO_NHWC),
        lambda x: reshape(reshape(x, 168), 1, 6, 7, 4),
    ]
    for body in bodies:
        assert op_names(run_both(graph([IMAGE], body), CanonicalizePass())) == []


def test_movements_are_composed() -> None:
    twice = graph([IMAGE], lambda x: transpose(transpose(x, TO_NCHW), TO_NCHW))
    module = run_both(twice, CanonicalizePass())
    assert ops_of(module, "qnn.transpose")[0].permutation == (0, 2, 3, 1)
    flat = graph([IMAGE], lambda x: reshape(reshape(x, 2, 84), 168))
    assert op_names(run_both(flat, CanonicalizePass())) == ["qnn.reshape"]
    row = graph(["tensor<1x1x9x4xui8>"], lambda x: transpose(x, (2, 0, 3, 1)))
    assert op_names(run_both(row, CanonicalizePass())) == ["qnn.reshape"]


def test_movement_of_constants_is_done() -> None:
    def body(x: ir.Value) -> ir.Value:
        weight = constant(np.arange(-90, 90, dtype=np.int8).reshape(3, 3, 4, 5))
        flat = constant(np.arange(CHANNELS + 1, dtype=np.int32).reshape(1, CHANNELS + 1))
        backwards = gathered(part(flat, (0, 1), (1, CHANNELS)), 1, tuple(range(CHANNELS))[::-1])
        return conv(x, weight=transpose(weight, (3, 0, 1, 2)), bias=reshape(backwards, CHANNELS))

    assert op_names(run_both(graph([IMAGE], body), CanonicalizePass())) == ["qnn.conv2d"]


# sink-transpose (R5)


def test_transposes_move_past_element_wise_ops_and_meet() -> None:
    def body(x: ir.Value) -> ir.Value:
        planes = transpose(requantize(conv(x)), TO_NCHW)
        table = lut(clip(planes, 3, 200), random_table())
        return transpose(sigmoid(table, input_scale=0.125, input_zero_point=11), TO_NHWC)

    after = run_both(graph([IMAGE], body), SinkTransposePass())
    assert op_names(after) == ["qnn.conv2d", "qnn.requantize", "qnn.clip", "qnn.lut", "qnn.sigmoid"]


def test_attributes_that_name_dimensions_are_renamed() -> None:
    def body(x: ir.Value) -> ir.Value:
        quantized = requantize(transpose(conv(x), TO_NCHW), axis=1)
        padded = build(PadOp, quantized, element="ui8", low=(0, 1, 2, 3), high=(0, 0, 1, 0), value=9).output
        return gathered(part(padded, (0, 1, 0, 2), (1, 3, 5, 4)), 1, (2, 0, 2, 1))

    after = run_both(graph([IMAGE], body), SinkTransposePass())
    moved = ["qnn.pad", "qnn.slice", "qnn.gather"]
    assert op_names(after) == ["qnn.conv2d", "qnn.requantize", *moved, "qnn.transpose"]
    assert ops_of(after, "qnn.requantize")[0].axis == 3


def test_transposes_of_both_operands_become_one() -> None:
    def total(x: ir.Value, y: ir.Value) -> ir.Value:
        return add(transpose(x, TO_NHWC), transpose(y, TO_NHWC))

    def joined(x: ir.Value, y: ir.Value) -> ir.Value:
        how: dict[str, Any] = {"input_scales": (0.1, 0.2), "input_zero_points": (3, 4)}
        operands = (transpose(x, TO_NHWC), transpose(y, TO_NHWC))
        return build(ConcatOp, *operands, element="ui8", axis=3, output_scale=0.2, output_zero_point=5, **how).output

    def with_constant(x: ir.Value, _: ir.Value) -> ir.Value:
        values = np.arange(24, dtype=np.uint8).reshape(1, 6, 1, 4)
        return add(constant(values), transpose(x, TO_NHWC))

    for body, name in ((total, "qnn.add"), (joined, "qnn.concat"), (with_constant, "qnn.add")):
        assert op_names(run_both(graph([PLANES, PLANES], body), SinkTransposePass())) == [name, "qnn.transpose"]


def test_a_transpose_stays_for_its_other_users() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        moved = transpose(x, TO_NHWC)
        return [clip(moved, 3, 9), moved]

    after = run_both(graph([PLANES], body), SinkTransposePass())
    assert sorted(op_names(after)) == ["qnn.clip", "qnn.transpose", "qnn.transpose"]


def test_a_network_in_planes_has_transposes_at_its_edges_alone() -> None:
    """R5: conv -> leaky -> conv in NCHW; nothing stands between the two kernels."""

    def body(x: ir.Value) -> ir.Value:
        for _ in range(2):
            planes = transpose(conv(transpose(x, TO_NHWC)), TO_NCHW)
            x = sigmoid(requantize(planes, axis=1))
        return x

    after = run_both(graph([PLANES], body), FuseQnnPass())
    assert op_names(after) == ["qnn.transpose", "qnn.fused_conv2d", "qnn.fused_conv2d", "qnn.transpose"]


# raise-requantize (R16)


def uniform(value: float, like: ir.Value, dtype: Any = np.float32) -> ir.Value:
    return constant(np.full(shape_of(like.type), value, dtype=dtype))


def cast(name: str, x: ir.Value, element: str) -> ir.Value:
    type_ = ir.RankedTensorType.get(list(shape_of(x.type)), ir.Type.parse(element))
    return ir.Operation.create(name, results=[type_], operands=[x]).results[0]


def operation(name: str, *operands: ir.Value) -> ir.Value:
    return ir.Operation.create(name, results=[operands[0].type], operands=list(operands)).results[0]


def expanded(
    accumulators: ir.Value,
    element: str = "ui8",
    multipliers: Any = None,
    zero_point: float = 20,
    steps: int = 1,
    bounds: tuple[int, int] | None = None,
) -> ir.Value:
    """The float32 UPWARD epilogue as TVM's lowering writes it."""
    if multipliers is None:
        multipliers = np.float32(0.02) * np.array(WEIGHT_SCALES, dtype=np.float32) / np.float32(SCALE)
    v = cast("arith.sitofp", accumulators, "f32")
    m = np.broadcast_to(np.asarray(multipliers, dtype=np.float32), shape_of(v.type))
    v = operation("arith.mulf", v, constant(m))
    if steps == 2:
        v = operation("arith.addf", v, uniform(zero_point, v))
    v = operation("arith.addf", v, uniform(0.5 if steps == 2 else zero_point + 0.5, v))
    quantized = cast("arith.fptosi", operation("math.floor", v), "i32")
    low, high = bounds or ((0, 255) if element == "ui8" else (-128, 127))
    quantized = operation("arith.maxsi", quantized, uniform(low, quantized, np.int32))
    quantized = operation("arith.minsi", quantized, uniform(high, quantized, np.int32))
    narrow = cast("arith.trunci", quantized, "i8")
    return narrow if element == "i8" else cast("tensor.bitcast", narrow, "ui8")


@pytest.mark.parametrize("element", ["ui8", "i8"])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("zero_point", [0, 1, 20, 127])
def test_the_expanded_epilogue_is_a_requantize(element: str, steps: int, zero_point: int) -> None:
    def body(x: ir.Value) -> ir.Value:
        return expanded(conv(x), element, steps=steps, zero_point=zero_point)

    after = run_both(graph(["tensor<1x20x20x4xui8>"], body), RaiseRequantizePass())
    (found,) = ops_of(after, "qnn.requantize")
    assert (found.rounding, found.output_zero_point) == (Rounding.F32_UP_ZP_FIRST, zero_point)
    assert found.output_scale == pytest.approx(SCALE, rel=1e-6)


def test_the_expanded_epilogue_of_a_dense_with_bias_and_clamp_fuses() -> None:
    def body(x: ir.Value) -> ir.Value:
        bias = constant(np.broadcast_to(np.arange(CHANNELS, dtype=np.int32), (3, CHANNELS)))
        biased = arith.AddIOp(dense(x), bias).result
        return expanded(biased, multipliers=0.004, bounds=(20, 200))

    after = run_both(graph(["tensor<3x20xui8>"], body), FuseQnnPass())
    (found,) = ops_of(after, "qnn.fused_dense")
    assert op_names(after) == ["qnn.fused_dense"]
    assert found.epilogue[1:] == (ClampStage(min=20, max=200),)


@pytest.mark.parametrize("zero_point", [-1, 0])
def test_a_sum_is_a_requantize_wherever_its_steps_are_those_of_one(zero_point: int) -> None:
    def body(x: ir.Value) -> ir.Value:
        return expanded(conv(x), "i8", zero_point=zero_point)

    after = run_both(graph(["tensor<1x20x20x4xui8>"], body), RaiseRequantizePass())
    assert op_names(after) == ["qnn.conv2d", "qnn.requantize"]


def test_weight_scales_are_derived_where_those_of_the_contraction_do_not_give_the_multipliers() -> None:
    uneven = np.array([0.004, 0.008, 0.006, 0.0032, 0.013], dtype=np.float32)
    after = run_both(
        graph(["tensor<1x20x20x4xui8>"], lambda x: expanded(conv(x), multipliers=uneven)), RaiseRequantizePass()
    )
    (found,), (convolution,) = ops_of(after, "qnn.requantize"), ops_of(after, "qnn.conv2d")
    assert op_names(after) == ["qnn.conv2d", "qnn.requantize"]
    assert found.weight_scales == convolution.weight_scales != WEIGHT_SCALES
    f32 = found.input_scale * np.array(found.weight_scales) / found.output_scale
    np.testing.assert_allclose(f32, uneven, rtol=1e-6)


# decompose-fused (R11, R14)


@pytest.mark.parametrize("element", ["ui8", "i8"])
def test_each_stage_becomes_an_op_and_back(element: str) -> None:
    def plain(x: ir.Value, _: ir.Value) -> ir.Value:
        return fused(x, element)

    def clamped(x: ir.Value, _: ir.Value) -> ir.Value:
        return fused(x, element, ClampStage(min=9, max=99))

    def summed(x: ir.Value, r: ir.Value) -> ir.Value:
        return add(clip(fused(x), 9, 99), r, element, arithmetic=AddArithmetic.SHIFTED_FIXED)

    def tabulated(x: ir.Value, r: ir.Value) -> ir.Value:
        total = clip(add(fused(x), r, "ui8"), 30, 222)
        return lut(total, random_table(), element, input_scale=0.09, input_zero_point=20)

    stages = (FuseClampPass(), FuseResidualPass(), FuseClampPass(), FuseLutPass())
    wanted = {
        plain: ["qnn.requantize"],
        clamped: ["qnn.requantize", "qnn.clip"],
        summed: ["qnn.requantize", "qnn.clip", "qnn.add"],
        tabulated: ["qnn.requantize", "qnn.add", "qnn.clip", "qnn.lut"],
    }
    for body, names in wanted.items():
        module = run_both(graph([IMAGE, "tensor<1x6x7x5xui8>"], body), *stages)
        assert op_names(module) == ["qnn.fused_conv2d"]
        apart = run_both(module, DecomposeFusedPass())
        assert op_names(apart) == ["qnn.conv2d", *names]
        again = run_both(apart, FuseRequantizePass(), *stages)
        assert str(again) == str(module)


def test_dense_comes_apart_and_back() -> None:
    module = graph(["tensor<3x20xui8>"], lambda x: requantize(dense(x), weight_scales=(0.01,)))
    together = run_both(module, FuseRequantizePass())
    apart = run_both(together, DecomposeFusedPass())
    assert op_names(apart) == ["qnn.dense", "qnn.requantize"]
    assert str(run_both(apart, FuseRequantizePass())) == str(together)


def test_a_type_between_stages_that_the_result_lacks() -> None:
    """A ui8 value above 127 enters a table of i8 entries."""
    module = run_both(graph([IMAGE], lambda x: lut(fused(x), random_table(), "i8")), FuseLutPass())
    apart = run_both(module, DecomposeFusedPass())
    assert element_of(ops_of(apart, "qnn.requantize")[0].output.type) == "ui8"


def test_the_float_scales_survive_the_way_through_the_fused_op() -> None:
    """R11: input, weight and output scales of the separate ops are those before fusion."""
    module = graph([IMAGE], lambda x: requantize(conv(x)))
    apart = run_both(module, FuseRequantizePass(), DecomposeFusedPass())
    (found,) = ops_of(apart, "qnn.requantize")
    assert (found.input_scale, found.weight_scales, found.output_scale) == (0.02, WEIGHT_SCALES, SCALE)


# Reshapes between a contraction and its epilogue move out of the way, with the same bits.


def reshaped(value: ir.Value, *shape: int) -> ir.Value:
    return build(ReshapeOp, value, element=element_of(value.type), shape=shape).output


def test_requantize_clamp_and_table_fuse_past_reshapes() -> None:
    parameters: dict[str, Any] = {
        "input_scale": 0.05,
        "input_zero_point": 7,
        "output_scale": 1 / 256,
        "output_zero_point": 0,
    }

    def body(x: ir.Value) -> ir.Value:
        quantized = requantize(reshaped(conv(x), 42, 5))
        clipped = clip(reshaped(quantized, 6, 7, 5), 9, 200)
        return build(SigmoidOp, reshaped(clipped, 210), element="ui8", **parameters).output

    after = run_both(graph([IMAGE], body), FuseQnnPass())
    assert op_names(after) == ["qnn.fused_conv2d", "qnn.reshape"]


def test_the_scales_of_channels_stay_with_the_channels() -> None:
    def body(x: ir.Value) -> ir.Value:
        return requantize(reshaped(conv(x), 5, 42), weight_scales=WEIGHT_SCALES, axis=0)

    assert op_names(run_both(graph([IMAGE], body), FuseQnnPass())) == ["qnn.conv2d", "qnn.reshape", "qnn.requantize"]
