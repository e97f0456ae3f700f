"""What TFLite's reference kernels print for drawn single-op models, reproduced code by code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.vector_rows import Row, document

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    Division,
    Entries,
    Multiplier,
    NanPolicy,
    QuantizedDtype,
    QuantParams,
    Rounding,
    activations,
    build_table,
    quantized_range,
    real_multiplier,
    requantize,
    requantize_parameters,
    table_values,
    tflite_hard_swish_table,
    tflite_leaky_relu_table,
)
from qdialect.arithmetic.elementwise import add, mul
from qdialect.arithmetic.softmax_tables import softmax_tables
from qdialect.reference.contraction_evaluators import dense_accumulate
from qdialect.reference.qnn_evaluators import avg_pool2d, max_pool2d, mean, softmax_fixed

DOUBLE = Rounding.FIXED32_DOUBLE


def source(row: Row) -> QuantizedDtype:
    return QuantizedDtype(row["input_scale"], row["input_zero_point"], row["dtype"])


def target(row: Row) -> QuantizedDtype:
    return QuantizedDtype(row["output_scale"], row["output_zero_point"], row["dtype"])


def input_of(row: Row) -> NDArray[Any]:
    return np.array(row["input"], dtype=row["dtype"]).reshape(row["shape"])


def binary_operands(row: Row) -> tuple[NDArray[Any], NDArray[Any], BinaryQuantization]:
    lhs, rhs = np.array(row["lhs"], dtype=row["dtype"]), np.array(row["rhs"], dtype=row["dtype"])
    rhs_affine = QuantParams(row["rhs_scale"], row["rhs_zero_point"])
    return lhs, rhs, BinaryQuantization(source(row), rhs_affine, target(row), quantized_range(row["dtype"]))


def run_add(row: Row) -> NDArray[Any]:
    return add(*binary_operands(row), AddArithmetic.SHIFTED_FIXED, DOUBLE, Multiplier.F64)


def run_mul(row: Row) -> NDArray[Any]:
    return mul(*binary_operands(row), DOUBLE, Multiplier.F32)


def run_dense(row: Row) -> NDArray[Any]:
    weight, bias = np.array(row["weight"], dtype=row["dtype"]), np.array(row["bias"], dtype=np.int32)
    acc = dense_accumulate(input_of(row), weight, row["input_zero_point"], [row["weight_zero_point"]], bias)
    rounding = Rounding.FIXED64_NEAREST
    f32 = real_multiplier(row["input_scale"], [row["weight_scale"]], row["output_scale"], Multiplier.F64)
    bounds = quantized_range(row["dtype"])
    return requantize(acc, requantize_parameters(rounding, f32), row["output_zero_point"], *bounds, rounding)


def run_requantize(row: Row) -> NDArray[Any]:
    f32 = real_multiplier(row["input_scale"], [1.0], row["output_scale"], Multiplier.F64)
    offsets = table_values(row["dtype"]) - row["input_zero_point"]
    bounds = quantized_range(row["output_dtype"])
    return requantize(offsets, requantize_parameters(DOUBLE, f32), row["output_zero_point"], *bounds, DOUBLE)


def run_mean(row: Row) -> NDArray[Any]:
    before, after = source(row), target(row)
    parameters = (before.scale, before.zero_point, after.scale, after.zero_point, *quantized_range(row["dtype"]))
    return mean(input_of(row), [1, 2], False, *parameters, DOUBLE, Multiplier.F64)


def run_softmax(row: Row) -> NDArray[Any]:
    return softmax_fixed(input_of(row), -1, softmax_tables(row["input_scale"], row["beta"]))


def window(row: Row) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
    top, left, bottom, right = row["padding"]
    return tuple(row["kernel"]), tuple(row["strides"]), (top, left, bottom, right)


def run_avg_pool(row: Row) -> NDArray[Any]:
    return avg_pool2d(input_of(row), *window(row), Division.HALF_AWAY, *quantized_range(row["dtype"]))


def run_max_pool(row: Row) -> NDArray[Any]:
    return max_pool2d(input_of(row), *window(row), *quantized_range(row["dtype"]))


def run_hard_swish(row: Row) -> NDArray[Any]:
    return tflite_hard_swish_table(source(row), target(row)).view(row["dtype"])


def run_leaky_relu(row: Row) -> NDArray[Any]:
    return tflite_leaky_relu_table(row["alpha"], source(row), target(row)).view(row["dtype"])


def run_table(row: Row) -> NDArray[Any]:
    function = {"sigmoid": activations.sigmoid, "tanh": activations.tanh}[row["op"]]
    how = (Entries.HALF_AWAY_RECIPROCAL, NanPolicy.MAX)
    return build_table(function, source(row), target(row), *how).view(row["dtype"])


OPS: dict[str, Callable[[Row], NDArray[Any]]] = {
    "add": run_add,
    "avg_pool": run_avg_pool,
    "dense": run_dense,
    "hardswish": run_hard_swish,
    "leaky_relu": run_leaky_relu,
    "max_pool": run_max_pool,
    "mean": run_mean,
    "mul": run_mul,
    "requantize": run_requantize,
    "sigmoid": run_table,
    "softmax": run_softmax,
    "tanh": run_table,
}
ROWS: list[Row] = document("tflite_vectors")["vectors"]


def test_every_op_is_covered_in_both_types() -> None:
    assert {(row["op"], row["dtype"]) for row in ROWS} == {(op, dtype) for op in OPS for dtype in ("int8", "uint8")}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['op']}-{row['dtype']}-{i}" for i, row in enumerate(ROWS)])
def test_values_of_the_reference_kernel(row: Row) -> None:
    assert OPS[row["op"]](row).ravel().tolist() == row["expected"]
