"""Parsing text and files: what is refused, and where the error is said to be."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from deadline import HANG
from hypothesis import given
from hypothesis import strategies as st

from qdialect import ParseError, Severity, make_context, parse, verify
from qdialect.ir.context import location_of
from qdialect.ir.untrusted_input import LIMIT

GOOD = "func.func @f() {\n  return\n}\n"
RESHAPE = '"qnn.reshape"(%x) {shape = array<i64: 4>} : (tensor<4xi8>) -> tensor<4xi8>'


def test_contexts_have_one_thread_and_the_dialect() -> None:
    context = make_context()
    assert context.get_num_threads() == 1
    assert context.is_dialect_loaded("qnn")


def test_many_functions_with_python_verifiers_do_not_hang() -> None:
    functions = "".join(f"func.func @f{i}(%x: tensor<4xi8>) {{\n%0 = {RESHAPE}\nreturn\n}}\n" for i in range(16))
    code = f"import qdialect; m = qdialect.parse({functions!r}); qdialect.verify(m); print(m)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG, stdout=subprocess.DEVNULL)


def test_a_path_and_a_text_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "x.mlir"
    file.write_text(GOOD)
    assert str(parse(file)) == str(parse(str(file))) == str(parse(GOOD))


def test_ops_of_a_file_have_its_name(tmp_path: Path) -> None:
    file = tmp_path / 'odd "name" é.mlir'
    file.write_text(GOOD)
    module = parse(file)
    assert location_of(module.body.operations[0].location) == (str(file), 1, 1)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("func.func @f() {", "x:1:15: error: expected operation name"),
        (
            "module {\n  %0 = qnn.relu %1 : i8\n}",
            "x:2:8: error: cannot parse: an op of a Python-defined dialect has the",
        ),
        ("// qnn.relu\nqnn.relu", "x:2:1: error: cannot parse: an op of a Python-defined dialect has the generic form"),
        ("\n" + "({" * LIMIT, f"x:2:{LIMIT + 1}: error: text must nest at most {LIMIT} deep, aliases written out"),
        ("module {} // \ud800", "x:1:14: error: text must be Unicode without lone surrogates"),
        ('%0 = "qnn.relu"() : () -> i8', "x:1:6: error: 'qnn.relu' op "),
    ],
)
def test_a_bad_text_is_a_located_error(text: str, rendered: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(text, file_name="x")
    assert error.value.render().startswith(rendered)
    assert error.value.diagnostics[0].severity is Severity.ERROR


def test_notes_stay_with_their_error() -> None:
    with pytest.raises(ParseError) as error:
        parse("func.func @f(%x: i32) {\n  %y = arith.addi %x, %x : i64\n  return\n}", file_name="x")
    (diagnostic,) = error.value.diagnostics
    assert [(note.severity, note.line) for note in diagnostic.notes] == [(Severity.NOTE, 1)]
    assert error.value.render().count("\n") == 1


@pytest.mark.parametrize("opening", ['"a.b"() ({', "module {", "module attributes {a.b = ["])
def test_the_deepest_text_that_is_accepted_is_parsed_and_printed(opening: str) -> None:
    closing = {'"a.b"() ({': "}) : () -> ()", "module {": "}", "module attributes {a.b = [": ""}[opening]
    count = LIMIT // 2 - 2
    text = opening * count + closing * count if closing else opening + "[" * count + "]" * count + "]} {}"
    context = make_context()
    context.allow_unregistered_dialects = True
    assert str(parse(text, context)).count(opening[:4]) >= 1


@given(st.text(st.sampled_from('"qnn.relu"(%x){}:tensor<4xi8>->[]-1 \n'), max_size=60))
def test_any_text_is_a_module_or_an_error(text: str) -> None:
    with contextlib.suppress(ParseError):
        verify(parse(text))
