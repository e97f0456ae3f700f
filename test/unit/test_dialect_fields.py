"""What the base class refuses of every op: counts, attributes that are missing, unknown or ill-typed, wrong types.

Each op is written as in its round-trip test, with one fault; `test/lit/dialect/qnn-invalid.mlir` has one example of
each fault in full.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from op_texts import CONTEXT, Change, assert_refused, example, read

from qdialect.arithmetic.choices import SoftmaxArithmetic
from qdialect.dialect import OPS, ConstantOp, QnnOp
from qdialect.dialect import fields as kinds
from qdialect.dialect.epilogue import EPILOGUE
from qdialect.dialect.fields import OptionalOperandField, VariadicOperandField
from qdialect.dialect.op_base import MAX_ELEMENTS, MAX_VARIADIC
from qdialect.dialect.type_constraints import TypeConstraint
from qdialect.ir._mlir import ir

CHOICE = kinds.choice(SoftmaxArithmetic)
INFINITE, NAN = "0x7FF0000000000000", "0x7FF8000000000000"
WRONG_VALUES = {
    kinds.SCALE.description: ["0.0", "-1.0", "1.0 : f32", "1", "2.0e9", "1.0e-19", f"{INFINITE} : f64", f"{NAN} : f64"],
    kinds.F64.description: ["1.0 : f32", "1", '"1.0"', f"{INFINITE} : f64", f"{NAN} : f64"],
    kinds.I64.description: ["1 : i32", "1 : index", "true", "1 : ui64", "1.0", "array<i64: 1>"],
    kinds.SCALES.description: ["1.0", "array<f64>", "array<f64: 0.0>", "array<f64: -1.0>", "array<f32: 1.0>", "[1.0]"],
    kinds.INTEGERS.description: ["array<i32: 1, 1>", "[1, 1]", "1", "dense<1> : tensor<2xi64>"],
    kinds.BOOL.description: ["1 : i64", "unit", '"true"'],
    kinds.ELEMENTS.description: ["1 : i8", "array<i8: 1>", '"dense"', "sparse<0, 1> : tensor<3xi8>"],
    kinds.TABLE.description: ["dense<0> : tensor<255xi8>", "dense<0> : tensor<256xui8>", "unit", "array<i8: 0>"],
    EPILOGUE.description: ["[]", "{}", "[1]", '["clamp"]', "[{}]", "[{clamp, lut}]", "[{clamp = 1}]", "unit"],
    "one of": ['"elsewhere"', '""', "unit", "0"],
}
ELEMENTS = ("i1", "i8", "si8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "f16", "bf16", "f32", "f64", "index")
with_every_op = pytest.mark.parametrize("op_class", OPS, ids=lambda op_class: op_class.OPERATION_NAME)


def wrong_values(description: str) -> list[str]:
    return WRONG_VALUES["one of" if description.startswith("one of ") else description]


def arity(op_class: type[QnnOp]) -> tuple[int, int, str]:
    """Fewest and most operands of an op, and both in words."""
    fields = op_class.operand_fields
    if any(isinstance(field, VariadicOperandField) for field in fields):
        return 1, MAX_VARIADIC, "1 to 16 operands"
    optional = sum(isinstance(field, OptionalOperandField) for field in fields)
    count = len(fields)
    words = f"{count - 1} or {count}" if optional else str(count)
    return count - optional, count, f"{words} operand{'s' * (count != 1)}"


def wrong_types(constraint: TypeConstraint, text: str) -> Iterator[tuple[str, str]]:
    """Types that break a constraint of which `text` keeps all, each with what it must be."""
    with CONTEXT:
        type_ = ir.RankedTensorType(ir.Type.parse(text))
        extents, element = [f"{extent}x" for extent in type_.shape], str(type_.element_type)
    shape = "".join(extents)
    others = [f"tensor<{shape}{other}>" for other in ELEMENTS if other not in constraint.elements]
    containers = [f"memref<{shape}{element}>", f"vector<{shape}{element}>", f"tensor<*x{element}>", element, "index"]
    extreme = [
        f"tensor<{first}{''.join(extents[1:])}{element}>" for first in ("?x", *["0x"] * (not constraint.may_be_empty))
    ]
    ranks = [f"tensor<1x{shape}{element}>", f"tensor<{''.join(extents[1:])}{element}>"]
    for wrong in [*containers, *others, *extreme * bool(shape), *ranks * (constraint.rank is not None)]:
        yield wrong, str(constraint)
    yield f'tensor<{shape}{element}, "encoding">', f"{constraint} without encoding"
    large = f"tensor<{MAX_ELEMENTS + 1}x{''.join(extents[1:])}{element}>"
    yield large, f"{constraint} with at most {MAX_ELEMENTS} elements"


@with_every_op
def test_the_example_is_accepted(op_class: type[QnnOp]) -> None:
    with read(example(op_class)) as op:
        assert isinstance(op, op_class)


@with_every_op
def test_too_few_and_too_many_operands(op_class: type[QnnOp]) -> None:
    text, (fewest, most, words) = example(op_class), arity(op_class)
    operand = next(iter(text.operands), "tensor<1xi8>")
    for count in {max(fewest - 1, 0), most + 1} - {fewest}:
        broken = replace(text, operands=(text.operands + (operand,) * count)[:count])
        assert_refused(broken, f"must have {words}, but got {count}")


@with_every_op
def test_no_result_and_two(op_class: type[QnnOp]) -> None:
    text = example(op_class)
    for results in ((), text.results * 2):
        assert_refused(replace(text, results=results), f"must have 1 result, but got {len(results)}")


@with_every_op
def test_a_missing_attribute_is_named_with_its_kind(op_class: type[QnnOp]) -> None:
    fields = op_class.attribute_fields
    required = {name: f"'{name}' ({field.kind.description})" for name, field in fields.items() if field.is_required}
    for name, words in required.items():
        assert_refused(example(op_class).without(name), f"must have attribute {words}")
    all_of_them = f"must have attribute{'s' * (len(required) > 1)} {', '.join(required.values())}"
    if required:
        assert_refused(example(op_class).without(*required), all_of_them)


@with_every_op
def test_an_attribute_with_a_default_may_be_left_out(op_class: type[QnnOp]) -> None:
    optional = {name: field.default for name, field in op_class.attribute_fields.items() if not field.is_required}
    for name, default in optional.items():
        text = example(op_class)
        with CONTEXT, ir.Location.unknown():
            written = str(op_class.attribute_fields[name].kind.to_attribute(default))
        if text.attributes.get(name, written) == written:
            with read(text.without(name)) as op:
                assert op.attribute_values()[name] == default


@with_every_op
def test_an_unknown_attribute_is_answered_with_the_known_ones(op_class: type[QnnOp]) -> None:
    known = ", ".join(f"'{name}'" for name in op_class.attribute_fields) or "none"
    text = example(op_class)
    assert_refused(text.with_attributes(bogus="1 : i64"), f"has no attribute 'bogus'; it has {known}")
    two = text.with_attributes(bogus="1 : i64", more="unit")
    assert_refused(two, f"has no attributes 'bogus', 'more'; it has {known}")
    with read(text.with_attributes(**{"other.name": "unit"})) as op:
        assert "other.name" in op.operation.attributes


@with_every_op
def test_an_attribute_of_another_kind_is_told_its_own(op_class: type[QnnOp]) -> None:
    for name, field in op_class.attribute_fields.items():
        for value in wrong_values(field.kind.description):
            with CONTEXT:
                printed = ir.Attribute.parse(value)
            broken = example(op_class).with_attributes(**{name: value})
            assert_refused(broken, f"{name} must be {field.kind.description}, but got {printed}")


@with_every_op
def test_an_operand_of_another_type_is_told_its_own(op_class: type[QnnOp]) -> None:
    text = example(op_class)
    assert len(text.operands) >= len(op_class.operand_fields)
    for index, field in enumerate(op_class.operand_fields):
        for wrong, wanted in wrong_types(field.constraint, text.operands[index]):
            assert_refused(text.with_operand(index, wrong), f"operand '{field.name}' must be {wanted}, but got {wrong}")


@with_every_op
def test_a_result_of_another_type_is_told_its_own(op_class: type[QnnOp]) -> None:
    text, field = example(op_class), op_class.result_fields[0]
    for wrong, wanted in wrong_types(field.constraint, text.results[0]):
        assert_refused(text.with_result(wrong), f"result '{field.name}' must be {wanted}, but got {wrong}")


@with_every_op
def test_a_result_of_another_shape_is_told_its_own(op_class: type[QnnOp]) -> None:
    text = example(op_class)
    (extents, element) = re.findall(r"tensor<((?:\d+x)+)(\w+)>", text.results[0])[0]
    wanted, first = extents.removesuffix("x"), int(extents.partition("x")[0])
    found = wanted.replace(str(first), str(first + 1), 1)
    message = f"result shape must be {wanted}, but got {found}"
    if op_class is ConstantOp:
        message = f"value must be of type tensor<{found}x{element}>, but got {text.results[0]}"
    wrong = f"tensor<{found}x{element}>"
    # A residual has the result's shape.
    assert_refused(Change({"residual": wrong}, wrong).of(op_class, text), message)
