"""Inputs on which the rounding modes disagree: every recorded result of every rounding mode."""

import math

import numpy as np
import pytest
from reference.vector_rows import Row, document, row_id

from qdialect.arithmetic import (
    Multiplier,
    Rounding,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    quantized_range,
    real_multiplier,
    requantize,
    requantize_parameters,
)
from qdialect.arithmetic.profiles import PROFILES

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
SUPPOSED = "rne, multiplier = float32(double product)"

ROWS: list[Row] = document("divergence_vectors")["vectors"]


def test_every_column_is_accounted_for() -> None:
    columns = {column for row in ROWS for column in row["results"]}
    assert columns == {column for of_profile in COLUMNS.values() for column in of_profile} | {SUPPOSED}


def test_every_profile_has_a_column_and_every_rounding_a_profile() -> None:
    assert COLUMNS.keys() == PROFILES.keys()
    assert {profile.rounding for profile in PROFILES.values()} == set(Rounding)


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_hits_its_columns(name: str) -> None:
    profile = PROFILES[name]
    hits = 0
    for row in ROWS:
        for column in row["results"].keys() & set(COLUMNS[name]):
            assert results(row, profile.rounding, profile.multiplier) == row["results"][column], row["desc"]
            hits += 1
    assert hits > 0


def test_the_multiplier_that_was_only_supposed() -> None:
    for row in (row for row in ROWS if SUPPOSED in row["results"]):
        assert results(row, Rounding.F32_RNE_ZP_LAST, Multiplier.F64) == row["results"][SUPPOSED]


def results(row: Row, rounding: Rounding, form: Multiplier) -> list[int]:
    """The quantized values of a row's accumulators."""
    lo, hi = quantized_range(row["dtype"])
    acc = np.array(row["acc"], dtype=np.int32)
    f32 = real_multiplier(row["input_scale"], [row.get("filter_scale", 1.0)], row["output_scale"], form)
    return requantize(acc, requantize_parameters(rounding, f32), row["zero_point"], lo, hi, rounding).tolist()


@pytest.mark.parametrize("row", [row for row in ROWS if "multiplier_q31" in row], ids=row_id)
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


def test_multiplier_one_has_no_undefined_shift() -> None:
    for rounding in (rounding for rounding in Rounding if rounding.is_fixed):
        assert multiply_by_quantized_multiplier(-7, 2**30, 1, rounding) == -7
