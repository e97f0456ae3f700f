"""The one factory of contexts, and how MLIR's diagnostics become errors with locations."""

import subprocess
import sys
from pathlib import Path

import pytest
from deadline import HANG

from qdialect import dialect
from qdialect.ir._mlir import ir
from qdialect.ir.context import captured_diagnostics, location_of, make_context, parse, verify
from qdialect.support.diagnostics import Diagnostic, ParseError, QDialectError, Severity, VerificationError

RELU = """\
  %y{n} = "qnn.relu"(%x) {{
    input_scale = 0.5 : f64, input_zero_point = {zero_point} : i64, output_scale = 0.5 : f64,
    output_zero_point = 0 : i64, entries = "half_away_divide", nan = "max"
  }} : (tensor<4xi8>) -> tensor<4xi8>
"""


def function(name: str, *zero_points: int) -> str:
    ops = "".join(RELU.format(n=n, zero_point=zero_point) for n, zero_point in enumerate(zero_points))
    return f"func.func @{name}(%x: tensor<4xi8>) {{\n{ops}  return\n}}\n"


EIGHT_FUNCTIONS = "".join(function(f"f{n}", 0) for n in range(8))


def test_threads_are_off() -> None:
    # With threads on these three calls never come back; so they run where they can be given up.
    script = (
        "import sys; from qdialect.ir.context import parse, verify\n"
        "module = parse(sys.stdin.read()); verify(module); print(module)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=EIGHT_FUNCTIONS,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert done.stdout.count('"qnn.relu"') == 8


def test_a_context_has_the_dialect_and_upstreams() -> None:
    context = make_context()
    assert context.is_dialect_loaded("qnn")
    dialect.load(context)
    assert parse("func.func @f(%x: tensor<4xf32>) { %y = math.exp %x : tensor<4xf32> return }", context)


def test_contexts_are_apart() -> None:
    first, second = parse(EIGHT_FUNCTIONS), parse(EIGHT_FUNCTIONS)
    assert first.context is not second.context
    verify(first)
    verify(second)


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


def test_an_op_that_lost_an_attribute_is_reported() -> None:
    module = parse(function("f", 0))
    op = module.body.operations[0].regions[0].blocks[0].operations[0]
    del op.attributes["input_scale"]
    with pytest.raises(VerificationError, match="must have attribute 'input_scale'"):
        verify(module)


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


def test_a_file_is_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text(function("f", 200))
    for source in (path, str(path)):
        with pytest.raises(ParseError) as caught:
            parse(source)
        assert caught.value.diagnostics[0].file == str(path)
        assert caught.value.diagnostics[0].line == 2


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


def test_remarks_are_collected() -> None:
    context = make_context()
    with captured_diagnostics(context) as found, context:
        ir.Location.file("a.mlir", 1, 2).emit_error("no 'good'")
    assert found == [Diagnostic(Severity.ERROR, "no 'good'", "a.mlir", 1, 2)]


def test_a_diagnostic_prints_its_notes_below() -> None:
    note = Diagnostic(Severity.NOTE, "it was used here", "a.mlir", 9, 1)
    found = Diagnostic(Severity.ERROR, "value must be used once", "a.mlir", 3, 4, (note,))
    wanted = "a.mlir:3:4: error: value must be used once\na.mlir:9:1: note: it was used here"
    assert str(found) == wanted
    assert QDialectError("x", (found,)).render() == wanted
    assert QDialectError("no location").render() == "error: no location"
