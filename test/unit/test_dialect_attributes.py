"""Every kind of attribute: values survive the attribute, what is no such value is told so."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.arithmetic import Rounding
from qdialect.dialect import fields as kinds
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context

INT64 = st.integers(-(2**63), 2**63 - 1)
SCALE = st.floats(kinds.SMALLEST_SCALE, kinds.LARGEST_SCALE)
CHANNEL_SCALE = st.floats(0.0, kinds.LARGEST_SCALE, exclude_min=True)
CONTEXT = make_context()


def round_trip(kind: kinds.AttributeKind[Any], value: Any) -> Any:
    with CONTEXT, ir.Location.unknown():
        attr = ir.Attribute.parse(str(kind.to_attribute(value)))
        assert kind.problem(attr) is None
        return kind.from_attribute(attr)


@given(SCALE)
def test_a_scale_is_exact(value: float) -> None:
    assert round_trip(kinds.SCALE, value) == value


@given(st.lists(CHANNEL_SCALE, min_size=1, max_size=5))
def test_scales_of_channels_are_exact(values: list[float]) -> None:
    assert round_trip(kinds.SCALES, values) == tuple(values)


@given(st.floats(width=32, min_value=2.0**-60, max_value=2.0**30))
def test_a_float32_scale_of_a_model_is_exact(value: float) -> None:
    assert np.float32(round_trip(kinds.SCALE, np.float32(value))) == np.float32(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_exact(value: float) -> None:
    assert math.copysign(1, round_trip(kinds.F64, value)) == math.copysign(1, value)
    assert round_trip(kinds.F64, value) == value


@given(INT64)
def test_an_integer_is_exact(value: int) -> None:
    assert round_trip(kinds.I64, value) == value


@given(st.lists(INT64, max_size=5))
def test_integers_are_exact(values: list[int]) -> None:
    assert round_trip(kinds.INTEGERS, values) == tuple(values)


@given(st.lists(st.integers(0, 255), min_size=256, max_size=256))
def test_a_table_is_exact(values: list[int]) -> None:
    table = np.array(values, np.uint8)
    np.testing.assert_array_equal(round_trip(kinds.TABLE, table), table)


@pytest.mark.parametrize("value", range(0, 256, 51))
def test_a_table_of_one_entry_is_exact(value: int) -> None:
    table = np.full(256, value, np.uint8)
    np.testing.assert_array_equal(round_trip(kinds.TABLE, table), table)


@pytest.mark.parametrize("value", [True, False])
def test_a_bool_is_exact(value: bool) -> None:
    assert round_trip(kinds.BOOL, value) is value


@pytest.mark.parametrize("value", Rounding)
def test_a_choice_is_the_member(value: Rounding) -> None:
    assert round_trip(kinds.choice(Rounding), value) is value


@pytest.mark.parametrize("value", ["i8", "ui8"])
def test_an_element_type_is_exact(value: str) -> None:
    assert round_trip(kinds.ELEMENT_TYPE, value) == value


WRONG = {
    "scale": (kinds.SCALE, ["0.0", "-1.0", "1.0 : f32", "1", "2.0e9", "1.0e-19", "unit", "array<f64: 1.0>"]),
    "scale, no number": (kinds.SCALE, ["0x7FF0000000000000 : f64", "0x7FF8000000000000 : f64"]),
    "scales": (kinds.SCALES, ["array<f64>", "array<f64: 0.0>", "array<f64: 1.0, -1.0>", "array<f32: 1.0>", "1.0"]),
    "scales, no number": (kinds.SCALES, ["array<f64: 0x7FF0000000000000>", "array<f64: 0x7FF8000000000000>"]),
    "real": (kinds.F64, ["0x7FF0000000000000 : f64", "0xFFF8000000000000 : f64", "1.0 : f16", "1", '"1.0"']),
    "integer": (kinds.I64, ["1 : i32", "1 : index", "true", "1 : ui64", "1.0", "array<i64: 1>"]),
    "integers": (kinds.INTEGERS, ["array<i32: 1>", "[1]", "1", "dense<1> : tensor<1xi64>"]),
    "table": (kinds.TABLE, ["dense<0> : tensor<255xi8>", "dense<0> : tensor<256xui8>", "unit"]),
    "stored table": (kinds.TABLE, ["dense<0> : vector<256xi8>", "dense_resource<b> : tensor<256xi8>"]),
    "element type": (kinds.ELEMENT_TYPE, ["i32", "si8", "tensor<1xi8>", '"i8"', "unit"]),
    "bool": (kinds.BOOL, ["1 : i64", "unit", '"true"']),
    "elements": (kinds.ELEMENTS, ["1 : i8", "array<i8: 1>", "sparse<0, 1> : tensor<3xi8>", '"text"']),
    "choice": (kinds.choice(Rounding), ['"FIXED64_UP"', '""', "unit", "0"]),
}


@pytest.mark.parametrize(("kind", "texts"), WRONG.values(), ids=WRONG)
def test_another_attribute_is_told_what_it_must_be(kind: kinds.AttributeKind[Any], texts: list[str]) -> None:
    with CONTEXT:
        for text in texts:
            assert kind.problem(ir.Attribute.parse(text)) is not None, text
