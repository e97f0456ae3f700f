"""Numbers that frameworks gave: those of TVM's tests, and where the rounding modes of frameworks differ."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    ElementFunction,
    Entries,
    Multiplier,
    NanPolicy,
    QuantizedDtype,
    QuantParams,
    Rounding,
    activations,
    build_table,
    quantize_multiplier,
    quantized_range,
    real_multiplier,
    requantize,
    requantize_parameters,
    tvm_leaky_relu_table,
)
from qdialect.arithmetic.elementwise import add, mul
from qdialect.arithmetic.profiles import PROFILES

Row = dict[str, Any]
_FOLDER = Path(__file__).parent / "vectors"


@cache
def document(name: str) -> dict[str, Any]:
    return json.loads((_FOLDER / f"{name}.json").read_text())


def tvm_rows(group: str) -> list[Row]:
    return document("tvm_vectors")["groups"][group]


def row_id(row: Row) -> str:
    return str(row.get("id") or row.get("name") or row.get("desc"))


# TVM's own QNN operator tests as numbers: the rows of the arithmetic that is its own.
# Rows that TVM also runs in float64 have no rounding mode of ours for that run.

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
