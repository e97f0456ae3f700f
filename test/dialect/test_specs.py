"""What the ops' docstrings claim, their extremes, quantized types and unary functions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import new_class
from typing import Any

import numpy as np
import pytest
from compiled_ops import Attributes
from drawn_graphs import graph
from numpy.typing import NDArray
from op_texts import functions, with_choices

import qdialect
from qdialect import dialect as qnn
from qdialect.arithmetic import activations
from qdialect.arithmetic.expressions import Alpha
from qdialect.dialect import fields as kinds
from qdialect.dialect.fields import F64, attribute
from qdialect.dialect.stages.stage_base import STAGES, QuantizedStage
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.reference.interpreter import run
from qdialect.support.diagnostics import ParseError

LIT = Path(__file__).resolve().parents[1] / "lit"
OP_TESTS, STAGE_TESTS = LIT / "dialect", LIT / "dialect" / "stages"
BY_NAME = {op_class.OPERATION_NAME.removeprefix("qnn."): op_class for op_class in qnn.OPS}
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
    for base in [qnn.QnnOp, *bases(iter(BY_NAME.values()))]:
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
def test_every_label_has_a_negative_test_and_no_test_another_label(key: str) -> None:
    spec = SPECS[key]
    tested = {re.match(rf"{spec.name}_(c\d+)(?:_|$)", function) for function in negative_tests(spec)}
    labels = {match[1].upper() for match in tested if match}
    assert labels == set(constraint_labels(spec.own))


@pytest.mark.parametrize(("key", "function"), list(labelled_tests()))
def test_the_constraint_that_fires_is_the_one_named(key: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fired: list[str] = []
    original = qnn.ConstraintError.__init__

    def record(self: qnn.ConstraintError, label: str, message: str) -> None:
        fired.append(label)
        original(self, label, message)

    monkeypatch.setattr(qnn.ConstraintError, "__init__", record)
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


def test_every_file_tests_an_op_or_a_stage() -> None:
    round_trips = {OP_TESTS / f"{name}.mlir" for name in BY_NAME}
    found = set(OP_TESTS.rglob("*.mlir"))
    assert round_trips <= found
    assert found <= round_trips | {spec.path for spec in SPECS.values()}


# What the verifier accepts has a meaning: extreme parameters run through the reference without a warning.

SCALES = (kinds.SMALLEST_SCALE, 1e-9, 1 / 256, 0.5, 1.0, kinds.LARGEST_SCALE, 5e-324)
F32_VALUES = (0.0, -1.0, 0.01, 2.0**30, 1e308)
FLOAT = r"-?\d\.\d+[eE][+-]\d+"
FLOATS = re.compile(rf"(\w+) = (?:array<f64: )?{FLOAT}(?:, {FLOAT})*")
POINTS = re.compile(r"zero_points? = (?:array<i64: )?[-\d, ]+")


def with_extremes(text: str, rng: np.random.Generator) -> str:
    """The text with half of its scales, other floats, zero points and flags replaced."""
    points = ELEMENT_RANGES["ui8" if "ui8" in text else "i8"]

    def changed(pattern: str, values: Sequence[int] | Sequence[str], where: str) -> str:
        return re.sub(pattern, lambda old: str(rng.choice(values)) if rng.random() < 0.5 else old[0], where)

    def floats(match: re.Match[str]) -> str:
        values = SCALES if "scale" in match[1] else F32_VALUES
        return changed(FLOAT, [f"{value:.17e}" for value in values], match[0])

    text = POINTS.sub(lambda match: changed(r"-?\b\d+", points, match[0]), FLOATS.sub(floats, text))
    return changed(r"\b(?:true|false)\b", ["true", "false"], text)


def extreme_array(type_: ir.Type) -> NDArray[Any]:
    dtype = NUMPY_DTYPES[element_of(type_)]
    if dtype.kind == "f":
        values = [0.0, 1e38, -1e38, np.nan, np.inf, -np.inf, 1e-45, 0.5]
    elif dtype.kind == "b":
        values = [False, True]
    else:
        limits = np.iinfo(dtype.name)
        values = [limits.min, limits.max, 0, 1]
    return np.resize(np.array(values, dtype), [size if size > 0 else 2 for size in shape_of(type_)])


def accepted(text: str) -> ir.Module | None:
    """The module if the verifier has nothing to say; it never fails itself."""
    try:
        return parse(text)
    except ParseError as error:
        message = str(error)
    assert "cannot be verified" not in message
    return None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", BY_NAME)
def test_accepted_ops_run(name: str) -> None:
    rng, runs = np.random.default_rng(0), 0
    for _, module in functions((OP_TESTS / f"{name}.mlir").read_text()):
        for text in (*[str(module)] * 6, *(str(variant) for variant in with_choices(module) for _ in range(2))):
            extreme = accepted(with_extremes(text, rng))
            if extreme is not None:
                arguments = extreme.body.operations[0].regions[0].blocks[0].arguments
                run(extreme, [extreme_array(argument.type) for argument in arguments])
                runs += 1
    assert runs > 0


# `!quant.uniform` types and back: the same module, whatever its ops know of their quantization.

TO, FROM = "qnn-to-quant-types", "qnn-from-quant-types"


def check_round_trip(module: ir.Module) -> str:
    """There and back, through text too, is where it began; returns the text with types."""
    before = str(module)
    qdialect.PassManager.parse(TO).run(module)
    typed = str(module)
    again = qdialect.parse(typed)
    qdialect.PassManager.parse(FROM).run(again)
    assert str(again) == before
    return typed


@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "ui16", "i32"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("scales", [(0.047058823529411764,), (0.1, 2.0**-100, 3e5)])
def test_quantize_and_dequantize(element: str, axis: int, scales: tuple[float, ...]) -> None:
    points = tuple(range(1, len(scales) + 1))

    def body(x: ir.Value) -> ir.Value:
        where: Attributes = {"scales": scales, "zero_points": points, "axis": axis}
        how: Attributes = {"rounding": "half_away", "scaling": "reciprocal", "nan": "min"}
        quantized = qnn.build(qnn.QuantizeOp, x, element=element, **where, **how).output
        return qnn.build(qnn.DequantizeOp, quantized, element="f32", **where).output

    typed = check_round_trip(graph(["tensor<3x3xf32>"], body))
    assert "quant.qcast" in typed
    assert "quant.dcast" in typed
    assert "qnn.quantize" not in typed


def interface(element: str, attributes: str) -> str:
    return f"""
    func.func @main(%x: tensor<4x{element}> {attributes}) -> (tensor<4x{element}> {attributes}) {{
      return %x : tensor<4x{element}>
    }}
    """


@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "ui16", "i32"])
def test_interfaces(element: str) -> None:
    known = '{qnn.name = "image", qnn.scale = 0.047058823529411764 : f64, qnn.zero_point = 3 : i64}'
    storage = f"u{element[2:]}" if element.startswith("u") else element
    typed = check_round_trip(qdialect.parse(interface(element, known)))
    assert f"%arg0: tensor<4x!quant.uniform<{storage}:f32, 0.047058823529411764:3>>" in typed


# Unary ops: a class without a function, or with a parameter that nothing gives, is an error where it is defined.


def defined(attributes: dict[str, Any], **keywords: Any) -> type[qnn.UnaryOp]:
    """A class statement, as it would be written."""
    return new_class("OtherOp", (qnn.UnaryOp,), keywords, lambda body: body.update(attributes))


def test_a_unary_op_must_have_a_function() -> None:
    with pytest.raises(TypeError, match="'function'"):
        defined({}, name="other")


def test_a_parameter_must_be_an_attribute() -> None:
    with pytest.raises(TypeError, match="OtherOp must have the attribute alpha if and only if its function has"):
        defined({}, name="other", function=activations.elu(Alpha()))
    with pytest.raises(TypeError, match="OtherOp must have the attribute alpha if and only if its function has"):
        defined({"alpha": attribute(F64)}, name="other", function=activations.relu)


def test_refused_classes_are_no_ops() -> None:
    assert {op_class.OPERATION_NAME for op_class in qnn.OPS}.isdisjoint({"qnn.other"})
    assert all(issubclass(op_class, qnn.UnaryOp) for op_class in qnn.UNARY_OPS)
