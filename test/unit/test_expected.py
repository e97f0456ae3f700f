"""Expected diagnostics as comments, and several modules in one file."""

from __future__ import annotations

import contextlib

import pytest
from deadline import deadline

from qdialect.cli.expected import MalformedCommentError, expectations, problems
from qdialect.cli.opt_arguments import split
from qdialect.support.diagnostics import Diagnostic, Severity


def diagnostic(line: int, message: str = "it is wrong", severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(severity, message, "x.mlir" if line else "", line, 1)


def complaints(text: str, *diagnostics: Diagnostic) -> list[str]:
    return [str(found) for found in problems(text, "x.mlir", diagnostics)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("op // expected-error {{wrong}}", 1),
        ("op // expected-error{{wrong}}  ", 1),
        ("// expected-error @+2 {{wrong}}\n\nop", 3),
        ("op\n// expected-error @-1 {{wrong}}", 1),
        ("op\n// expected-note @above {{wrong}}\n// expected-error @above {{wrong}}", 1),
        ("// expected-error @below {{wrong}}\n// expected-note @below {{wrong}}\nop", 3),
        ("// expected-error-re @below {{it {{(is|was)}} wrong}}\nop", 2),
        ("// expected-error @unknown {{wrong}}", 0),
    ],
)
def test_a_comment_says_where_the_error_is(text: str, line: int) -> None:
    wanted = [e for e in expectations(text) if e.severity is Severity.ERROR]
    assert [e.line for e in wanted] == [line]
    assert wanted[0].fits(diagnostic(line))
    assert not wanted[0].fits(diagnostic(line + 1))
    assert not wanted[0].fits(diagnostic(line, "it is right"))
    assert not wanted[0].fits(diagnostic(line, severity=Severity.WARNING))


@pytest.mark.parametrize("severity", list(Severity))
def test_every_severity_can_be_expected(severity: Severity) -> None:
    text = f"op // expected-{severity.value} {{{{wrong}}}}"
    assert complaints(text, diagnostic(1, severity=severity)) == []
    assert len(complaints(text)) == 1


def test_a_text_is_literal_and_a_regular_expression_is_not() -> None:
    literal = "op // expected-error {{a.b}}"
    assert complaints(literal, diagnostic(1, "a.b")) == []
    assert len(complaints(literal, diagnostic(1, "axb"))) == 2
    pattern = "op // expected-error-re {{f(x) {{a.b}}}}"
    assert complaints(pattern, diagnostic(1, "f(x) axb")) == []
    assert len(complaints(pattern, diagnostic(1, "f(x) ab"))) == 2


def test_each_comment_stands_for_one_diagnostic() -> None:
    text = "op // expected-error {{wrong}}"
    assert complaints(text, diagnostic(1), diagnostic(1)) == ["x.mlir:1:1: error: unexpected error: it is wrong"]


def test_notes_need_comments_of_their_own() -> None:
    note = diagnostic(2, "used here", Severity.NOTE)
    whole = Diagnostic(Severity.ERROR, "it is wrong", "x.mlir", 1, 1, (note,))
    text = "op // expected-error {{wrong}}\n"
    assert complaints(text, whole) == ["x.mlir:2:1: error: unexpected note: used here"]
    assert complaints(text + "op // expected-note {{used}}", whole) == []


def test_what_differs_is_told_in_the_order_of_lines() -> None:
    text = "\n// expected-error @+9 {{never}}\n\nop"
    assert complaints(text, diagnostic(4), diagnostic(1)) == [
        "x.mlir:1:1: error: unexpected error: it is wrong",
        'x.mlir:2:4: error: expected error "never" was not produced',
        "x.mlir:4:1: error: unexpected error: it is wrong",
    ]


def test_an_error_of_another_file_is_not_one_of_this_line() -> None:
    other = Diagnostic(Severity.ERROR, "it is wrong", "y.mlir", 1, 1)
    assert complaints("op // expected-error {{wrong}}", other) == [
        "y.mlir:1:1: error: unexpected error: it is wrong",
        'x.mlir:1:7: error: expected error "wrong" was not produced',
    ]


def test_a_bad_regular_expression_is_an_error() -> None:
    found = complaints("op // expected-error-re {{{{(}}}}")
    assert found
    assert found[0].startswith("x.mlir:1:7: error: invalid regular expression in '{{(}}': ")


def test_parts_keep_the_line_numbers_of_the_file() -> None:
    parts = split("a\n// -----\nb\n// -----  \n\nc\n")
    assert parts == ["a\n", "\n\nb\n", "\n\n\n\n\nc\n"]


@pytest.mark.parametrize("text", ["", "a", "a\n", "// ----\na", "x // -----\na", " // -----\na"])
def test_what_is_no_marker_splits_nothing(text: str) -> None:
    assert split(text) == [text]


def test_a_marker_of_ones_own_splits() -> None:
    assert split("a\n----\nb\n// -----\n", "----") == ["a\n", "\n\nb\n// -----\n"]


@pytest.mark.parametrize(
    "line", ["expected-error{}", "expected-error{}}}}}", "expected-error {{{{{}", "expected-error {{{{x{}y"]
)
@pytest.mark.parametrize("row", [" " * 4, "{{", "}} ", "expected-error {{", "+1"])
def test_the_time_of_long_comments_is_linear(line: str, row: str) -> None:
    with deadline():
        expectations(line.format(row * 200_000))


@pytest.mark.parametrize("row", [" ", "{{", "}} "])
def test_the_time_of_long_regular_expressions_is_linear(row: str) -> None:
    with deadline(), contextlib.suppress(MalformedCommentError):
        expectations(f"expected-error-re {{{{{row * 200_000}}}}}")
