"""The builder: defaults, inference, and an error that says what is wrong before an op exists."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from qdialect.arithmetic import Entries, NanPolicy, Rounding
from qdialect.arithmetic.choices import SoftmaxArithmetic
from qdialect.dialect import (
    AddOp,
    ConcatOp,
    ConstraintError,
    Conv2DOp,
    FusedDenseOp,
    LutOp,
    PadOp,
    QuantizeOp,
    ReluOp,
    SoftmaxOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.dialect.stages.builtin_stages import ClampStage, LutStage, RequantizeStage
from qdialect.dialect.type_constraints import QuantizedType
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse, verify
from qdialect.support.diagnostics import VerificationError

PARAMETERS: dict[str, Any] = {"input_scale": 0.5, "input_zero_point": 3, "output_scale": 0.25, "output_zero_point": -4}
CONTRACTION: dict[str, Any] = {"input_scale": 0.5, "input_zero_point": 0, "weight_scales": (0.25,)}
FUSED: dict[str, Any] = {**CONTRACTION, "output_scale": 0.25, "output_zero_point": 0}


def parameters_with(**changes: Any) -> dict[str, Any]:
    return {**PARAMETERS, **changes}


@pytest.fixture
def module() -> Iterator[ir.Module]:
    """An empty module; what a test builds goes into it."""
    with make_context(), ir.Location.unknown():
        built = ir.Module.create()
        with ir.InsertionPoint(built.body):
            yield built


def bytes_of(*shape: int) -> ir.Value:
    return constant(np.zeros(shape, np.int8))


def words_of(*shape: int) -> ir.Value:
    return constant(np.zeros(shape, np.int32))


def test_defaults_are_left_out_and_read_back(module: ir.Module) -> None:
    how: dict[str, Any] = {**parameters_with(output_zero_point=4), "entries": Entries.HALF_AWAY_DIVIDE}
    build(ReluOp, bytes_of(2, 3), element="ui8", **how)
    verify(module)
    text = str(module)
    assert "entries" not in text
    assert "nan" not in text
    again = parse(text)
    assert str(again) == text
    op = again.body.operations[1]
    assert isinstance(op, ReluOp)
    assert op.attribute_values() == {
        **parameters_with(output_zero_point=4),
        "entries": Entries.HALF_AWAY_DIVIDE,
        "nan": NanPolicy.MAX,
    }
    assert str(op.output.type) == "tensor<2x3xui8>"


def test_a_missing_optional_operand_reads_as_none(module: ir.Module) -> None:
    data, weight = bytes_of(1, 2, 2, 1), bytes_of(1, 1, 1, 1)
    without = build(Conv2DOp, data, weight, None, element="i32", **CONTRACTION)
    bias = words_of(1)
    with_bias = build(Conv2DOp, data, weight, bias, element="i32", **CONTRACTION)
    verify(module)
    assert without.bias is None
    assert with_bias.bias == bias
    assert (without.strides, without.padding, without.groups) == ((1, 1), (0, 0, 0, 0), 1)


def test_operands_of_a_concat_may_differ_in_type(module: ir.Module) -> None:
    unsigned = constant(np.zeros((5, 3), np.uint8))
    parameters: dict[str, Any] = {
        "input_scales": (0.5, 0.5),
        "input_zero_points": (0, 0),
        "output_scale": 0.5,
        "output_zero_point": 0,
    }
    op = build(ConcatOp, bytes_of(2, 3), unsigned, element="i8", axis=0, **parameters)
    verify(module)
    assert str(op.output.type) == "tensor<7x3xi8>"
    assert op.inputs == list(op.operation.operands)
    assert str(parse(str(module))) == str(module)


def test_a_table_is_read_as_it_was_written(module: ir.Module) -> None:
    for table in (np.arange(256, dtype=np.uint8)[::-1], np.full(256, 200, np.uint8)):
        op = build(LutOp, bytes_of(4), element="i8", table=table, **PARAMETERS)
        np.testing.assert_array_equal(op.table, table)
        assert op.table.dtype == np.uint8
    verify(module)


def test_what_is_no_default_is_written(module: ir.Module) -> None:
    op = build(ReluOp, bytes_of(2, 3), element="i8", **parameters_with(entries=Entries.HALF_EVEN_DIVIDE))
    verify(module)
    assert 'entries = "half_even_divide"' in str(module)
    assert op.entries is Entries.HALF_EVEN_DIVIDE


def test_a_default_may_be_written(module: ir.Module) -> None:
    build(ReluOp, bytes_of(2, 3), element="i8", **PARAMETERS)
    text = str(module).replace("input_scale", 'nan = "max", input_scale')
    again = parse(text)
    assert str(again) == str(parse(str(again)))
    assert 'nan = "max"' in str(again)


def test_an_epilogue_is_read_as_it_was_written(module: ir.Module) -> None:
    table = np.arange(256, dtype=np.uint8)[::-1]
    epilogue = (
        RequantizeStage(rounding=Rounding.FIXED64_UP, scale=0.5, element="ui8"),
        ClampStage(min=0, max=100),
        LutStage(table=table),
    )
    operands = bytes_of(2, 4), bytes_of(3, 4), words_of(3)
    op = build(FusedDenseOp, *operands, element="i8", epilogue=epilogue, **FUSED)
    verify(module)
    assert op.epilogue == epilogue
    assert op.residual is None
    assert [(one.before, one.after) for one in op.stages()] == [
        (None, QuantizedType(0.5, 0, "ui8")),
        (QuantizedType(0.5, 0, "ui8"), QuantizedType(0.5, 0, "ui8")),
        (QuantizedType(0.5, 0, "ui8"), QuantizedType(0.25, 0, "i8")),
    ]
    assert str(parse(str(module))) == str(module)
    other = (*epilogue[:-1], LutStage(table=table[::-1].copy()))
    assert op.epilogue != other


Case = tuple[Callable[[], object], str]

WRONG_KINDS: dict[str, Case] = {
    "no operand": (lambda: build(ReluOp, element="i8", **PARAMETERS), "must have 1 operand, but got 0"),
    "one too many": (
        lambda: build(ReluOp, bytes_of(1), bytes_of(1), element="i8", **PARAMETERS),
        "must have 1 operand, but got 2",
    ),
    "a gap": (
        lambda: build(Conv2DOp, bytes_of(1, 2, 2, 1), None, words_of(1), element="i32", **CONTRACTION),
        "must have 2 or 3 operands, but got 2 with a gap",
    ),
    "no variadic": (lambda: build(ConcatOp, element="i8"), "must have 1 to 16 operands, but got 0"),
    "operand rank": (
        lambda: build(Conv2DOp, bytes_of(4), bytes_of(4), element="i32", **CONTRACTION),
        "operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<4xi8>",
    ),
    "operand type": (
        lambda: build(ReluOp, words_of(4), element="i8", **PARAMETERS),
        "operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<4xi32>",
    ),
    "result type": (
        lambda: build(ReluOp, bytes_of(4), element="f32", **PARAMETERS),
        "result 'output' must be a non-empty static tensor of i8 or ui8, but got tensor<4xf32>",
    ),
    "result size": (
        lambda: build(PadOp, bytes_of(4), element="i8", low=(2**63 - 1,), high=(2**63 - 1,), value=0),
        "with at most 2147483647 elements",
    ),
    "unknown attribute": (
        lambda: build(ReluOp, bytes_of(4), element="i8", slope=1, **PARAMETERS),
        "'qnn.relu' has no attribute 'slope'",
    ),
    "missing attributes": (
        lambda: build(ReluOp, bytes_of(4), element="i8", input_scale=1.0, output_scale=1.0),
        "'qnn.relu' needs attribute 'input_zero_point', 'output_zero_point'",
    ),
    "text for a number": (
        lambda: build(ReluOp, bytes_of(4), element="i8", **parameters_with(input_scale="wide")),
        "input_scale must be an f64 in [2^-60, 2^30], but got 'wide'",
    ),
    "a negative scale": (
        lambda: build(ReluOp, bytes_of(4), element="i8", **parameters_with(input_scale=-1.0)),
        "input_scale must be an f64 in [2^-60, 2^30], but got -1.000000e+00 : f64",
    ),
    "a fraction for an integer": (
        lambda: build(ReluOp, bytes_of(4), element="i8", **parameters_with(input_zero_point=0.5)),
        "input_zero_point must be an i64, but got 0.5",
    ),
    "a huge integer": (
        lambda: build(ReluOp, bytes_of(4), element="i8", **parameters_with(input_zero_point=2**64)),
        "input_zero_point must be an i64, but got 18446744073709551616",
    ),
    "an unknown choice": (
        lambda: build(ReluOp, bytes_of(4), element="i8", nan="least", **PARAMETERS),
        'nan must be one of "max", "min", "zero_point", "zero", but got "least"',
    ),
    "a short table": (
        lambda: build(LutOp, bytes_of(4), element="i8", table=np.zeros(10, np.uint8), **PARAMETERS),
        "table must be a dense tensor<256xi8>",
    ),
    "a wide table": (
        lambda: build(LutOp, bytes_of(4), element="i8", table=np.zeros(256, np.int64), **PARAMETERS),
        "table must be a dense tensor<256xi8>",
    ),
}


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("case", WRONG_KINDS.values(), ids=WRONG_KINDS)
def test_what_is_not_of_the_declared_kind_is_refused(case: Case) -> None:
    make, message = case
    with pytest.raises(TypeError, match=re.escape(message)):
        make()


@pytest.mark.usefixtures("module")
def test_shapes_without_meaning_name_their_constraint() -> None:
    values: dict[str, Any] = {"scale": 0.25, "zero_point": 0, "min": -128, "max": 127}
    parameters = {f"{side}_{key}": value for side in ("lhs", "rhs", "output") for key, value in values.items()}
    kept = {key: value for key, value in parameters.items() if key in AddOp.attribute_fields}
    with pytest.raises(ConstraintError, match="must broadcast, but got \\[2\\] and \\[3\\]") as caught:
        build(AddOp, bytes_of(2), bytes_of(3), element="i8", **kept)
    assert caught.value.label == "C1"


def test_the_other_constraints_are_the_verifiers(module: ir.Module) -> None:
    build(ReluOp, bytes_of(4), element="i8", **parameters_with(input_zero_point=200))
    with pytest.raises(VerificationError, match="input_zero_point must be in \\[-128, 127\\], but got 200"):
        verify(module)


def test_a_scalar_has_one_channel(module: ir.Module) -> None:
    scalar = constant(np.zeros((), np.float32))
    build(QuantizeOp, scalar, element="i8", scales=(0.5,), zero_points=(0,))
    verify(module)


def test_a_scalar_has_no_axis(module: ir.Module) -> None:
    attributes: dict[str, Any] = {"axis": 0, "input_scale": 0.5, "output_scale": 0.5, "output_zero_point": 0}
    build(SoftmaxOp, bytes_of(), element="i8", arithmetic=SoftmaxArithmetic.FLOAT, **attributes)
    with pytest.raises(VerificationError, match="axis must be in \\[0, 0\\), but got 0"):
        verify(module)
