"""Arm's CMSIS-NN test vectors, whose kernels give TFLite's numbers: interpreted, fused and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cmsis_nn_cases import (
    Case,
    addition,
    batch_matmul,
    convolution,
    extreme,
    fully_connected,
    pad,
    pool,
    product,
    softmax,
    transposed_convolution,
)
from compiled_ops import check as check_mxnet_export
from drawn_graphs import graph
from numpy.typing import NDArray
from onnx_graphs import ModelBuilder, drawn, f32_values, quantized_of, requantized

import qdialect
from qdialect.arithmetic.profiles import ONEDNN
from qdialect.dialect import Conv2DOp, DequantizeOp, QuantizeOp, build
from qdialect.dialect.constants import constant
from qdialect.frontends.onnx import import_onnx
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

CONVOLUTIONS = [
    "basic",
    *(f"conv_1_x_n_{k}" for k in (1, 2, 3, 4, 5, 7, 8)),
    "conv_1_x_n_6_generic",
    *(f"conv_{k}" for k in (2, 3, 4, 5)),
    "conv_2x2_dilation",
    "conv_2x2_dilation_5x5_input",
    "conv_2x3_dilation",
    "conv_3x2_dilation",
    "conv_3x3_dilation_5x5_input",
    "conv_dilation_golden",
    "conv_out_activation",
    "in_ch_one_out_ch_larger_one",
    "kernel1x1",
    "kernel1x1_stride_x",
    "kernel1x1_stride_x_y",
    "kernel1x1_stride_x_y_1",
    "kernel1x1_stride_x_y_2",
    "stride2pad1",
    *(f"grouped_conv_{k}" for k in (1, 2, 3, 4)),
    "grouped_conv",
    "depthwise_2",
    "depthwise_dilation",
    "depthwise_eq_in_out_ch",
    "depthwise_kernel_3x3",
    "depthwise_kernel_3x3_null_bias",
    "depthwise_mult_batches",
    "depthwise_null_bias_0",
    "depthwise_null_bias_1",
    "depthwise_out_activation",
    "depthwise_sub_block",
    "depthwise_x_stride",
]
FULLY_CONNECTED = [
    "fc_per_ch",
    "fully_connected_mve_0",
    "fully_connected_mve_1",
    "fully_connected_null_bias_0",
    "fully_connected_out_activation",
    "fully_connected_w_zp",
    "fully_connected",
]
TRANSPOSED = [f"{kind}_{k}" for kind in ("transpose_conv", "reverse_transpose_conv") for k in (1, 2, 3, 4)]
POOLS = [
    *(f"avgpooling{suffix}" for suffix in ("", "_1", "_2", "_3", "_4", "_5")),
    *(f"maxpooling{suffix}" for suffix in ("", "_1", "_2", "_3", "_4", "_5", "_6", "_7")),
]


def check(case: Case) -> None:
    (found,) = interpreter.run(case.module, case.inputs)
    assert np.count_nonzero(found.reshape(-1) != case.expected) == 0
    compiled = compile_module(case.module)(*case.inputs)
    assert isinstance(compiled, np.ndarray)
    assert np.count_nonzero(compiled.reshape(-1) != case.expected) == 0


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str) -> None:
    check(convolution(name))


@pytest.mark.parametrize("name", FULLY_CONNECTED)
def test_fully_connected(name: str) -> None:
    check(fully_connected(name))


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolution(name: str) -> None:
    check(transposed_convolution(name))


@pytest.mark.parametrize("name", POOLS)
def test_pool(name: str) -> None:
    check(pool(name))


@pytest.mark.parametrize("name", ["pad_int8_1", "pad_int8_2"])
def test_pad(name: str) -> None:
    check(pad(name))


@pytest.mark.parametrize("case", [addition, product, softmax])
def test_elementwise(case: Callable[[], Case]) -> None:
    check(case())


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
@pytest.mark.parametrize(
    "shapes",
    ["no_broadcast", "broadcast_batch", "broadcast_height", "broadcast_width", "broadcast_ch", "scalar_1", "scalar_2"],
)
def test_extreme(kind: str, shapes: str) -> None:
    check(extreme(f"{kind}_{shapes}_int8"))


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_batch_matmul(number: int) -> None:
    check(batch_matmul(f"batch_matmul_{number}_s8"))


# R15: a network as MXNet's exporter writes it, quantized, and the arithmetic of MXNet itself, that of oneDNN.

Array = NDArray[Any]
DATA, HIDDEN, POOLED, SCORES = (0.03, 128), (0.05, 0), (0.02, 0), (0.1, 100)
WEIGHT_SCALE = 0.01


def exported(weight: Array, dense: Array) -> bytes:
    """Named as a Gluon network, opset 12, pads and strides of both dimensions written out, Gemm behind Flatten."""
    b = ModelBuilder()
    x = b.dequantize(b.quantize(b.input("data", (1, 3, 8, 8)), DATA), DATA)
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "dilations": [1, 1], "pads": [1, 1, 1, 1], "group": 1}
    x = b.node("Conv", x, b.weight(weight, WEIGHT_SCALE), name="resnetv10_conv0_fwd", **window)
    x = b.node("Relu", x, name="resnetv10_relu0_fwd")
    x = b.dequantize(b.quantize(x, HIDDEN), HIDDEN)
    x = b.node("GlobalAveragePool", x, name="resnetv10_pool0_fwd")
    x = b.dequantize(b.quantize(x, POOLED), POOLED)
    x = b.node("Flatten", x, name="flatten_resnetv10_dense0_fwd")
    gemm = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1}
    x = b.node("Gemm", x, b.weight(dense, WEIGHT_SCALE), name="resnetv10_dense0_fwd", **gemm)
    return b.finish(b.dequantize(b.quantize(x, SCORES), SCORES), dtype=np.float32, version=12)


def sums(x: Array, weight: Array) -> Array:
    """Of NCHW quantized values less their zero points, with one row and column of zeros around and strides of 2."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = [padded[:, :, i : i + 7 : 2, j : j + 7 : 2] for i in range(3) for j in range(3)]
    windows = np.stack(taps, axis=2).reshape(1, -1, 4, 4)
    return np.einsum("ok,nkyx->noyx", weight.reshape(len(weight), -1).astype(np.int64), windows)


def test_a_quantized_export_is_integer_throughout() -> None:
    weight, dense = drawn((4, 3, 3, 3), np.int8), drawn((5, 4), np.int8, seed=1)
    image = np.random.default_rng(2).normal(size=(1, 3, 8, 8)).astype(np.float32)
    module = import_onnx(exported(weight, dense))
    data = quantized_of(image, DATA).astype(np.int64) - DATA[1]
    scales = np.array([WEIGHT_SCALE])
    hidden = requantized(sums(data, weight), DATA[0], scales, HIDDEN)
    pooled = quantized_of(f32_values(hidden, HIDDEN).mean(axis=(2, 3), dtype=np.float32), POOLED)
    wanted = requantized(pooled.astype(np.int64) @ dense.T.astype(np.int64), POOLED[0], scales, SCORES)
    qdialect.PassManager.parse("fuse-qnn").run(module)
    names = [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]
    assert names.count("qnn.fused_conv2d") == names.count("qnn.fused_dense") == 1
    found = qdialect.compile(module)(image)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, f32_values(wanted, SCORES))


def test_the_arithmetic_of_onednn_is_a_profile() -> None:
    """Sums become f32, the activation works on these, and one rounding follows, the zero point before it."""
    weight, scale = drawn((4, 1, 1, 3), np.int8), 0.0625

    def body(x: ir.Value) -> ir.Value:
        how: dict[str, Any] = {"input_scale": 0.5, "input_zero_point": 0, "weight_scales": (scale,)}
        acc = build(Conv2DOp, x, constant(weight), None, element="i32", **how).output
        real = build(DequantizeOp, acc, element="f32", scales=(0.5 * scale,), zero_points=(0,)).output
        zero = constant(np.zeros((1, 9, 9, 4), np.float32))
        activated = ir.Operation.create("arith.maximumf", results=[real.type], operands=[real, zero]).results[0]
        to: dict[str, Any] = {"scales": (3.7,), "zero_points": (0,)}
        return build(QuantizeOp, activated, element="ui8", **to, **ONEDNN.quantization).output

    module = graph(["tensor<1x9x9x3xi8>"], body)
    x = drawn((1, 9, 9, 3), np.int8, seed=3)
    acc = np.einsum("nyxc,oc->nyxo", x.astype(np.int64), weight.reshape(4, 3).astype(np.int64))
    real = np.maximum(acc.astype(np.float32) * np.float32(0.5 * scale), np.float32(0))
    wanted = np.clip(np.rint(real * (np.float32(1) / np.float32(3.7))), 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(interpreter.run(module, [x])[0], wanted)
    check_mxnet_export(module, [x])
