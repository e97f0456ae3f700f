"""ONNX's backend node tests as numbers; tensors turned from NCHW to the order of this project."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.vector_rows import Row, document, row_id

from qdialect.arithmetic import (
    FloatRounding,
    Multiplier,
    NanPolicy,
    Rounding,
    Scaling,
    dequantize_array,
    quantize_array,
    quantized_range,
    real_multiplier,
    requantize,
    requantize_parameters,
)
from qdialect.arithmetic.convolution import conv2d_accumulate
from qdialect.reference.contraction_evaluators import dense_accumulate

# The standard's evaluator adds the zero point first, ONNX Runtime last; no row has an exact tie to tell them apart.
ROUNDING_MODES = [Rounding.F32_RNE_ZP_FIRST, Rounding.F32_RNE_ZP_LAST]


def quantize_linear(row: Row) -> NDArray[Any]:
    data = np.array(row["x"], dtype=np.float32)
    how = (FloatRounding.HALF_EVEN, Scaling.DIVIDE, NanPolicy.MIN)
    return quantize_array(data, row["y_scale"], row["y_zero_point"], 1, row["dtype"], *how)


def dequantize_linear(row: Row) -> NDArray[Any]:
    data = np.array(row["x"], dtype=row["dtype"])
    return dequantize_array(data, row["x_scale"], row["x_zero_point"], row.get("axis", 1))


def convolution(row: Row, weight_zero_points: list[int], dtype: str) -> NDArray[np.int32]:
    data, weight = (np.array(row[name], dtype=dtype).transpose(0, 2, 3, 1) for name in ("x", "w"))
    padding = tuple(row.get("pads", [0, 0, 0, 0]))
    return conv2d_accumulate(data, weight, row["x_zero_point"], weight_zero_points, (1, 1), padding, (1, 1), 1)


def conv_integer(row: Row) -> NDArray[Any]:
    return convolution(row, row.get("w_zero_points", [0]), "uint8").transpose(0, 3, 1, 2)


def mat_mul_integer(row: Row) -> NDArray[Any]:
    lhs, rhs = np.array(row["A"], dtype=np.uint8), np.array(row["B"], dtype=np.uint8)
    return dense_accumulate(lhs, rhs.T, row["a_zero_point"], [row["b_zero_point"]])


def requantized(
    acc: NDArray[np.int32], row: Row, scales: tuple[float, list[float]], rounding: Rounding
) -> NDArray[Any]:
    params = requantize_parameters(rounding, real_multiplier(*scales, row["y_scale"], Multiplier.F32))
    return requantize(acc, params, row["y_zero_point"], *quantized_range(row["dtype"]), rounding)


def qlinear_conv(row: Row, rounding: Rounding) -> NDArray[Any]:
    acc = convolution(row, row["w_zero_point"], row["dtype"])
    return requantized(acc, row, (row["x_scale"], row["w_scale"]), rounding).transpose(0, 3, 1, 2)


def qlinear_mat_mul(row: Row, rounding: Rounding) -> NDArray[Any]:
    lhs, rhs = (np.array(row[name], dtype=row["dtype"]) for name in ("a", "b"))
    acc = dense_accumulate(lhs, rhs.T, row["a_zero_point"], [row["b_zero_point"]])
    return requantized(acc, row, (row["a_scale"], [row["b_scale"]]), rounding)


INTEGER_OPS: dict[str, Callable[[Row], NDArray[Any]]] = {
    "QuantizeLinear": quantize_linear,
    "DequantizeLinear": dequantize_linear,
    "ConvInteger": conv_integer,
    "MatMulInteger": mat_mul_integer,
}
REQUANTIZED_OPS: dict[str, Callable[[Row, Rounding], NDArray[Any]]] = {
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_mat_mul,
}
ROWS: list[Row] = document("onnx_vectors")["vectors"]


def test_every_op_is_covered() -> None:
    assert {row["op"] for row in ROWS} == INTEGER_OPS.keys() | REQUANTIZED_OPS.keys()


@pytest.mark.parametrize("row", [row for row in ROWS if row["op"] in INTEGER_OPS], ids=row_id)
def test_ops_without_a_rounding_mode(row: Row) -> None:
    assert INTEGER_OPS[row["op"]](row).tolist() == row.get("y", row.get("Y"))


@pytest.mark.parametrize("rounding", ROUNDING_MODES)
@pytest.mark.parametrize("row", [row for row in ROWS if row["op"] in REQUANTIZED_OPS], ids=row_id)
def test_ops_that_requantize(row: Row, rounding: Rounding) -> None:
    assert REQUANTIZED_OPS[row["op"]](row, rounding).tolist() == row["y"]
