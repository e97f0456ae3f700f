"""Reshapes between a contraction and its epilogue move out of the way, with the same bits."""

from typing import Any

from graphs import graph, op_names, run_both
from quantized_layers import WEIGHT_SCALES, clip, conv, requantize

from qdialect.dialect import ReshapeOp, SigmoidOp, build
from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import ir
from qdialect.passes.fuse_qnn import FuseQnnPass

IMAGE = "tensor<1x6x7x4xui8>"


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
