"""Fields, attributes, constants and type constraints: what every op refuses."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray
from op_texts import CONTEXT, Change, assert_refused, example, read

from qdialect.arithmetic import Rounding
from qdialect.dialect import OPS, ConstantOp, QnnOp
from qdialect.dialect import fields as kinds
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.contraction_ops import EPILOGUE
from qdialect.dialect.fields import OptionalOperandField, VariadicOperandField
from qdialect.dialect.op_base import MAX_ELEMENTS, MAX_VARIADIC
from qdialect.dialect.type_constraints import NUMPY_DTYPES, TypeConstraint, element_of, range_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import scalar_type

INFINITE, NAN = "0x7FF0000000000000", "0x7FF8000000000000"
WRONG_VALUES = {
    kinds.SCALE.description: ["0.0", "-1.0", "1.0 : f32", "1", "2.0e9", "1.0e-19", f"{INFINITE} : f64", f"{NAN} : f64"],
    kinds.F64.description: ["1.0 : f32", "1", '"1.0"', f"{INFINITE} : f64", "0xFFF8000000000000 : f64"],
    kinds.I64.description: ["1 : i32", "1 : index", "true", "1 : ui64", "1.0", "array<i64: 1>"],
    kinds.SCALES.description: [
        "1.0",
        "array<f64>",
        "array<f64: 0.0>",
        "array<f64: -1.0>",
        "array<f32: 1.0>",
        f"array<f64: {NAN}>",
    ],
    kinds.INTEGERS.description: ["array<i32: 1, 1>", "[1, 1]", "1", "dense<1> : tensor<2xi64>"],
    kinds.BOOL.description: ["1 : i64", "unit", '"true"'],
    kinds.ELEMENTS.description: ["1 : i8", "array<i8: 1>", '"dense"', "sparse<0, 1> : tensor<3xi8>"],
    kinds.TABLE.description: [
        "dense<0> : tensor<255xi8>",
        "dense<0> : tensor<256xui8>",
        "unit",
        "dense<0> : vector<256xi8>",
    ],
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


# Every kind of attribute: values survive the attribute, what is no such value is told so.

INT64 = st.integers(-(2**63), 2**63 - 1)
EXACT: dict[str, tuple[kinds.AttributeKind[Any], st.SearchStrategy[Any]]] = {
    "scale": (kinds.SCALE, st.floats(kinds.SMALLEST_SCALE, kinds.LARGEST_SCALE)),
    "float32 scale": (kinds.SCALE, st.floats(width=32, min_value=2.0**-60, max_value=2.0**30)),
    "scales": (
        kinds.SCALES,
        st.lists(st.floats(0.0, kinds.LARGEST_SCALE, exclude_min=True), min_size=1, max_size=5).map(tuple),
    ),
    "float": (kinds.F64, st.floats(allow_nan=False, allow_infinity=False)),
    "integer": (kinds.I64, INT64),
    "integers": (kinds.INTEGERS, st.lists(INT64, max_size=5).map(tuple)),
    "table": (kinds.TABLE, npst.arrays(np.uint8, 256)),
    "table of one entry": (kinds.TABLE, st.integers(0, 255).map(lambda entry: np.full(256, entry, np.uint8))),
    "bool": (kinds.BOOL, st.booleans()),
    "choice": (kinds.choice(Rounding), st.sampled_from(Rounding)),
    "element type": (kinds.ELEMENT_TYPE, st.sampled_from(["i8", "ui8"])),
}


@pytest.mark.parametrize("name", EXACT)
@given(st.data())
def test_values_survive_the_attribute(name: str, data: st.DataObject) -> None:
    kind, values = EXACT[name]
    value = data.draw(values)
    with CONTEXT, ir.Location.unknown():
        attr = ir.Attribute.parse(str(kind.to_attribute(value)))
        assert kind.problem(attr) is None
        found = kind.from_attribute(attr)
    assert type(found) is type(value)
    # Zeros of both signs differ.
    assert repr(found) == repr(value)
    np.testing.assert_array_equal(found, value)


# Constants: from an array to an op, through text, and back, bit for bit.

DTYPES = [dtype for name, dtype in NUMPY_DTYPES.items() if name != "bf16"]
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=4, max_side=4))
)


def through_text(array: NDArray[Any]) -> NDArray[Any]:
    """The array after it was a constant, text, and a constant again."""
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            direct = constant_value(constant(array))
    assert direct is not None
    assert direct.tobytes() == array.tobytes()
    return value_of(str(module))


def constant_of(text: str) -> NDArray[Any] | None:
    # An op does not keep its module alive: the module needs a name for as long as the op is used.
    module = parse(text, CONTEXT)
    return constant_value(module.body.operations[0].operation.results[0])


def value_of(text: str) -> NDArray[Any]:
    value = constant_of(text)
    assert value is not None
    return value


def assert_same(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()


@given(ARRAYS)
def test_any_array_is_exact(array: NDArray[Any]) -> None:
    if array.dtype.kind == "f":
        # Text keeps a NaN, but not which one of them it is.
        array = np.where(np.isnan(array), np.float32(np.nan), array)
    assert_same(through_text(array), array)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3, 4)], ids=str)
def test_a_splat_is_exact(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    known = {"f": [0.5, -np.inf], "b": [False, True]}.get(dtype.kind)
    for value in known or [np.iinfo(dtype.name).min, np.iinfo(dtype.name).max]:
        array = np.full(shape, value, dtype)
        assert_same(through_text(array), array)


@pytest.mark.parametrize("count", [1, 5, 100, 101, 2**16])
def test_arrays_of_bfloat16_are_exact(count: int) -> None:
    """The bindings give these as text alone; NaN stays, but not which one of them it is."""
    dtype = NUMPY_DTYPES["bf16"]
    array = np.linspace(0, 2**16 - 1, count).astype(np.uint16).view(dtype)
    array = np.where(np.isnan(array), np.array(np.nan, dtype), array)
    assert_same(through_text(array), array)
    assert_same(through_text(np.broadcast_to(array[:1], (2, 3))), np.broadcast_to(array[:1], (2, 3)))


def test_a_big_array_is_exact() -> None:
    array = np.random.default_rng(0).integers(-128, 128, (300, 70, 50), np.int8)
    assert_same(through_text(array), array)


def test_the_order_in_memory_does_not_matter() -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    assert_same(through_text(np.asfortranarray(array)), array)
    assert_same(through_text(array.transpose(2, 0, 1)), np.ascontiguousarray(array.transpose(2, 0, 1)))
    assert_same(through_text(array[:, ::-2]), np.ascontiguousarray(array[:, ::-2]))


def test_arrays_that_are_read_cannot_be_written() -> None:
    for array in (np.arange(3, dtype=np.int8), np.zeros(3, np.int8)):
        assert not through_text(array).flags.writeable


def test_upstreams_constant_is_read() -> None:
    assert_same(value_of("%0 = arith.constant dense<[1, -2]> : tensor<2xi8>"), np.array([1, -2], np.int8))
    assert_same(value_of("%0 = arith.constant dense<5> : tensor<2x2xi32>"), np.full((2, 2), 5, np.int32))


@pytest.mark.parametrize(
    "text",
    [
        "%0 = arith.constant 5 : i8",
        "%0 = arith.constant dense<5> : vector<4xi8>",
        "%0 = arith.constant dense<1.0> : tensor<4xf64>",
        "%0 = arith.constant dense<[1, 2]> : tensor<2xindex>",
        "%0 = arith.constant dense_resource<blob> : tensor<4xi8>",
        "%0 = arith.constant sparse<[[0]], 1> : tensor<4xi8>",
        "%0 = arith.constant dense<0> : tensor<4294967296x4294967296xi8>",
        "%0 = tensor.empty() : tensor<4xi8>",
    ],
)
def test_values_without_an_array_read_as_none(text: str) -> None:
    assert constant_of(text) is None


def test_an_argument_is_no_constant() -> None:
    module = parse("func.func @f(%x: tensor<4xi8>) { return }", CONTEXT)
    assert constant_value(module.body.operations[0].regions[0].blocks[0].arguments[0]) is None


@pytest.mark.parametrize("dtype", [np.float64, np.uint32, np.dtype(">i4")], ids=str)
def test_a_dtype_without_element_type_is_refused(dtype: Any) -> None:
    with CONTEXT, ir.Location.unknown(), pytest.raises(KeyError):
        constant(np.zeros(3, dtype))


# Names of element types, which are read through the bindings, against the text that MLIR prints.

NAMES = ["i1", "i8", "ui8", "si8", "i16", "ui16", "i32", "ui32", "i64", "f32", "f64", "bf16", "index"]


@pytest.mark.parametrize("name", NAMES)
def test_an_element_type_has_the_name_that_is_printed(name: str) -> None:
    with make_context():
        assert element_of(ir.Type.parse(f"tensor<2x3x{name}>")) == name


@pytest.mark.parametrize(("name", "bits"), [("ui8", "i8"), ("ui16", "i16"), ("i8", "i8"), ("i1", "i1"), ("f32", "f32")])
def test_a_kernel_holds_bits_without_a_sign(name: str, bits: str) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @f(%x: tensor<2x{name}>) {{ return }}")
        assert scalar_type(module.body.operations[0].regions[0].blocks[0].arguments[0]) == bits


def test_a_signed_element_is_none_of_ours() -> None:
    with make_context(), pytest.raises(KeyError):
        range_of(ir.Type.parse("tensor<2xsi8>"))
