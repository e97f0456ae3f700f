"""Numbers that frameworks gave: ONNX's node tests, LiteRT's reference kernels, TVM's tests, and where these differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arithmetic import plain_arithmetic as plain
from arithmetic.vector_rows import Row, document, row_id, tvm_rows
from numpy.typing import NDArray

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    Division,
    ElementFunction,
    Entries,
    FloatRounding,
    Multiplier,
    NanPolicy,
    QuantizedDtype,
    QuantParams,
    Rounding,
    Scaling,
    activations,
    build_table,
    dequantize_array,
    quantize_array,
    quantize_multiplier,
    quantized_range,
    real_multiplier,
    requantize,
    requantize_parameters,
    table_values,
    tflite_hard_swish_table,
    tflite_leaky_relu_table,
    tvm_leaky_relu_table,
)
from qdialect.arithmetic.convolution import conv2d_accumulate
from qdialect.arithmetic.elementwise import add, concat, mul
from qdialect.arithmetic.profiles import PROFILES
from qdialect.arithmetic.softmax_tables import softmax_tables
from qdialect.reference.contraction_evaluators import matmul_accumulate
from qdialect.reference.qnn_evaluators import avg_pool2d, max_pool2d, over_axes, softmax_fixed

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
    return matmul_accumulate(lhs, rhs, row["a_zero_point"], [row["b_zero_point"]])


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
    acc = matmul_accumulate(lhs, rhs, row["a_zero_point"], [row["b_zero_point"]])
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


@pytest.mark.parametrize("row", [row for row in ROWS if row["op"] in INTEGER_OPS], ids=row_id)
def test_ops_without_a_rounding_mode(row: Row) -> None:
    assert INTEGER_OPS[row["op"]](row).tolist() == row.get("y", row.get("Y"))


@pytest.mark.parametrize("rounding", ROUNDING_MODES)
@pytest.mark.parametrize("row", [row for row in ROWS if row["op"] in REQUANTIZED_OPS], ids=row_id)
def test_ops_that_requantize(row: Row, rounding: Rounding) -> None:
    assert REQUANTIZED_OPS[row["op"]](row, rounding).tolist() == row["y"]


# What TFLite's reference kernels print for drawn single-op models, reproduced code by code.

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
    acc = matmul_accumulate(input_of(row), weight.T, row["input_zero_point"], [row["weight_zero_point"]], bias)
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
    how = source(row), target(row), quantized_range(row["dtype"]), DOUBLE, Multiplier.F64
    return over_axes(input_of(row), [1, 2], False, *how)


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
TFLITE_ROWS: list[Row] = document("tflite_vectors")["vectors"]


def test_every_op_is_covered_in_both_types() -> None:
    assert {(row["op"], row["dtype"]) for row in TFLITE_ROWS} == {
        (op, dtype) for op in OPS for dtype in ("int8", "uint8")
    }


@pytest.mark.parametrize(
    "row", TFLITE_ROWS, ids=[f"{row['op']}-{row['dtype']}-{i}" for i, row in enumerate(TFLITE_ROWS)]
)
def test_values_of_the_reference_kernel(row: Row) -> None:
    assert OPS[row["op"]](row).ravel().tolist() == row["expected"]


# TVM's own QNN operator tests as numbers: every literal and formula row of the ops this project has.
#
# `subtract` has no op here, `batch_matmul` is covered as one dense layer for each batch, and `pass_behaviour` states
# what TVM's passes do, not arithmetic.  Rows that TVM also runs in float64 have no rounding mode of ours for that run.

TVM_MODES = {
    ("UPWARD", "int64"): Rounding.FIXED64_UP,
    ("TONEAREST", "int64"): Rounding.FIXED64_NEAREST,
    ("UPWARD", "float32"): Rounding.F32_UP_ZP_FIRST,
    ("TONEAREST", "float32"): Rounding.F32_NEAREST_ZP_FIRST,
}
FUNCTIONS: dict[str, ElementFunction] = {
    "identity": lambda x: x,
    "abs": activations.absolute,
    "erf": activations.erf,
    "exp": activations.exp,
    "hardswish": activations.hardswish,
    "log": activations.log,
    "rsqrt": activations.rsqrt,
    "sigmoid": activations.sigmoid,
    "sqrt": activations.sqrt,
    "tanh": activations.tanh,
}
TABLE = "table_indexed_by_unsigned_bit_pattern"


def recorded_array(value: Any, dtype: str) -> NDArray[Any]:
    """Nested lists, or the short form of an array with one value."""
    if "fill" not in value:
        return np.array(value, dtype=dtype)
    shape: list[int] = value["shape"]
    return np.full(shape, value["fill"], dtype=dtype)


def tvm_requantize(
    data: NDArray[Any], row: Row, lo: int, hi: int, rounding: Rounding, axis: int = -1
) -> NDArray[np.int64]:
    scales = np.atleast_1d(row["input_scale"]).tolist()
    params = requantize_parameters(rounding, real_multiplier(1.0, scales, row["output_scale"], Multiplier.F32_PRODUCT))
    offsets = data.astype(np.int64) - row["input_zero_point"]
    if len(scales) == 1:
        return requantize(offsets, params, row["output_zero_point"], lo, hi, rounding)
    channels_last = np.moveaxis(offsets, axis, -1)
    return np.moveaxis(requantize(channels_last, params, row["output_zero_point"], lo, hi, rounding), -1, axis)


@pytest.mark.parametrize("compute", ["int64", "float32"])
@pytest.mark.parametrize("row", tvm_rows("requantize"), ids=row_id)
def test_requantize(row: Row, compute: str) -> None:
    data = np.array(row["input"], dtype=row["in_dtype"])
    rounding = TVM_MODES[row["rounding"], compute]
    for dtype in row["out_dtypes"]:
        assert tvm_requantize(data, row, *quantized_range(dtype), rounding, row["axis"]).tolist() == row["expected"]


@pytest.mark.parametrize(("mode", "compute"), TVM_MODES)
def test_requantize_config(mode: str, compute: str) -> None:
    [row] = tvm_rows("requantize_config")
    data = np.array(row["input"], dtype=np.int32)
    zero = {"input_zero_point": 0, "output_zero_point": 0}
    got = tvm_requantize(data, row | zero, -128, 127, TVM_MODES[mode, compute])
    assert got.tolist() == row[f"expected_{mode}"]


@pytest.mark.parametrize("row", tvm_rows("quantize"), ids=row_id)
def test_quantize(row: Row) -> None:
    data = np.array(row["input"], dtype=np.float32)
    how = (FloatRounding.HALF_AWAY, Scaling.DIVIDE, NanPolicy.MAX)
    got = quantize_array(data, row["output_scale"], row["output_zero_point"], row["axis"], row["out_dtype"], *how)
    assert got.dtype == row["out_dtype"]
    assert got.tolist() == row["expected"]


@pytest.mark.parametrize("row", tvm_rows("dequantize"), ids=row_id)
def test_dequantize(row: Row) -> None:
    data = np.array(row["input"], dtype=row["in_dtype"])
    got = dequantize_array(data, row["input_scale"], row["input_zero_point"], row["axis"]).astype(row["out_dtype"])
    assert np.array_equal(got, np.array(row["expected"], dtype=row["out_dtype"]))


def tvm_operands(row: Row) -> tuple[NDArray[Any], NDArray[Any], BinaryQuantization]:
    lhs, rhs = np.array(row["lhs"], dtype=row["dtype"]), np.array(row["rhs"], dtype=row["dtype"])
    left, right, output = (
        QuantParams(row[f"{side}_scale"], row[f"{side}_zero_point"]) for side in ("lhs", "rhs", "output")
    )
    return lhs, rhs, BinaryQuantization(left, right, output, quantized_range(row["dtype"]))


@pytest.mark.parametrize("compute", ["int64", "float32"])
@pytest.mark.parametrize("row", tvm_rows("add"), ids=row_id)
def test_add(row: Row, compute: str) -> None:
    rounding = TVM_MODES["UPWARD", compute]
    how = (AddArithmetic.REQUANTIZE_EACH, rounding, Multiplier.F32_PRODUCT)
    assert row["matches_compute"][compute]
    assert add(*tvm_operands(row), *how).tolist() == row["expected"]


@pytest.mark.parametrize("compute", ["int64", "float32"])
@pytest.mark.parametrize("row", tvm_rows("mul"), ids=row_id)
def test_mul(row: Row, compute: str) -> None:
    rounding = TVM_MODES["UPWARD", compute]
    assert row["matches_compute"][compute]
    got = mul(*tvm_operands(row), rounding, Multiplier.F32_PRODUCT)
    assert got.tolist() == row["expected"]


@pytest.mark.parametrize("row", tvm_rows("leaky_relu"), ids=row_id)
def test_leaky_relu(row: Row) -> None:
    values = np.arange(256) if row["input"] == "0..255" else np.array(row["input"])
    source = QuantizedDtype(row["input_scale"], row["input_zero_point"], row["dtype"])
    target = QuantizedDtype(row["output_scale"], row["output_zero_point"], row["dtype"])
    for compute, column in (("int64", "tvm_fixed_point_int64"), ("float32", "tvm_fixed_point_float32_requant")):
        table = tvm_leaky_relu_table(row["alpha"], source, target, TVM_MODES["UPWARD", compute])
        assert table[values].tolist() == row[column]
    if "expected_float_formula" in row:
        table = build_table(
            activations.leaky_relu(row["alpha"]), source, target, Entries.HALF_AWAY_DIVIDE, NanPolicy.MAX
        )
        assert table[values].tolist() == row["expected_float_formula"]


@pytest.mark.parametrize("row", tvm_rows("unary_lut") + tvm_rows("lut_builder"), ids=row_id)
def test_tables(row: Row) -> None:
    function = FUNCTIONS[row.get("function") or row["op"].removeprefix("qnn.")]
    source = QuantizedDtype(row["input_scale"], row["input_zero_point"], row["in_dtype"])
    target = QuantizedDtype(row["output_scale"], row["output_zero_point"], row["out_dtype"])
    table = build_table(function, source, target, Entries.HALF_AWAY_DIVIDE, NanPolicy.MAX)
    outputs = table.view(row["out_dtype"])
    if TABLE in row:
        assert outputs.tolist() == row[TABLE]
    else:
        values = np.array(row["input"], dtype=row["in_dtype"])
        assert outputs[values.view(np.uint8)].tolist() == row["expected"]


@pytest.mark.parametrize("row", tvm_rows("conv2d"), ids=row_id)
def test_conv2d(row: Row) -> None:
    data = recorded_array(row["data"], row["data_dtype"]).transpose(0, 2, 3, 1)
    kernel = recorded_array(row["kernel"], row["kernel_dtype"]).transpose(0, 2, 3, 1)
    zero_points = (row["input_zero_point"], [row["kernel_zero_point"]])
    window = (tuple(row["strides"]), tuple(row["padding"]), tuple(row["dilation"]), row["groups"])
    got = conv2d_accumulate(data, kernel, *zero_points, *window)
    assert np.array_equal(got.transpose(0, 3, 1, 2), recorded_array(row["expected_int32"], "int32"))


def ohwi(kernel_shape: list[int], layout: str, depthwise: bool) -> tuple[int, int, int, int]:
    """The kernel shape in our order; TVM's depthwise kernels hold (channel, multiplier) where others hold (O, I)."""
    extent = dict(zip(layout, kernel_shape, strict=True))
    if depthwise:
        return extent["O"] * extent["I"], extent["H"], extent["W"], 1
    return extent["O"], extent["H"], extent["W"], extent["I"]


def drawn_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[np.integer[Any]]:
    lo, hi = quantized_range(dtype)
    return rng.integers(lo, hi + 1, shape, dtype=np.int64).astype(dtype)


@pytest.mark.parametrize("row", tvm_rows("conv2d_random_configs"), ids=row_id)
def test_conv2d_configurations(row: Row) -> None:
    """Drawn data against a loop nest; images are cut to 16 x 16, which the slow side can afford."""
    rng = np.random.default_rng(int(row["id"].rpartition("/")[2]))
    extent = dict(zip(row["data_layout"], row["data_shape"], strict=True))
    shape = (extent["N"], min(extent["H"], 16), min(extent["W"], 16), extent["C"])
    kernel_shape = ohwi(row["kernel_shape"], row["kernel_layout"], row["groups"] > 1)
    data = drawn_values(rng, shape, row["data_dtype"])
    kernel = drawn_values(rng, kernel_shape, row["kernel_dtype"])
    recorded = row["kernel_zero_point"]
    per_channel = isinstance(recorded, str)
    kernel_zero_points = rng.integers(0, 10, kernel_shape[0]).tolist() if per_channel else [recorded]
    padding = tuple(row["padding"] * (1 if len(row["padding"]) == 4 else 2))
    window = (tuple(row["strides"]), padding, tuple(row["dilation"]), row["groups"])
    zero_points = (row["input_zero_point"], kernel_zero_points)
    expected = plain.conv2d(data, kernel, *zero_points, *window)
    assert np.array_equal(conv2d_accumulate(data, kernel, *zero_points, *window), expected)


@pytest.mark.parametrize("row", tvm_rows("dense"), ids=row_id)
def test_dense(row: Row) -> None:
    data, kernel = (np.array(row[name], dtype=row["dtype"]) for name in ("data", "kernel"))
    bias = None if row["bias"] is None else np.array(row["bias"], dtype=np.int32)
    got = matmul_accumulate(data, kernel.T, row["input_zero_point"], [row["kernel_zero_point"]], bias)
    if "requantize" in row:
        scaled = tvm_requantize(got, row["requantize"], *quantized_range("int8"), Rounding.FIXED64_UP)
        assert scaled.tolist() == row["expected"]
    else:
        assert got.tolist() == row["expected"]


@pytest.mark.parametrize("row", tvm_rows("batch_matmul"), ids=row_id)
def test_batch_matmul_as_dense(row: Row) -> None:
    lhs, rhs = np.array(row["x"], dtype=np.int8), np.array(row["y"], dtype=np.int8)
    got = matmul_accumulate(lhs, rhs.T, row["x_zero_point"], [row["y_zero_point"]])
    if "requantize" in row:
        scaled = tvm_requantize(got, row["requantize"], *quantized_range("int8"), Rounding.FIXED64_UP)
        assert scaled.tolist() == row["expected"]
    else:
        assert got.tolist() == row["expected_int32"]


@pytest.mark.parametrize("row", tvm_rows("concatenate"), ids=row_id)
def test_concatenate(row: Row) -> None:
    operands = [np.array(part, dtype=row["dtype"]) for part in row.get("inputs") or (row["x"], row["y"])]
    affines = [QuantParams(*pair) for pair in zip(row["input_scales"], row["input_zero_points"], strict=True)]
    output = QuantParams(row["output_scale"], row["output_zero_point"])
    how = (quantized_range(row["dtype"]), Rounding.FIXED64_UP, Multiplier.F32_PRODUCT)
    got = concat(operands, affines, row["axis"], output, *how)
    expected = row.get("expected") or row["expected_rows"]
    assert got.tolist() == expected


# Inputs on which the rounding modes disagree: every recorded result of every rounding mode.

_EVEN_LAST = "rne_then_zp (ORT,FBGEMM,XNNPACK fp32)"
_EVEN_FIRST = "zp_then_rne (ONNX reference, oneDNN)"
_ALL_FLOAT32 = "rne, multiplier = float32((in*w)/out) all float32"
COLUMNS = {
    "tflite": ["tflite_double_round"],
    "tflite-single": ["tflite_single_round"],
    "tflite-xnnpack": [_EVEN_LAST, _ALL_FLOAT32],
    "ort": [_EVEN_LAST, _ALL_FLOAT32],
    "onnx-reference": [_EVEN_FIRST],
    "pytorch": [_EVEN_LAST, _ALL_FLOAT32],
    "onednn": [_EVEN_FIRST],
    "tvm": ["tvm_float32_UPWARD"],
    "tvm-nearest": ["tvm_float32_TONEAREST"],
    "tvm-int64": ["tvm_int64_UPWARD"],
    "tvm-int64-nearest": ["tvm_int64_TONEAREST"],
    "tosa": ["tosa_single"],
    "tosa-double": ["tosa_double"],
}
# What would happen if the multiplier were formed in double precision, which no runtime was seen to do.

DIVERGENT_ROWS: list[Row] = document("divergence_vectors")["vectors"]


def test_every_profile_has_a_column_and_every_rounding_a_profile() -> None:
    assert COLUMNS.keys() == PROFILES.keys()
    assert {profile.rounding for profile in PROFILES.values()} == set(Rounding)


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_hits_its_columns(name: str) -> None:
    profile = PROFILES[name]
    hits = 0
    for row in DIVERGENT_ROWS:
        for column in row["results"].keys() & set(COLUMNS[name]):
            assert results(row, profile.rounding, profile.multiplier) == row["results"][column], row["desc"]
            hits += 1
    assert hits > 0


def results(row: Row, rounding: Rounding, form: Multiplier) -> list[int]:
    """The quantized values of a row's accumulators."""
    lo, hi = quantized_range(row["dtype"])
    acc = np.array(row["acc"], dtype=np.int32)
    f32 = real_multiplier(row["input_scale"], [row.get("filter_scale", 1.0)], row["output_scale"], form)
    return requantize(acc, requantize_parameters(rounding, f32), row["zero_point"], lo, hi, rounding).tolist()


@pytest.mark.parametrize("row", [row for row in DIVERGENT_ROWS if "multiplier_q31" in row], ids=row_id)
def test_recorded_multipliers(row: Row) -> None:
    f32 = row["input_scale"] / row["output_scale"]
    assert quantize_multiplier(f32) == (row["multiplier_q31"], row["exponent"])


def test_multiplier_edges() -> None:
    edges = {row["desc"]: row for row in document("divergence_vectors")["multiplier_edges"]}
    for text, value in {"multiplier exactly 1.0": 1.0, "multiplier 0.5": 0.5, "alpha 0.01": 0.01, "0.9": 0.9}.items():
        assert list(quantize_multiplier(value)) == edges.pop(text)["q_e"]
    for row in edges.values():
        assert quantize_multiplier(row["value"]) == (2080045879, -4)
        assert math.isclose(2080045879 * 2.0**-35, row["value"], rel_tol=1e-9)
