"""Profiles are attributes that the ops take, and the names that formats know."""

import numpy as np
import pytest
from graphs import graph, ops_of

from qdialect.arithmetic import AddArithmetic, Multiplier, Rounding
from qdialect.arithmetic.profiles import PROFILES, ActivationOrder, Profile
from qdialect.dialect import AddOp, MulOp, QuantizeOp, SigmoidOp, build
from qdialect.frontends.model_files import FORMATS
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter

QUANTIZED = "tensor<16x16xui8>"
SCALES = {"lhs_scale": 0.05, "rhs_scale": 0.03, "output_scale": 0.07}
POINTS = {"lhs_zero_point": 3, "rhs_zero_point": 9, "output_zero_point": 5, "output_min": 0, "output_max": 255}


def test_every_format_names_profiles_that_exist() -> None:
    named = {name for entry in FORMATS.values() for name in entry.profiles()}
    assert named <= PROFILES.keys()
    assert {"tflite", "tflite-xnnpack", "ort", "pytorch", "tosa"} <= named


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())
def test_ops_take_the_attributes_of_a_profile(profile: Profile) -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        total = build(AddOp, x, x, element="ui8", **SCALES, **POINTS, **profile.sum).output
        product = build(MulOp, x, x, element="ui8", **SCALES, **POINTS, **profile.rescale).output
        how = {"input_scale": 0.05, "input_zero_point": 7, "output_scale": 1 / 256, "output_zero_point": 0}
        return [total, product, build(SigmoidOp, x, element="ui8", **how, **profile.table).output]

    module = graph([QUANTIZED], body)
    (added,) = ops_of(module, "qnn.add")
    found = (added.arithmetic, added.rounding, added.multiplier)
    assert found == (profile.addition, profile.rounding, profile.multiplier)
    x = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert len(interpreter.run(module, [x])) == 3


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())
def test_f32_values_are_quantized_by_a_profile(profile: Profile) -> None:
    def body(x: ir.Value) -> ir.Value:
        return build(QuantizeOp, x, element="i8", scales=(0.5,), zero_points=(1,), **profile.quantization).output

    (quantized,) = interpreter.run(graph(["tensor<3xf32>"], body), [np.array([0.25, -0.25, np.nan], np.float32)])
    even = profile.float_rounding == "half_even"
    at_nan = {"zero_point": 1, "zero": 0, "min": -128, "max": 127}[profile.nan]
    assert quantized.tolist() == [1 if even else 2, 1 if even else 0, at_nan]


def test_who_rounds_once() -> None:
    assert {name for name, profile in PROFILES.items() if profile.order is ActivationOrder.F32_VALUES} == {
        "pytorch",
        "onednn",
    }


def test_what_tells_the_profiles_of_one_runtime_apart() -> None:
    def kind(name: str) -> tuple[Rounding, Multiplier, AddArithmetic]:
        profile = PROFILES[name]
        return profile.rounding, profile.multiplier, profile.addition

    assert kind("tflite") == (Rounding.FIXED32_DOUBLE, Multiplier.F64, AddArithmetic.SHIFTED_FIXED)
    assert kind("tflite-xnnpack") == (Rounding.F32_RNE_ZP_LAST, Multiplier.F32, AddArithmetic.FIXED_ONCE)
    assert kind("tosa-double") == (Rounding.FIXED64_DOUBLE, Multiplier.F64, AddArithmetic.SHIFTED_DOUBLE)
