"""Printing loses nothing and adds nothing: every text of the round-trip tests, every choice, every element type.

Tables are defined for every pair of signednesses (R2), and every rounding (R15) is a choice.
"""

import re
from itertools import product
from pathlib import Path

import pytest
from op_texts import CONTEXT, Change, OpText, example, read

from qdialect.dialect import OPS, QnnOp
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.unary_ops import EightBitFunction
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse

ROUND_TRIPS = Path(__file__).resolve().parents[1] / "lit" / "dialect"
BARE = ir.Context()
BARE.allow_unregistered_dialects = True
# Of these parameters every arithmetic and, where it is `onnx_float`, every way to count takes each.
RESIZED = {"size": "array<i64: 8, 12>", "coordinates": '"half_pixel"', "arithmetic": '"onnx_float"'}
STARTS = {
    "qnn.i16_requantize": Change({"input": "tensor<2x3xi32>"}),
    "qnn.resize_bilinear": Change({"input": "tensor<1x4x6x3xui8>"}, "tensor<1x8x12x3xui8>", RESIZED),
}
ZERO_POINTS = {"i8": ("-128", "127"), "ui8": ("0", "255")}
with_every_op = pytest.mark.parametrize("op_class", OPS, ids=lambda op_class: op_class.OPERATION_NAME)


def assert_printed_as_written(text: str) -> None:
    """Printed, `text` has the ops, types and attributes that a context without the dialect reads in it."""
    with BARE:
        written = str(ir.Module.parse(text))
        printed = str(ir.Module.parse(str(parse(text, CONTEXT))))
    assert printed == written


def choices(op_class: type[QnnOp]) -> list[tuple[str, str]]:
    """Each value of each attribute that is one of several texts."""
    fields = {name: field.kind.description for name, field in op_class.attribute_fields.items()}
    listed = {name: words for name, words in fields.items() if words.startswith("one of ")}
    return [(name, value) for name, words in listed.items() for value in re.findall(r'"\w+"', words)]


@with_every_op
def test_a_text_is_printed_as_it_is_written(op_class: type[QnnOp]) -> None:
    name = op_class.OPERATION_NAME.removeprefix("qnn.")
    assert_printed_as_written((ROUND_TRIPS / f"{name}.mlir").read_text())


@with_every_op
def test_every_choice_is_printed_as_it_is_written(op_class: type[QnnOp]) -> None:
    start = STARTS.get(op_class.OPERATION_NAME, Change()).of(op_class, example(op_class))
    for name, value in choices(op_class):
        text = start.with_attributes(**{name: value})
        with read(text) as op:
            assert f'"{op.attribute_values()[name]}"' == value
        assert_printed_as_written(str(text))


def assert_accepted(op_class: type[QnnOp], text: OpText) -> None:
    with read(text) as op:
        assert isinstance(op, op_class)
    assert_printed_as_written(str(text))


@pytest.mark.parametrize("shape", ["", "2x3x"])
@pytest.mark.parametrize("op_class", [op for op in OPS if issubclass(op, EightBitFunction)], ids=lambda op: op.__name__)
def test_functions_of_one_tensor_take_every_element_type(op_class: type[QnnOp], shape: str) -> None:
    for before, after, end in product(ZERO_POINTS, ZERO_POINTS, (0, 1)):
        zero_points = {"input_zero_point": ZERO_POINTS[before][end], "output_zero_point": ZERO_POINTS[after][end]}
        change = Change({"input": f"tensor<{shape}{before}>"}, f"tensor<{shape}{after}>", zero_points)
        assert_accepted(op_class, change.of(op_class, example(op_class)))


@pytest.mark.parametrize("op_class", [op for op in OPS if issubclass(op, BinaryOp)], ids=lambda op: op.__name__)
def test_ops_of_two_tensors_take_every_element_type(op_class: type[QnnOp]) -> None:
    shapes = [("2x3x", "2x3x", "2x3x"), ("2x1x3x", "4x1x", "2x4x3x"), ("", "2x", "2x"), ("", "", "")]
    for (lhs, rhs, output), elements in product(shapes, product(ZERO_POINTS, repeat=3)):
        low, high = ZERO_POINTS[elements[2]]
        ends = zip(("lhs", "rhs", "output"), elements, strict=True)
        zero_points = {f"{name}_zero_point": ZERO_POINTS[element][1] for name, element in ends}
        operands = {"lhs": f"tensor<{lhs}{elements[0]}>", "rhs": f"tensor<{rhs}{elements[1]}>"}
        attributes = {**zero_points, "output_min": low, "output_max": high}
        change = Change(operands, f"tensor<{output}{elements[2]}>", attributes)
        assert_accepted(op_class, change.of(op_class, example(op_class)))
