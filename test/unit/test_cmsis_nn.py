"""Arm's CMSIS-NN test vectors, whose kernels give TFLite's numbers: interpreted, fused and compiled."""

from collections.abc import Callable

import numpy as np
import pytest
from cmsis_nn_cases import Case, batch_matmul, convolution, fully_connected, pool, transposed_convolution
from cmsis_nn_elementwise import addition, extreme, pad, product, softmax

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
