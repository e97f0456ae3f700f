"""The one factory of contexts, and MLIR's diagnostics, printing and round trips."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx_graphs import ModelBuilder

from qdialect.cli import opt
from qdialect.frontends.onnx import import_onnx
from qdialect.ir import module_text
from qdialect.ir._mlir import ir
from qdialect.ir.context import available_dialects, location_of, make_context, parse, verify
from qdialect.passes.registry import all_passes
from qdialect.support import registry
from qdialect.support.diagnostics import (
    Diagnostic,
    ImportModelError,
    ParseError,
    QDialectError,
    Severity,
    VerificationError,
    printable,
)

RELU = """\
  %y{n} = "qnn.relu"(%x) {{
    input_scale = 0.5 : f64, input_zero_point = {zero_point} : i64, output_scale = 0.5 : f64,
    output_zero_point = 0 : i64, entries = "half_away_divide", nan = "max"
  }} : (tensor<4xi8>) -> tensor<4xi8>
"""


def function(name: str, *zero_points: int) -> str:
    ops = "".join(RELU.format(n=n, zero_point=zero_point) for n, zero_point in enumerate(zero_points))
    return f"func.func @{name}(%x: tensor<4xi8>) {{\n{ops}  return\n}}\n"


def test_every_broken_op_is_reported_with_its_place() -> None:
    text = function("f", 0, 200) + function("g", -129)
    with pytest.raises(ParseError) as caught:
        parse(text, file_name="model.mlir")
    message = "error: 'qnn.relu' op input_zero_point must be in [-128, 127], but got"
    assert caught.value.render() == f"model.mlir:6:9: {message} 200\nmodel.mlir:13:9: {message} -129"


def test_a_place_given_in_the_text_is_kept() -> None:
    text = function("f", 200).replace("-> tensor<4xi8>\n", '-> tensor<4xi8> loc("net.tflite":7:3)\n')
    with pytest.raises(ParseError) as caught:
        parse(text)
    found = caught.value.diagnostics[0]
    assert (found.file, found.line, found.column) == ("net.tflite", 7, 3)


def test_an_error_of_a_module_in_memory_is_a_verification_error() -> None:
    module = parse(function("f", 0))
    op = module.body.operations[0].regions[0].blocks[0].operations[0]
    with module.context:
        op.attributes["input_zero_point"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 200)
    with pytest.raises(VerificationError, match="but got 200") as caught:
        verify(module)
    assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("func.func @f() {", 1, "expected"),
        ("\n\n}", 3, "expected"),
        ('%0 = "qnn.nothing"() : () -> i8', 1, "unregistered operation 'qnn.nothing'"),
        ('%0 = "no.dialect"() : () -> i8', 1, "dialect"),
        ("func.func @f(%x: tensor<4xi8>) {\n  %y = qnn.relu %x : tensor<4xi8>\n  return\n}", 2, "generic form only"),
        ("module attributes {a.b = " + "[" * 100_000 + "]" * 100_000 + "} {}", 1, "nest"),
    ],
)
def test_text_that_is_no_module_is_a_located_error(text: str, line: int, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse(text)
    assert caught.value.diagnostics[0].line == line
    assert caught.value.diagnostics[0].column > 0


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), (b"\xff\xfe", "UTF-8")])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "input.mlir"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ParseError, match=f"cannot read '.*input.mlir': .*{reason}"):
        parse(path)


def test_locations_of_imported_ops_have_no_place_of_their_own() -> None:
    with make_context():
        assert location_of(ir.Location.unknown()) == ("", 0, 0)
        assert location_of(ir.Location.name("Conv2d_0")) == ("", 0, 0)
        inside = ir.Location.file("net.tflite", 3, 5)
        assert location_of(ir.Location.name("Conv2d_0", inside)) == ("net.tflite", 3, 5)
        assert location_of(ir.Location.fused([ir.Location.unknown(), inside])) == ("net.tflite", 3, 5)
        assert location_of(ir.Location.callsite(ir.Location.name("f"), [inside])) == ("net.tflite", 3, 5)
        assert location_of(ir.Location.file('"a":1:2 "', 3, 4)) == ('"a":1:2 "', 3, 4)
        assert location_of(ir.Location.name('"a":1:2')) == ("", 0, 0)


def test_a_diagnostic_prints_its_notes_below() -> None:
    note = Diagnostic(Severity.NOTE, "it was used here", "a.mlir", 9, 1)
    found = Diagnostic(Severity.ERROR, "value must be used once", "a.mlir", 3, 4, (note,))
    wanted = "a.mlir:3:4: error: value must be used once\na.mlir:9:1: note: it was used here"
    assert str(found) == wanted
    assert QDialectError("x", (found,)).render() == wanted
    assert QDialectError("no location").render() == "error: no location"


# Which dialects a context has loaded: those of graphs, what a pass names, and for users all.

# The bindings know this one by another name.
NAMES = [name for name in available_dialects() if name != "vcix"]


def loaded(context: ir.Context) -> set[str]:
    return {name for name in NAMES if context.is_dialect_loaded(name)}


def test_a_context_has_all_where_a_module_from_outside_has_registered_something() -> None:
    registry.Registry[Callable[[], None]]("test").add(["test.op"], lambda: None)
    assert loaded(make_context()) == set(NAMES)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('%0 = "llvm.mlir.zero"() : () -> !llvm.ptr', "llvm"),
        ("func.func private @f(!quant.uniform<i8:f32, 0.5>)", "quant"),
        ("module attributes {test.a = #gpu.address_space<global>} {}", "gpu"),
    ],
)
def test_the_parser_loads_what_it_meets(text: str, name: str) -> None:
    context = make_context()
    before = loaded(context)
    module = parse(text, context)
    assert name in loaded(module.context)
    assert name not in before


def test_every_pass_of_the_project_names_its_dialects() -> None:
    own = [one for one in all_passes().values() if one.__module__.startswith("qdialect.")]
    assert own
    assert [one.name for one in own if one.dependent_dialects is None] == []


# Names of a stranger's file on a terminal: whatever they say, it is shown and not obeyed.

# A title for the terminal, a cleared screen, a line of its own, text from right to left, and an invisible mark.
EVIL = "a\x1b]0;owned\x07\x1b[2J\nerror: b\r\u202etxt\u200b\x9b1m"
SHOWN = r"a\x1b]0;owned\x07\x1b[2J\nerror: b\r\u202etxt\u200b\x9b1m"


def unsupported(name: str) -> bytes:
    b = ModelBuilder()
    b.input("x", (1, 4), np.uint8)
    b.node("Hardmax", "x", output=name)
    return b.finish(name)


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n")) and "\nerror: b" not in text


def test_visible_characters_stay_and_others_are_escaped() -> None:
    assert printable("Größe 'x' → 3") == "Größe 'x' → 3"
    assert printable(EVIL) == SHOWN
    assert printable("\udc80") == r"\udc80"


def test_messages_of_errors_and_diagnostics() -> None:
    error = QDialectError(f"'{EVIL}' is wrong")
    assert str(error) == f"'{SHOWN}' is wrong"
    assert error.render() == f"error: '{SHOWN}' is wrong"
    assert error.diagnostics[0].message == f"'{EVIL}' is wrong"
    note = Diagnostic(Severity.NOTE, EVIL)
    found = str(Diagnostic(Severity.ERROR, "what", EVIL, 3, 4, (note,)))
    assert found == f"{SHOWN}:3:4: error: what\nnote: {SHOWN}"


def test_an_import_that_fails() -> None:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(unsupported(EVIL))
    assert SHOWN in caught.value.render()
    assert is_harmless(caught.value.render())


# qdialect-opt --verify-roundtrip: a module that changes when it is printed and parsed is an error.

TEXT = "func.func @f(%x: tensor<4xi8>) -> tensor<4xi8> {\n  return %x : tensor<4xi8>\n}\n"
OTHER = TEXT.replace("@f", "@g")


def other(_text: str, context: ir.Context) -> ir.Module:
    return parse(OTHER, context)


def test_a_dialect_that_nobody_knows_stays_allowed() -> None:
    context = make_context()
    context.allow_unregistered_dialects = True
    module_text.check_round_trip(parse('"other.op"() : () -> ()', context))


def test_the_command_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = tmp_path / "x.mlir"
    source.write_text(TEXT)
    assert opt.main([str(source), "--verify-roundtrip"]) == 0
    assert "func.func @f" in capsys.readouterr().out
    monkeypatch.setattr(module_text, "parse", other)
    assert opt.main([str(source), "--verify-roundtrip"]) == 1
    found = capsys.readouterr()
    assert found.out == ""
    assert "module must be the same after a round trip through text" in found.err


# ``str()`` of an error: a traceback in Python shows that and nothing else.


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


def test_an_error_that_wraps_another_has_its_notes_once() -> None:
    notes = (Diagnostic(Severity.NOTE, "a\nb"),)
    inner = ImportModelError("inner", (Diagnostic(Severity.ERROR, "inner", notes=notes),))
    outer = ImportModelError(f"outer: {inner.message}", inner.diagnostics)
    assert str(outer) == "outer: inner\n  a\\nb"


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
