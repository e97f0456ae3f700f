"""What an op's docstring claims, a test shows: a constraint cannot be added without its negative test."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from qdialect.context import parse
from qdialect.diagnostics import ParseError
from qdialect.dialect import OPS, ConstraintError, QnnOp

LIT = Path(__file__).resolve().parents[1] / "lit" / "dialect"
BY_NAME = {op_class.OPERATION_NAME.removeprefix("qnn."): op_class for op_class in OPS}
LABELLED_LINE = re.compile(r"^ +(C\d[^:]*):", re.MULTILINE)
SPAN = re.compile(r"C(\d+)(?: to C(\d+))?")
FUNCTION = re.compile(r"func\.func @(\w+)\(")


def constraint_labels(op_class: type[QnnOp]) -> list[str]:
    """Labels in the docstring of an op, ``C1, C4 to C6`` spelled out."""
    _, _, constraints = (op_class.__doc__ or "").partition("Constraints:")
    spans = (span for line in LABELLED_LINE.findall(constraints) for span in SPAN.finditer(line))
    return [f"C{number}" for span in spans for number in range(int(span[1]), int(span[2] or span[1]) + 1)]


def negative_tests(name: str) -> dict[str, str]:
    """The pieces of the negative test of an op, by the name of their function."""
    pieces = (LIT / f"{name}-invalid.mlir").read_text().split("// -----")
    return {FUNCTION.findall(piece)[0]: piece for piece in pieces}


def labelled_tests() -> Iterator[tuple[str, str]]:
    """Op and function of every negative test that names a constraint."""
    for name in BY_NAME:
        for function in negative_tests(name):
            if re.match(rf"{name}_c\d", function):
                yield name, function


@pytest.mark.parametrize("name", BY_NAME)
def test_labels_are_distinct_and_ascending(name: str) -> None:
    numbers = [int(label[1:]) for label in constraint_labels(BY_NAME[name])]
    assert numbers
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("name", BY_NAME)
def test_every_label_has_a_negative_test_and_no_test_another_label(name: str) -> None:
    tested = {re.match(rf"{name}_(c\d+)(?:_|$)", function) for function in negative_tests(name)}
    labels = {match[1].upper() for match in tested if match}
    assert labels == set(constraint_labels(BY_NAME[name]))


@pytest.mark.parametrize(("name", "function"), list(labelled_tests()))
def test_the_constraint_that_fires_is_the_one_named(name: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fired: list[str] = []
    original = ConstraintError.__init__

    def record(self: ConstraintError, label: str, message: str) -> None:
        fired.append(label)
        original(self, label, message)

    monkeypatch.setattr(ConstraintError, "__init__", record)
    with pytest.raises(ParseError):
        parse(negative_tests(name)[function])
    number = re.match(rf"{name}_c(\d+)", function)
    assert number is not None
    assert fired == [f"C{number[1]}"]


@pytest.mark.parametrize("name", BY_NAME)
def test_a_negative_test_is_one_function_with_one_error_of_its_op(name: str) -> None:
    for function, piece in negative_tests(name).items():
        assert function.startswith(f"{name}_")
        assert FUNCTION.findall(piece) == [function]
        assert re.findall(r"expected-error @\+1 \{\{'(\S+)' op ", piece) == [f"qnn.{name}"]


@pytest.mark.parametrize("name", BY_NAME)
def test_the_round_trip_has_every_attribute(name: str) -> None:
    text = (LIT / f"{name}.mlir").read_text()
    assert text.startswith("// RUN: %roundtrip\n")
    checks = "\n".join(re.findall(r"^// CHECK(?:-SAME)?: (.*)", text, re.MULTILINE))
    assert f'"qnn.{name}"(' in checks
    for attribute in BY_NAME[name].attribute_fields:
        assert re.search(rf"\b{attribute}\b", checks)


def test_no_file_tests_an_op_that_is_not_there() -> None:
    stems = {path.stem.removesuffix("-invalid") for path in LIT.glob("*.mlir")}
    assert stems == set(BY_NAME)


def test_an_included_label_is_spelled_out() -> None:
    assert constraint_labels(BY_NAME["fused_dense"]) == ["C1", *(f"C{number}" for number in range(4, 12))]
