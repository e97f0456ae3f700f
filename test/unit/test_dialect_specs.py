"""What a docstring claims, a test shows: a constraint cannot be added without its negative test.

Constraints stand in the docstrings of ops and of stages, and in those of base classes for all that inherit them; each
class with constraints of its own has one file of negative tests. What the base of all ops checks has no labels: it is
in the file of that base.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from qdialect.dialect import OPS, ConstraintError, QnnOp
from qdialect.dialect.stages.stage_base import STAGES, QuantizedStage
from qdialect.ir.context import parse
from qdialect.support.diagnostics import ParseError

LIT = Path(__file__).resolve().parents[1] / "lit"
OP_TESTS, STAGE_TESTS = LIT / "dialect", LIT / "dialect" / "stages"
BY_NAME = {op_class.OPERATION_NAME.removeprefix("qnn."): op_class for op_class in OPS}
LABELLED_LINE = re.compile(r"^ +(C\d[^:]*):", re.MULTILINE)
SPAN = re.compile(r"C(\d+)(?: to C(\d+))?")
FUNCTION = re.compile(r"func\.func @(\w+)\(")
CHECK = re.compile(r"^// CHECK(?:-SAME)?: (.*)", re.MULTILINE)


@dataclass(frozen=True)
class Spec:
    """A class whose docstring has constraints: an op, a stage, or a base class of several."""

    name: str
    own: type
    folder: Path
    ops: tuple[str, ...]
    """The ops that its negative tests may be about."""

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}-invalid.mlir"


def constraint_labels(own: type) -> list[str]:
    """Labels in the docstring of a class, ``C1, C4 to C6`` decomposed."""
    _, _, constraints = (own.__doc__ or "").partition("Constraints:")
    spans = (span for line in LABELLED_LINE.findall(constraints) for span in SPAN.finditer(line))
    return [f"C{number}" for span in spans for number in range(int(span[1]), int(span[2] or span[1]) + 1)]


def snake(own: type) -> str:
    """``QuantizedStage`` as ``quantized``."""
    stem = re.sub(r"(?:Op|Stage)$", "", own.__name__)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", stem).lower()


def bases(classes: Iterator[type]) -> list[type]:
    """The base classes with constraints that a class does not repeat, each once."""
    found: dict[type, None] = {}
    for one in classes:
        own = set(constraint_labels(one))
        for base in one.__mro__[1:]:
            labels = set(constraint_labels(base)) if vars(base).get("__doc__") else set[str]()
            if not labels <= own:
                found[base] = None
    return list(found)


def specs() -> Iterator[Spec]:
    for name, op_class in BY_NAME.items():
        yield Spec(name, op_class, OP_TESTS, (f"qnn.{name}",))
    for base in [QnnOp, *bases(iter(BY_NAME.values()))]:
        yield Spec(snake(base), base, OP_TESTS, tuple(f"qnn.{n}" for n, op in BY_NAME.items() if issubclass(op, base)))
    fused = tuple(f"qnn.{name}" for name in BY_NAME if name.startswith("fused_"))
    stages = [one for one in STAGES.values() if constraint_labels(one)]
    for stage in [*stages, *bases(iter(STAGES.values()))]:
        yield Spec(snake(stage), stage, STAGE_TESTS, fused)


SPECS = {f"{spec.folder.name}/{spec.name}": spec for spec in specs()}


def negative_tests(spec: Spec) -> dict[str, str]:
    """The functions of a negative test, as text by name; empty where a class needs no such test."""
    if not spec.path.exists():
        return {}
    return {FUNCTION.findall(text)[0]: text for text in spec.path.read_text().split("// -----")}


def labelled_tests() -> Iterator[tuple[str, str]]:
    """Key and function of every negative test that names a constraint."""
    for key, spec in SPECS.items():
        for function in negative_tests(spec):
            if re.match(rf"{spec.name}_c\d", function):
                yield key, function


@pytest.mark.parametrize("key", SPECS)
def test_labels_are_distinct_and_ascending(key: str) -> None:
    numbers = [int(label[1:]) for label in constraint_labels(SPECS[key].own)]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("key", SPECS)
def test_every_label_has_a_negative_test_and_no_test_another_label(key: str) -> None:
    spec = SPECS[key]
    tested = {re.match(rf"{spec.name}_(c\d+)(?:_|$)", function) for function in negative_tests(spec)}
    labels = {match[1].upper() for match in tested if match}
    assert labels == set(constraint_labels(spec.own))


@pytest.mark.parametrize("name", BY_NAME)
def test_labels_of_an_op_and_its_bases_are_distinct(name: str) -> None:
    op_class = BY_NAME[name]
    labels = [label for one in [op_class, *bases(iter([op_class]))] for label in constraint_labels(one)]
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize(("key", "function"), list(labelled_tests()))
def test_the_constraint_that_fires_is_the_one_named(key: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fired: list[str] = []
    original = ConstraintError.__init__

    def record(self: ConstraintError, label: str, message: str) -> None:
        fired.append(label)
        original(self, label, message)

    monkeypatch.setattr(ConstraintError, "__init__", record)
    with pytest.raises(ParseError):
        parse(negative_tests(SPECS[key])[function])
    number = re.match(rf"{SPECS[key].name}_c(\d+)", function)
    assert number is not None
    assert fired == [f"C{number[1]}"]


@pytest.mark.parametrize("key", SPECS)
def test_a_negative_test_is_one_function_with_one_error_of_its_op(key: str) -> None:
    spec = SPECS[key]
    for function, text in negative_tests(spec).items():
        assert function.startswith(f"{spec.name}_")
        assert FUNCTION.findall(text) == [function]
        (found,) = re.findall(r"expected-error @\+1 \{\{'(\S+)' op ", text)
        assert found in spec.ops


@pytest.mark.parametrize("name", BY_NAME)
def test_the_round_trip_has_every_attribute(name: str) -> None:
    text = (OP_TESTS / f"{name}.mlir").read_text()
    assert text.startswith("// RUN: %roundtrip\n")
    checks = "\n".join(CHECK.findall(text))
    assert f'"qnn.{name}"(' in checks
    for printed in BY_NAME[name].attribute_fields:
        assert re.search(rf"\b{printed}\b", checks)


@pytest.mark.parametrize("name", STAGES)
def test_some_lit_test_prints_every_attribute_of_a_stage(name: str) -> None:
    files = [*OP_TESTS.glob("fused_*.mlir"), *(LIT / "passes").glob("*.mlir")]
    checks = "\n".join(" ".join(CHECK.findall(path.read_text())) for path in files)
    inherited = set[str]() if name == "requantize" else {field.name for field in fields(QuantizedStage)}
    own = {field.name for field in fields(STAGES[name])} - inherited
    assert re.search(rf"\{{{name}(?: = \{{|\}})", checks)
    for printed in own:
        assert re.search(rf"\{{{name} = \{{[^{{}}]*\b{printed} = ", checks), printed


def test_no_file_tests_what_is_not_there() -> None:
    round_trips = {OP_TESTS / f"{name}.mlir" for name in BY_NAME}
    found = set(OP_TESTS.rglob("*.mlir"))
    assert round_trips <= found
    assert found <= round_trips | {spec.path for spec in SPECS.values()}


def test_an_included_label_is_written_out() -> None:
    assert constraint_labels(BY_NAME["fused_conv2d"]) == ["C1", "C2", "C3"]


def test_the_name_of_a_base_is_that_of_its_file() -> None:
    assert snake(QuantizedStage) == "quantized"
    assert {spec.name for spec in SPECS.values() if spec.own not in (*OPS, *STAGES.values())} >= {
        "qnn",
        "fused",
        "quantized",
    }


def test_every_op_has_constraints() -> None:
    for op_class in OPS:
        assert any(constraint_labels(one) for one in [op_class, *bases(iter([op_class]))]), op_class
