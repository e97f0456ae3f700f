"""What the ops' docstrings claim, their extremes, quantized types and unary functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import new_class
from typing import Any

import numpy as np
import pytest
from compiled_ops import Attributes
from drawn_graphs import graph
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import qdialect
from qdialect.arithmetic import FloatRounding, activations
from qdialect.arithmetic.expressions import Alpha, has_parameter
from qdialect.dialect import (
    OPS,
    UNARY_OPS,
    ConstantOp,
    ConstraintError,
    DequantizeOp,
    DynamicLstmOp,
    EluOp,
    F32GruOp,
    F32LstmOp,
    F32RnnOp,
    FusedMatMulOp,
    FusedOp,
    MatMulOp,
    QnnOp,
    QuantizeOp,
    ReluOp,
    UnaryOp,
    build,
)
from qdialect.dialect import fields as kinds
from qdialect.dialect.constants import constant
from qdialect.dialect.epilogue import EPILOGUE
from qdialect.dialect.fields import F64, AttributeField, OptionalOperandField, VariadicOperandField, attribute
from qdialect.dialect.stages.stage_base import STAGES, QuantizedStage, Stage, attributes_of
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import make_context, parse, verify
from qdialect.reference.interpreter import run
from qdialect.support.diagnostics import ParseError, VerificationError

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


def test_the_name_of_a_base_is_that_of_its_file() -> None:
    assert snake(QuantizedStage) == "quantized"
    assert {spec.name for spec in SPECS.values() if spec.own not in (*OPS, *STAGES.values())} >= {
        "qnn",
        "fused",
        "quantized",
    }


# What the verifier accepts has a meaning: extreme parameters run through the reference without a warning.

CONTEXT = make_context()
SCALES = (kinds.SMALLEST_SCALE, 1e-9, 1 / 256, 0.5, 1.0, kinds.LARGEST_SCALE)
CHANNEL_SCALES = (*SCALES, 5e-324)
F32_VALUES = (0.0, -1.0, 0.01, 2.0**30, 1e308)
SHAPES = {"weight": (4, 1, 1, 4), "bias": (4,), "matrix": (4, 3), "indices": (3,), "updates": (3, 4, 2, 4)}
GEOMETRY = {
    "axes": (1, 2),
    "begin": (0, 0, 0, 0),
    "dilation": (1, 1),
    "high": (1, 0, 0, 0),
    "indices": (3, 0, 3),
    "kernel": (1, 1),
    "low": (0, 0, 0, 0),
    "output_padding": (0, 0),
    "padding": (0, 0, 0, 0),
    "permutation": (0, 2, 1, 3),
    "shape": (2, 8, 4, 1),
    "size": (2, 4, 2, 4),
    "strides": (1, 1),
}
OWN_GEOMETRY = {
    "qnn.broadcast": {"shape": (3, 2, 4, 2, 4)},
    "qnn.resize_bilinear": {"size": (3, 5)},
    "qnn.resize_nearest": {"size": (3, 5)},
    "qnn.slice": {"strides": (1, 1, 1, 1)},
}
# T = B = 2, H = 4.
OWN_SHAPES = {
    op_class.OPERATION_NAME: {
        "gates": (2, 2, op_class.gate_count * 4),
        "recurrence": (4, op_class.gate_count * 4),
        "initial": (2, op_class.state_count * 4),
        "scales": (op_class.gate_count * 4,),
    }
    for op_class in (DynamicLstmOp, F32GruOp, F32LstmOp, F32RnnOp)
} | {
    "qnn.i16_matmul": {"weight": (4, 3)},
    "qnn.i16_layer_norm": {"weight": (4,)},
    "qnn.block_dense": {"data": (2, 32), "weight": (4, 16), "scales": (4, 2), "zero_points": (4, 1)},
    "qnn.block_dynamic_dense": {"data": (2, 32), "weight": (4, 16), "scales": (4, 2), "zero_points": (4, 1)},
    "qnn.block_gather": {"weight": (4, 16), "scales": (4, 2), "zero_points": (4, 1)},
}
OPS_WITH_PARAMETERS = [op_class for op_class in OPS if op_class is not ConstantOp]


class Case:
    """Draws of one op: its attributes and operands for tensors of one signedness."""

    def __init__(self, draw: st.DataObject, op_class: type[QnnOp], element: str) -> None:
        self.draw = draw
        self.op_class = op_class
        self.element = element
        self.geometry = GEOMETRY | OWN_GEOMETRY.get(op_class.OPERATION_NAME, {})
        self.low, self.high = (-128, 127) if element == "i8" else (0, 255)

    def one_of(self, values: Sequence[Any]) -> Any:
        # A draw takes as long as a verification.
        return values[0] if len(values) == 1 else self.draw.draw(st.sampled_from(values))

    def attributes(self) -> dict[str, Any]:
        return {name: self.value(name, field) for name, field in self.op_class.attribute_fields.items()}

    def value(self, name: str, field: AttributeField[Any]) -> Any:
        kind = field.kind
        per_input = 2 if name in ("input_scales", "input_zero_points") and self.is_variadic else 1
        choices: dict[int, Sequence[Any]] = {
            id(kinds.SCALE): SCALES,
            id(kinds.F64): F32_VALUES,
            id(kinds.SCALES): [(scale,) * per_input for scale in CHANNEL_SCALES],
            id(kinds.BOOL): (False, True),
            id(kinds.TABLE): (np.arange(256, dtype=np.uint8),),
            id(kinds.ELEMENT_TYPE): ("i8", "ui8"),
            id(EPILOGUE): (None,),
            id(kinds.I64): self.integers(name),
            id(kinds.INTEGERS): (self.geometry.get(name, (self.low,) * per_input),),
        }
        texts: Sequence[Any] = re.findall(r'"(\w+)"', kind.description)
        return self.one_of(choices.get(id(kind), texts))

    def epilogue(self, with_residual: bool) -> tuple[Stage, ...]:
        """Stages with drawn attributes, in an order that the verifier may accept."""
        by_f32 = self.one_of((False, True))
        early = by_f32 and with_residual and self.one_of((False, True))
        rounded = ["dequantize", *["sum"] * early, "activation", "quantize"] if by_f32 else ["requantize"]
        after = [] if early or not with_residual else ["add"]
        stages = [self.stage(name) for name in [*rounded, "clamp", *after, *self.one_of(([], ["lut"]))]]
        # What the last of them leaves is the result.
        last = max(index for index, stage in enumerate(stages) if isinstance(stage, QuantizedStage))
        stages[last] = replace(stages[last], scale=None, zero_point=None, element=None)
        return tuple(stages)

    def stage(self, name: str) -> Stage:
        declared = attributes_of(STAGES[name])
        return STAGES[name](**{key: self.value(key, AttributeField(one.kind, None)) for key, one in declared.items()})

    @property
    def is_variadic(self) -> bool:
        return isinstance(self.op_class.operand_fields[0], VariadicOperandField)

    def integers(self, name: str) -> Sequence[int]:
        if name in ("axis", "groups"):
            return (1,)
        if name == "count":
            return (1, 4)
        if name in ("bits", "block", "activation_block"):
            return {"bits": (4,), "block": (16,), "activation_block": (0, 16)}[name]
        if name.endswith(("min", "max")):
            return (self.low,) if name.endswith("min") else (self.high,)
        return (self.low, self.high)

    def operands(self, with_residual: bool) -> list[ir.Value]:
        values: list[ir.Value] = []
        shapes = SHAPES | OWN_SHAPES.get(self.op_class.OPERATION_NAME, {})
        for field in self.op_class.operand_fields:
            if isinstance(field, OptionalOperandField) and not with_residual:
                continue
            elements = field.constraint.elements
            element = self.element if self.element in elements else self.one_of(elements)
            shape = shapes.get(field.name, (2, 4, 2, 4))
            if field.name == "weight" and issubclass(self.op_class, MatMulOp | FusedMatMulOp):
                shape = (4, 4, 4)
            shape = shape if field.constraint.rank != 2 else (shape[0], shape[-1])
            count = 2 if self.is_variadic else 1
            values += [constant(extreme_array(shape, element)) for _ in range(count)]
        return values


def extreme_array(shape: tuple[int, ...], element: str) -> NDArray[Any]:
    dtype = NUMPY_DTYPES[element]
    if dtype.kind == "f":
        values = [0.0, 1e38, -1e38, np.nan, np.inf, -np.inf, 1e-45, 0.5]
    elif dtype.kind == "b":
        values = [False, True]
    else:
        limits = np.iinfo(dtype.name)
        values = [limits.min, limits.max, 0, 1]
    return np.resize(np.array(values, dtype), shape)


def module_of(case: Case) -> ir.Module:
    values = case.attributes()
    with_residual = case.one_of((False, True))
    if issubclass(case.op_class, FusedOp):
        values["epilogue"] = case.epilogue(with_residual)
    elements = case.op_class.result_fields[0].constraint.elements
    element = case.element if case.element in elements else case.one_of(elements)
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ir.FunctionType.get([], []))
        with ir.InsertionPoint(main.add_entry_block()):
            op = build(case.op_class, *case.operands(with_residual), element=element, **values)
            func.ReturnOp([op.operation.results[0]])
        function_type = ir.FunctionType.get([], [op.operation.results[0].type])
        main.attributes["function_type"] = ir.TypeAttr.get(function_type)
    return module


def failure(module: ir.Module) -> str | None:
    """What the verifier says; it never fails itself."""
    try:
        verify(module)
    except VerificationError as error:
        message = str(error)
    else:
        return None
    assert "cannot be verified" not in message
    return message


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("op_class", OPS_WITH_PARAMETERS, ids=lambda op_class: op_class.OPERATION_NAME)
@given(draw=st.data(), element=st.sampled_from(["i8", "ui8"]))
def test_what_is_accepted_runs(op_class: type[QnnOp], draw: st.DataObject, element: str) -> None:
    module = module_of(Case(draw, op_class, element))
    if failure(module) is None:
        run(module, [])


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
        quantized = build(QuantizeOp, x, element=element, **where, **how).output
        return build(DequantizeOp, quantized, element="f32", **where).output

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


def test_a_narrow_storage_range_is_a_clamp() -> None:
    type_ = "tensor<3x!quant.uniform<i8<-127:127>:f32, 0.5:1>>"
    module = qdialect.parse(f"""
    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
      %0 = quant.qcast %x : tensor<3xf32> to {type_}
      %1 = quant.dcast %0 : {type_} to tensor<3xf32>
      return %1 : tensor<3xf32>
    }}
    """)
    qdialect.PassManager.parse(FROM).run(module)
    operations = list(module.body.operations[0].regions[0].blocks[0].operations)
    names = [op.operation.name for op in operations]
    assert names == ["qnn.quantize", "qnn.clip", "qnn.dequantize", "func.return"]
    quantize = operations[0]
    assert isinstance(quantize, QuantizeOp)
    assert quantize.rounding is FloatRounding.HALF_EVEN
    assert "{max = 127 : i64, min = -127 : i64}" in str(module)


# Unary ops: a class without a function, or with a parameter that nothing gives, is an error where it is defined.


def defined(attributes: dict[str, Any], **keywords: Any) -> type[UnaryOp]:
    """A class statement, as it would be written."""
    return new_class("OtherOp", (UnaryOp,), keywords, lambda body: body.update(attributes))


def test_a_unary_op_must_have_a_function() -> None:
    with pytest.raises(TypeError, match="'function'"):
        defined({}, name="other")


def test_a_parameter_must_be_an_attribute() -> None:
    with pytest.raises(TypeError, match="OtherOp must have the attribute alpha if and only if its function has"):
        defined({}, name="other", function=activations.elu(Alpha()))
    with pytest.raises(TypeError, match="OtherOp must have the attribute alpha if and only if its function has"):
        defined({"alpha": attribute(F64)}, name="other", function=activations.relu)


def test_what_was_refused_is_not_an_op() -> None:
    assert {op_class.OPERATION_NAME for op_class in OPS}.isdisjoint({"qnn.other"})
    assert all(issubclass(op_class, UnaryOp) for op_class in UNARY_OPS)


def test_functions_have_a_parameter_where_the_op_has_alpha() -> None:
    assert has_parameter(EluOp.function)
    assert not has_parameter(ReluOp.function)
