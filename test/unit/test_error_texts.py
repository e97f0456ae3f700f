"""What ``str()`` of an error says: a traceback in Python shows that and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_graphs import ModelBuilder

import qdialect
from qdialect.frontends.building.checks import refuse
from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import Diagnostic, ImportModelError, Severity


def test_every_unsupported_node_of_a_model_is_in_the_text() -> None:
    b = ModelBuilder()
    first = b.node("Hardmax", b.input("x", (1, 4, 2, 2)), name="first")
    b.node("NonZero", first, output="y", name="second")
    with pytest.raises(ImportModelError) as caught:
        import_onnx(b.finish("y", dtype=np.int64))
    lines = str(caught.value).split("\n")
    assert lines == [
        "'model.onnx' has 2 unsupported operations",
        "  node 0 Hardmax ('first'): operator is not supported",
        "  node 1 NonZero ('second'): operator is not supported",
    ]
    assert caught.value.message == lines[0]


@pytest.mark.parametrize(
    ("reasons", "wanted"),
    [
        (["node 0 Hardmax: operator is not supported"], "1 unsupported operation"),
        (["output 'y': must be one tensor"], "1 unsupported tensor"),
        (["input 'x': must be i8", "output 'y': must be one tensor"], "2 unsupported tensors"),
        (
            ["node 0 Hardmax: operator is not supported", "input 'x': must be i8"],
            "2 unsupported operations and tensors",
        ),
    ],
)
def test_operations_and_tensors_are_told_apart(reasons: list[str], wanted: str) -> None:
    with pytest.raises(ImportModelError) as caught:
        refuse("model.onnx", reasons)
    assert caught.value.message == f"'model.onnx' has {wanted}"


def test_a_parse_error_has_its_line() -> None:
    with pytest.raises(qdialect.ParseError) as caught:
        qdialect.parse("func.func @main() {\n  return %x : i8\n}")
    assert str(caught.value).startswith("-:2:10: ")
    assert not caught.value.message.startswith("-:2")


def test_an_error_that_wraps_another_has_its_notes_once() -> None:
    notes = (Diagnostic(Severity.NOTE, "a\nb"),)
    inner = ImportModelError("inner", (Diagnostic(Severity.ERROR, "inner", notes=notes),))
    outer = ImportModelError(f"outer: {inner.message}", inner.diagnostics)
    assert str(outer) == "outer: inner\n  a\\nb"


def test_a_location_of_another_message_is_left_out() -> None:
    diagnostic = Diagnostic(Severity.ERROR, "text", "f.mlir", 3, 4)
    assert str(ImportModelError("text", (diagnostic,))) == "f.mlir:3:4: text"
    assert str(ImportModelError("'f.mlir': text", (diagnostic,))) == "'f.mlir': text"


def test_a_node_behind_a_refused_one_is_judged_with_its_type() -> None:
    """Both are reported: what the first gives has a known type, so that the second is more than its operator."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 2, 2))
    refused = b.node("Relu", b.node("Hardmax", x))
    b.node("Conv", refused, b.constant(np.ones((4, 5, 1, 1), np.float32)), output="y", name="wide")
    with pytest.raises(ImportModelError) as caught:
        import_onnx(b.finish("y", dtype=np.float32))
    first, second, *more = (note.message for note in caught.value.diagnostics[0].notes)
    assert first.startswith("node 0 Hardmax")
    assert second.startswith("node 2 Conv ('wide'): ")
    assert not more


def test_types_are_named() -> None:
    b = ModelBuilder()
    b.node("Cast", b.dequantize(b.input("x", (1, 4), np.uint8), (0.5, 3)), to=10, output="y")
    b.node("Neg", b.input("wide", (1, 4), np.float64), output="z")
    with pytest.raises(ImportModelError) as caught:
        import_onnx(b.finish("y", "z", dtype=np.float16))
    text = str(caught.value)
    assert "casts to float16" in text
    assert "input 'wide': type must be i1, i8, ui8, i16, ui16, i32, i64 or f32, but got double" in text
