"""Builders, round trips and stages: defaults, inference, and errors before an op exists."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from drawn_graphs import failures, graph
from op_texts import CONTEXT, Change, assert_refused, example, read
from quantized_layers import fused

import qdialect
from qdialect.arithmetic import Entries, NanPolicy, Rounding
from qdialect.dialect import OPS, ConcatOp, Conv2DOp, FusedDenseOp, LutOp, PadOp, QnnOp, ReluOp, RequantizeOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.movement_ops import SameElementOp
from qdialect.dialect.stages.builtin_stages import ClampStage, LutStage, RequantizeStage
from qdialect.dialect.stages.stage_base import STAGES
from qdialect.dialect.type_constraints import QuantizedType
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse, verify
from qdialect.lowering.qnn_to_linalg.stages.stage_kernel import STAGE_KERNELS
from qdialect.passes.decompose_fused import DecomposeFusedPass
from qdialect.passes.fused_stages import DECOMPOSITIONS
from qdialect.reference.contraction_evaluators import STAGE_EVALUATORS

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
def test_arguments_of_another_kind_are_refused(case: Case) -> None:
    make, message = case
    with pytest.raises(TypeError, match=re.escape(message)):
        make()


# Printing loses nothing and adds nothing: every text of the round-trip tests, every choice, every element type.
#
# Tables are defined for every pair of signednesses (R2), and every rounding (R15) is a choice.

BARE = ir.Context()
BARE.allow_unregistered_dialects = True
# Of these parameters every arithmetic and, where it is `onnx_float`, every way to count takes each.
RESIZED = {"size": "array<i64: 8, 12>", "coordinates": '"half_pixel"', "arithmetic": '"onnx_float"'}
STARTS = {
    "qnn.block_dense": Change({"scales": "tensor<5x1xf32>"}, attributes={"block": "64 : i64"}),
    "qnn.i16_requantize": Change({"input": "tensor<2x3xi32>"}),
    "qnn.resize_bilinear": Change({"input": "tensor<1x4x6x3xui8>"}, "tensor<1x8x12x3xui8>", RESIZED),
}
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
def test_every_choice_is_printed_as_it_is_written(op_class: type[QnnOp]) -> None:
    start = STARTS.get(op_class.OPERATION_NAME, Change()).of(op_class, example(op_class))
    for name, value in choices(op_class):
        text = start.with_attributes(**{name: value})
        with read(text) as op:
            assert f'"{op.attribute_values()[name]}"' == value
        assert_printed_as_written(str(text))


# Every stage of an epilogue is defined, evaluated, lowered and decomposed, each in one file.

# Imported for what they register.


def test_every_stage_is_complete() -> None:
    known = set(STAGES.values())
    assert known == set(STAGE_EVALUATORS)
    assert known == set(DECOMPOSITIONS)
    # A clamp bounds the stage before it.
    assert known == {*STAGE_KERNELS, ClampStage}


def test_a_stage_without_decomposition_is_a_match_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(DECOMPOSITIONS, ClampStage)
    module = graph(["tensor<1x6x7x4xui8>"], lambda x: fused(x, "ui8", ClampStage(min=3, max=9)))
    assert failures(module, DecomposeFusedPass()) == [
        "[decompose-fused] 'qnn.fused_conv2d' has a stage 'clamp' that stands for no ops"
    ]


# How the dialect is extended, and ops that keep the element type.


@pytest.mark.parametrize(
    "op_class",
    [op_class for op_class in OPS if issubclass(op_class, SameElementOp)],
    ids=lambda op_class: op_class.OPERATION_NAME,
)
def test_the_element_type_stays(op_class: type[QnnOp]) -> None:
    text = example(op_class)
    with CONTEXT:
        element = str(ir.RankedTensorType(ir.Type.parse(text.results[0])).element_type)
    for other in set(op_class.result_fields[0].constraint.elements) - {element}:
        broken = text.with_result(text.results[0].replace(f"{element}>", f"{other}>"))
        assert_refused(broken, f"result element type must be {element}, but got {other}")


# What a user writes: a pass and a pattern of one's own, in ten lines each.

MODULE = """\
func.func @f(%x: tensor<2x4xi8>) -> tensor<2x4xi8> {
  %0 = "qnn.requantize"(%x) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 1>,
    output_scale = 0.5 : f64, output_zero_point = 2 : i64, axis = 0 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x4xi8>) -> tensor<2x4xi8>
  return %0 : tensor<2x4xi8>
}
"""


@qdialect.register_pass
class CountOps(qdialect.Pass):
    """Write the number of ops of each function on it."""

    name = "count-ops"

    def run(self, module: ir.Module) -> None:
        for function in module.body.operations:
            count = len(list(function.regions[0].blocks[0].operations))
            function.attributes["test.ops"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)


class NearestRounding(qdialect.Pattern[str]):
    """Replace one rounding of requantize by another."""

    name = "nearest-rounding"
    roots = ("qnn.requantize",)

    def check(self, op: RequantizeOp) -> str:
        wanted = "fixed64_nearest"
        if op.rounding == wanted:
            raise qdialect.MatchFailure(f"rounds as {wanted} already")
        return wanted

    def rewrite(self, op: RequantizeOp, match: str, rewriter: qdialect.Rewriter) -> None:
        with rewriter.before(op):
            attributes: dict[str, Any] = {**op.attribute_values(), "rounding": match}
            changed = qdialect.build(RequantizeOp, op.input, element="i8", **attributes)
        rewriter.replace(op, changed.output)


@qdialect.register_pass
class NearestRoundingPass(qdialect.PatternPass):
    """Round every requantize to nearest."""

    name = "nearest-rounding"

    def patterns(self) -> tuple[qdialect.Pattern[Any], ...]:
        return (NearestRounding(),)


def test_a_pass_of_ones_own_runs_among_the_others() -> None:
    module = qdialect.parse(MODULE)
    qdialect.PassManager.parse("builtin.module(cse,count-ops,func.func(canonicalize))").run(module)
    assert "test.ops = 2 : i64" in str(module)


def test_a_pattern_of_ones_own_rewrites_and_says_why_not() -> None:
    module = qdialect.parse(MODULE, file_name="x.mlir")
    with qdialect.explain_matches() as remarks:
        qdialect.PassManager.parse("nearest-rounding").run(module)
    assert 'rounding = "fixed64_nearest"' in str(module)
    assert [(r.line, r.message) for r in remarks] == [
        (2, "[nearest-rounding] 'qnn.requantize' rounds as fixed64_nearest already")
    ]


def test_a_bug_in_a_pattern_is_an_error_that_names_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: NearestRounding, op: RequantizeOp) -> str:
        raise KeyError(op.name)

    monkeypatch.setattr(NearestRounding, "check", broken)
    with pytest.raises(qdialect.PassError, match=r"^nearest-rounding: KeyError: 'qnn.requantize'$"):
        qdialect.PassManager.parse("nearest-rounding").run(qdialect.parse(MODULE))
