"""The arithmetic of TFLite's XNNPACK delegate against numbers that LiteRT gave with it.

`tools/record/xnnpack.py` draws the cases: many results lie close to half-way between two quantized values, where the
delegate differs from the reference kernels.
"""

from pathlib import Path

import numpy as np
import pytest
import recordings
import tflite

import qdialect
from qdialect.frontends import frameworks
from qdialect.frontends.model_files import ImportOptions, read_model
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.frontends.tflite.xnnpack import use_xnnpack
from qdialect.ir.context import parse
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

CASES = recordings.read_family("xnnpack")


@pytest.mark.parametrize("case", CASES)
def test_equals_the_delegate(case: str) -> None:
    recorded = CASES[case]
    (output,) = interpreter.run(import_tflite(recorded.model, profile="tflite-xnnpack"), list(recorded.inputs))
    assert np.count_nonzero(output != recorded.outputs[0]) == 0


def test_the_delegate_is_not_the_reference() -> None:
    different: set[str] = set()
    for name, case in CASES.items():
        (output,) = interpreter.run(import_tflite(case.model), list(case.inputs))
        if np.any(output != case.outputs[0]):
            different.add(name.split("_")[0])
    assert different >= {"ADD", "SUB", "MUL", "RESIZE", "MEAN", "QUANTIZE", "LEAKY"}


RESCALE = """
func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {{
  %0 = "qnn.requantize"(%x) {{input_scale = {scale} : f64, weight_scales = array<f64: 1.0>, axis = 0 : i64,
    input_zero_points = array<i64: 3>, output_scale = 1.0 : f64, output_zero_point = 5 : i64,
    rounding = "fixed32_double", multiplier = "{multiplier}"}} : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}}
"""


@pytest.mark.parametrize(
    ("scale", "multiplier", "is_taken"),
    [
        ("3.90625e-3", "f64", True),
        ("3.90624e-3", "f64", False),
        ("127.9", "f64", True),
        ("128.0", "f64", False),
        # A clamp's rescale.
        ("0.5", "f32", False),
    ],
)
def test_what_the_delegate_does_not_take_stays(scale: str, multiplier: str, is_taken: bool) -> None:
    module = parse(RESCALE.format(scale=scale, multiplier=multiplier))
    use_xnnpack(module)
    assert ("qnn.lut" in str(module)) == is_taken


def test_unknown_profiles_are_refused(tmp_path: Path) -> None:
    content = CASES["ADD_i8_0"].model
    with pytest.raises(ImportModelError, match="profile must be tflite or tflite-xnnpack, but got 'ort'"):
        import_tflite(content, profile="ort")
    path = tmp_path / "x.tflite"
    path.write_bytes(content)
    with pytest.raises(ImportModelError, match=r"profile of a \.tflite file must be .*, but got 'ort'"):
        qdialect.compile(path, profile="ort")
    text = tmp_path / "x.mlir"
    text.write_text("module {}")
    with pytest.raises(ImportModelError, match=r"profile of a \.mlir file must be tosa, but got 'ort'"):
        read_model(text, ImportOptions(profile="ort"))


def test_a_rescale_of_16_bits_is_left() -> None:
    """The delegate's tables are of bytes."""
    writer = ModelWriter("rescale")
    x = writer.tensor("x", (2, 5), np.int16, Quantization((0.5,), (0,)))
    y = writer.tensor("y", (2, 5), np.int16, Quantization((1.0,), (0,)))
    writer.operator(tflite.BuiltinOperator.QUANTIZE, [x], y)
    content, given = writer.finish([x], [y]), np.arange(-5, 5, dtype=np.int16).reshape(2, 5)
    found = interpreter.run(import_tflite(content, profile="tflite-xnnpack"), [given])
    np.testing.assert_array_equal(found[0], frameworks.load_litert(content, 1, is_reference=False)([given])[0])
