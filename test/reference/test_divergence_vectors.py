"""Inputs on which the flavours disagree: every recorded result of every flavour."""

import math

import numpy as np
import pytest
from reference.vector_rows import Row, document, row_id

from qdialect.quant_math import (
    Multiplier,
    Rounding,
    code_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    real_multiplier,
    requantize,
    requantize_parameters,
)

COLUMNS = {
    "tvm_int64_UPWARD": (Rounding.FIXED64_UP, Multiplier.F32_PRODUCT),
    "tvm_int64_TONEAREST": (Rounding.FIXED64_NEAREST, Multiplier.F32_PRODUCT),
    "tvm_float32_UPWARD": (Rounding.F32_UP_ZP_FIRST, Multiplier.F32_PRODUCT),
    "tvm_float32_TONEAREST": (Rounding.F32_NEAREST_ZP_FIRST, Multiplier.F32_PRODUCT),
    "tflite_double_round": (Rounding.FIXED32_DOUBLE, Multiplier.F64),
    "tflite_single_round": (Rounding.FIXED64_UP, Multiplier.F64),
    "rne_then_zp (ORT,FBGEMM,XNNPACK fp32)": (Rounding.F32_RNE_ZP_LAST, Multiplier.F32),
    "zp_then_rne (ONNX reference, oneDNN)": (Rounding.F32_RNE_ZP_FIRST, Multiplier.F32),
    "rne, multiplier = float32(double product)": (Rounding.F32_RNE_ZP_LAST, Multiplier.F64),
    "rne, multiplier = float32((in*w)/out) all float32": (Rounding.F32_RNE_ZP_LAST, Multiplier.F32),
    # TOSA's single rounding is the same sum and shift.
    "tosa_single": (Rounding.FIXED64_UP, Multiplier.F64),
    "tosa_double": (Rounding.FIXED64_DOUBLE, Multiplier.F64),
}

ROWS: list[Row] = document("divergence_vectors")["vectors"]


def test_every_column_is_accounted_for() -> None:
    columns = {column for row in ROWS for column in row["results"]}
    assert columns == COLUMNS.keys()
    assert {rounding for rounding, _ in COLUMNS.values()} == set(Rounding)


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_results_of_each_flavour(row: Row) -> None:
    lo, hi = code_range(row["dtype"])
    acc = np.array(row["acc"], dtype=np.int32)
    for column in row["results"]:
        rounding, form = COLUMNS[column]
        real = real_multiplier(row["input_scale"], [row.get("filter_scale", 1.0)], row["output_scale"], form)
        got = requantize(acc, requantize_parameters(rounding, real), row["zero_point"], lo, hi, rounding)
        assert got.tolist() == row["results"][column], column


@pytest.mark.parametrize("row", [row for row in ROWS if "multiplier_q31" in row], ids=row_id)
def test_recorded_multipliers(row: Row) -> None:
    real = row["input_scale"] / row["output_scale"]
    assert quantize_multiplier(real) == (row["multiplier_q31"], row["exponent"])


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
