"""TVM's own QNN operator tests as numbers: every literal and formula row of the ops this project has.

`subtract` has no op here, `batch_matmul` is covered as one dense layer for each batch, and `pass_behaviour` states what
TVM's passes do, not arithmetic.  Rows that TVM also runs in float64 have no rounding mode of ours for that run.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference import plain_arithmetic as plain
from reference.vector_rows import Row, row_id, tvm_rows

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
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
    quantized_range,
    real_multiplier,
    requantize,
    requantize_parameters,
    tvm_leaky_relu_table,
)
from qdialect.arithmetic.convolution import conv2d_accumulate
from qdialect.arithmetic.elementwise import add, concat, mul
from qdialect.reference.contraction_evaluators import dense_accumulate

ROUNDING_MODES = {
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
    rounding = ROUNDING_MODES[row["rounding"], compute]
    for dtype in row["out_dtypes"]:
        assert tvm_requantize(data, row, *quantized_range(dtype), rounding, row["axis"]).tolist() == row["expected"]


@pytest.mark.parametrize(("mode", "compute"), ROUNDING_MODES)
def test_requantize_config(mode: str, compute: str) -> None:
    [row] = tvm_rows("requantize_config")
    data = np.array(row["input"], dtype=np.int32)
    zero = {"input_zero_point": 0, "output_zero_point": 0}
    got = tvm_requantize(data, row | zero, -128, 127, ROUNDING_MODES[mode, compute])
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


def binary_operands(row: Row) -> tuple[NDArray[Any], NDArray[Any], BinaryQuantization]:
    lhs, rhs = np.array(row["lhs"], dtype=row["dtype"]), np.array(row["rhs"], dtype=row["dtype"])
    left, right, output = (
        QuantParams(row[f"{side}_scale"], row[f"{side}_zero_point"]) for side in ("lhs", "rhs", "output")
    )
    return lhs, rhs, BinaryQuantization(left, right, output, quantized_range(row["dtype"]))


@pytest.mark.parametrize("compute", ["int64", "float32"])
@pytest.mark.parametrize("row", tvm_rows("add"), ids=row_id)
def test_add(row: Row, compute: str) -> None:
    rounding = ROUNDING_MODES["UPWARD", compute]
    how = (AddArithmetic.REQUANTIZE_EACH, rounding, Multiplier.F32_PRODUCT)
    assert row["matches_compute"][compute]
    assert add(*binary_operands(row), *how).tolist() == row["expected"]


@pytest.mark.parametrize("compute", ["int64", "float32"])
@pytest.mark.parametrize("row", tvm_rows("mul"), ids=row_id)
def test_mul(row: Row, compute: str) -> None:
    rounding = ROUNDING_MODES["UPWARD", compute]
    assert row["matches_compute"][compute]
    got = mul(*binary_operands(row), rounding, Multiplier.F32_PRODUCT)
    assert got.tolist() == row["expected"]


@pytest.mark.parametrize("row", tvm_rows("leaky_relu"), ids=row_id)
def test_leaky_relu(row: Row) -> None:
    values = np.arange(256) if row["input"] == "0..255" else np.array(row["input"])
    source = QuantizedDtype(row["input_scale"], row["input_zero_point"], row["dtype"])
    target = QuantizedDtype(row["output_scale"], row["output_zero_point"], row["dtype"])
    for compute, column in (("int64", "tvm_fixed_point_int64"), ("float32", "tvm_fixed_point_float32_requant")):
        table = tvm_leaky_relu_table(row["alpha"], source, target, ROUNDING_MODES["UPWARD", compute])
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
    got = dense_accumulate(data, kernel, row["input_zero_point"], [row["kernel_zero_point"]], bias)
    if "requantize" in row:
        scaled = tvm_requantize(got, row["requantize"], *quantized_range("int8"), Rounding.FIXED64_UP)
        assert scaled.tolist() == row["expected"]
    else:
        assert got.tolist() == row["expected"]


@pytest.mark.parametrize("row", tvm_rows("batch_matmul"), ids=row_id)
def test_batch_matmul_as_dense(row: Row) -> None:
    lhs, rhs = np.array(row["x"], dtype=np.int8), np.array(row["y"], dtype=np.int8)
    got = dense_accumulate(lhs, rhs, row["x_zero_point"], [row["y_zero_point"]])
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
