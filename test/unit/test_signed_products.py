"""Contractions of a user's signed values: multiplied as they are where an instruction does, copied elsewhere."""

import numpy as np
import pytest

from qdialect.ir.context import parse
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.targets import host_features, resolve

SIGNED = resolve("avxvnniint8")
ROWS, DEPTH, CHANNELS = 3, 40, 19


def dense(zero_points: str, element: str = "i8", extra: str = "") -> str:
    """A matrix product of rows of signed values; weights up to nine bits, with or without zero points."""
    rng = np.random.default_rng(1)
    low, high = (-128, 128) if element == "i8" else (0, 256)
    weights = rng.integers(low, high, (CHANNELS, DEPTH)).tolist()
    return f"""
    func.func @main(%x: tensor<{ROWS}x{DEPTH}xi8>) -> tensor<{ROWS}x{CHANNELS}xi32> {{
      %w = "qnn.constant"() {{value = dense<{weights}> : tensor<{CHANNELS}x{DEPTH}x{element}>}}
        : () -> tensor<{CHANNELS}x{DEPTH}x{element}>
      {extra}
      %0 = "qnn.dense"(%x, %w) {{
        input_scale = 0.5 : f64, input_zero_point = -7 : i64, weight_scales = array<f64: 0.25>,
        weight_zero_points = array<i64: {zero_points}>
      }} : (tensor<{ROWS}x{DEPTH}xi8>, tensor<{CHANNELS}x{DEPTH}x{element}>) -> tensor<{ROWS}x{CHANNELS}xi32>
      return %0 : tensor<{ROWS}x{CHANNELS}xi32>
    }}"""


@pytest.mark.parametrize(("zero_points", "element"), [("0", "i8"), ("3", "i8"), ("91", "ui8")])
def test_signed_values_are_multiplied_as_they_are(zero_points: str, element: str) -> None:
    module = parse(dense(zero_points, element))
    lowered = lower(module, SIGNED, Phase.X86)
    assert "llvm.x86.avx2.vpdpbssd" in str(lowered.module)
    assert "vpdpbusd" not in str(lowered.module)
    assert not any(label.startswith("input") for label in lowered.labels)
    rows = np.random.default_rng(2).choice([-128, -127, -1, 0, 127], (ROWS, DEPTH)).astype(np.int8)
    wanted = run(module, [rows])[0]
    targets = ["avxvnniint8,portable", *(["avxvnniint8"] if SIGNED.features <= host_features() else [])]
    for target in targets:
        np.testing.assert_array_equal(compile_module(module, target=target)(rows), wanted, err_msg=target)


def test_a_target_without_signed_products_copies_the_input() -> None:
    lowered = lower(parse(dense("0")), resolve("avxvnni"), Phase.X86)
    assert "vpdpbusd" in str(lowered.module)
    assert lowered.labels[0] == "input 0"


def test_an_input_with_another_reader_is_copied() -> None:
    size = f"tensor<{ROWS}x{DEPTH}xi8>"
    text = dense("0").replace("      return %0", "      return %0, %x").replace("xi32> {", f"xi32>, {size}) {{", 1)
    text = (
        text.replace(") -> tensor", ") -> (tensor", 1)
        .replace("return %0, %x :", "return %0, %x :")
        .replace(
            f"return %0, %x : tensor<{ROWS}x{CHANNELS}xi32>", f"return %0, %x : tensor<{ROWS}x{CHANNELS}xi32>, {size}"
        )
    )
    assert lower(parse(text), SIGNED, Phase.X86).labels[0] == "input 0"
