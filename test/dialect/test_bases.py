"""Constraints of base classes over all ops that have them, and how the dialect is extended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from op_texts import CONTEXT, Change, assert_refused, example, read

import qdialect
from qdialect.dialect import (
    OPS,
    ConstraintError,
    Conv2DOp,
    ConvTranspose2DOp,
    DenseOp,
    F32Conv2DOp,
    FusedConv2DOp,
    FusedConvTranspose2DOp,
    FusedDenseOp,
    FusedMatMulOp,
    MatMulOp,
    QnnOp,
    RequantizeOp,
)
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.f32_ops import F32ReduceOp
from qdialect.dialect.movement_ops import SameElementOp
from qdialect.dialect.pool_ops import PoolOp
from qdialect.dialect.recurrent_ops import F32RecurrentOp
from qdialect.dialect.reduction_ops import ArgOp, IntegerReduceOp, RescaledReductionOp, SameTypeReduceOp
from qdialect.dialect.resize_ops import ResizeOp
from qdialect.dialect.unary_ops import EightBitFunction
from qdialect.ir._mlir import ir


@dataclass(frozen=True)
class Fault:
    """What breaks the constraint `label`, and what the verifier says of it."""

    label: str
    message: str
    change: Change


@dataclass(frozen=True)
class Family:
    """Ops with the same faults, after a change of their examples that makes them alike."""

    ops: tuple[type[QnnOp], ...]
    start: Change
    faults: tuple[Fault, ...]


def ops_of(base: type[QnnOp]) -> tuple[type[QnnOp], ...]:
    return tuple(op_class for op_class in OPS if issubclass(op_class, base))


def attributes(label: str, message: str, **values: str) -> Fault:
    """A fault of attributes alone."""
    return Fault(label, message, Change(attributes=values))


def zero_point_faults(label: str, operands: tuple[str, ...], shape: str) -> Iterator[Fault]:
    """Zero points beyond both ends of both 8-bit types; that of a tensor is named after it."""
    for name in (*operands, "output"):
        for element, low, high in (("i8", -128, 127), ("ui8", 0, 255)):
            type_ = f"tensor<{shape}x{element}>"
            retyped = {} if name == "output" else {name: type_}
            for value in (low - 1, high + 1):
                message = f"{name}_zero_point must be in [{low}, {high}], but got {value}"
                written = {f"{name}_zero_point": f"{value} : i64"}
                yield Fault(label, message, Change(retyped, None if retyped else type_, written))


def clamp_faults(label: str) -> Iterator[Fault]:
    """Bounds out of order, and out of the range of `i8` at either end."""
    for low, high in ((10, 9), (-129, 127), (-128, 128)):
        message = f"output_min and output_max must be ordered and in [-128, 127], but got {low} and {high}"
        yield attributes(label, message, output_min=f"{low} : i64", output_max=f"{high} : i64")


def axes_faults(label: str, element: str) -> Iterator[Fault]:
    """Axes of an input with three dimensions that are out of range, out of order, double or not there; a scalar's."""
    for axes in ([3], [-1], [2, 1], [1, 1], []):
        written = f"array<i64: {', '.join(map(str, axes))}>" if axes else "array<i64>"
        yield attributes(label, f"axes must be distinct, ascending and in [0, 3), but got {axes}", axes=written)
    scalar = Change({"input": f"tensor<{element}>"})
    yield Fault(label, "axes must be distinct, ascending and in [0, 0), but got [1]", scalar)


def unsigned_weight(shape: str) -> Fault:
    """A zero point of an `i8` weight in an `ui8` one."""
    change = Change({"weight": f"tensor<{shape}xui8>"}, None, {"weight_zero_points": "array<i64: -1>"})
    return Fault("C5", "weight_zero_points must be in [0, 255], but got -1", change)


def list_faults(label: str, name: str, count: int, minimum: int, lists: tuple[list[int], ...]) -> Iterator[Fault]:
    """Lists of another length, or with an entry that is too small."""
    for values in lists:
        message = f"{name} must be {count} integers of at least {minimum}, but got {values}"
        yield attributes(label, message, **{name: f"array<i64: {', '.join(map(str, values))}>"})


PAIRS = ([0, 1], [1, -1], [1, 1, 1], [2])
BORDERS = ([0, 0, -1, 0], [1, 1], [0, 0, 0, 0, 0])

UNARY = Family(
    ops_of(EightBitFunction),
    Change({"input": "tensor<2x3xi8>"}, "tensor<2x3xi8>", {"input_zero_point": "0", "output_zero_point": "0"}),
    tuple(zero_point_faults("C1", ("input",), "2x3")),
)
BINARY = Family(
    ops_of(BinaryOp),
    Change(
        {"lhs": "tensor<2x3xi8>", "rhs": "tensor<2x3xi8>"},
        "tensor<2x3xi8>",
        {
            **{f"{name}_zero_point": "0" for name in ("lhs", "rhs", "output")},
            "output_min": "-128 : i64",
            "output_max": "127 : i64",
        },
    ),
    (
        Fault("C1", "operand shapes must broadcast, but got [2, 3] and [2, 4]", Change({"rhs": "tensor<2x4xi8>"})),
        Fault("C1", "operand shapes must broadcast, but got [4, 1, 2] and [2, 3]", Change({"lhs": "tensor<4x1x2xi8>"})),
        *zero_point_faults("C2", ("lhs", "rhs"), "2x3"),
        *clamp_faults("C3"),
        Fault(
            "C3",
            "output_min and output_max must be ordered and in [0, 255], but got -128 and 127",
            Change(result="tensor<2x3xui8>"),
        ),
    ),
)
WINDOW = {"kernel": "array<i64: 2, 2>", "strides": "array<i64: 1, 1>", "padding": "array<i64: 0, 0, 0, 0>"}
POOL = Family(
    ops_of(PoolOp),
    Change(
        {"data": "tensor<1x4x4x2xi8>"},
        "tensor<1x3x3x2xi8>",
        {**WINDOW, "output_min": "-128 : i64", "output_max": "127 : i64"},
    ),
    (
        *list_faults("C1", "kernel", 2, 1, PAIRS),
        *list_faults("C1", "strides", 2, 1, PAIRS),
        *list_faults("C1", "padding", 4, 0, BORDERS),
        attributes("C2", "input height must be at least 5 with padding, but got 4", kernel="array<i64: 5, 2>"),
        attributes("C2", "input width must be at least 5 with padding, but got 4", kernel="array<i64: 2, 5>"),
        *(
            attributes(
                "C2",
                f"padding must be smaller than the kernel [2, 2], but got {padding}",
                padding=f"array<i64: {', '.join(map(str, padding))}>",
            )
            for padding in ([2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2])
        ),
        Fault("C3", "result element type must be i8, but got ui8", Change(result="tensor<1x3x3x2xui8>")),
        *clamp_faults("C4"),
    ),
)
CUBE, PLANE = "tensor<2x3x4xi8>", "tensor<2x4xi8>"
OVER_AXES = {"axes": "array<i64: 1>", "keep_dims": "false"}
RESCALED = Family(
    ops_of(RescaledReductionOp),
    Change({"input": CUBE}, PLANE, {**OVER_AXES, "input_zero_point": "0", "output_zero_point": "0"}),
    (*axes_faults("C1", "i8"), *zero_point_faults("C2", (), "2x4"), *zero_point_faults("C2", ("input",), "2x3x4")),
)
ARG = Family(
    ops_of(ArgOp),
    Change({"input": CUBE}, "tensor<2x4xi32>", {"axis": "1 : i64", "keep_dims": "false"}),
    (
        attributes("C1", "axis must be in [0, 3), but got 3", axis="3 : i64"),
        attributes("C1", "axis must be in [0, 3), but got -1", axis="-1 : i64"),
        Fault("C1", "axis must be in [0, 0), but got 1", Change({"input": "tensor<i8>"})),
    ),
)
EXTREME = Family(
    tuple(op_class for op_class in ops_of(SameTypeReduceOp) if not issubclass(op_class, IntegerReduceOp)),
    Change({"input": CUBE}, PLANE, OVER_AXES),
    (
        *axes_faults("C1", "i8"),
        Fault("C2", "result element type must be i8, but got ui8", Change(result="tensor<2x4xui8>")),
    ),
)
F32_REDUCE = Family(
    ops_of(F32ReduceOp),
    Change({"input": "tensor<2x3x4xf32>"}, "tensor<2x4xf32>", OVER_AXES),
    tuple(axes_faults("C1", "f32")),
)
F32_RECURRENT = Family(
    ops_of(F32RecurrentOp), Change(), (attributes("C3", "clip must be at least 0, but got -1.0", clip="-1.0 : f64"),)
)
INTEGER_REDUCE = Family(
    ops_of(IntegerReduceOp),
    Change({"input": "tensor<2x3x4xi64>"}, "tensor<2x4xi64>", OVER_AXES),
    (
        *axes_faults("C1", "i64"),
        Fault("C2", "result element type must be i64, but got i32", Change(result="tensor<2x4xi32>")),
    ),
)
RESIZE = Family(ops_of(ResizeOp), Change(), tuple(list_faults("C2", "size", 2, 1, PAIRS)))

ONE_SCALE = {"input_zero_point": "0 : i64", "weight_scales": "array<f64: 0.25>", "weight_zero_points": "array<i64: 0>"}
CONTRACTION_FAULTS = (
    attributes("C4", "weight_scales must have 1 or 3 entries, but got 2", weight_scales="array<f64: 0.5, 0.5>"),
    attributes("C4", "weight_zero_points must have 1 or 3 entries, but got 2", weight_zero_points="array<i64: 0, 0>"),
    attributes("C4", "weight_zero_points must have 1 or 3 entries, but got 0", weight_zero_points="array<i64>"),
    attributes("C5", "input_zero_point must be in [0, 255], but got -1", input_zero_point="-1 : i64"),
    attributes("C5", "input_zero_point must be in [0, 255], but got 256", input_zero_point="256 : i64"),
    attributes("C5", "weight_zero_points must be in [-128, 127], but got -129", weight_zero_points="array<i64: -129>"),
    attributes(
        "C5", "weight_zero_points must be in [-128, 127], but got 128", weight_zero_points="array<i64: 0, 0, 128>"
    ),
    Fault("C6", "bias must have 3 entries, but got 4", Change({"bias": "tensor<4xi32>"})),
)
ROWS = {"data": "tensor<2x4xui8>", "bias": "tensor<3xi32>", "residual": "tensor<2x3xi8>"}
DENSE = Family(
    (DenseOp, FusedDenseOp),
    Change({**ROWS, "weight": "tensor<3x4xi8>"}, None, ONE_SCALE),
    (
        Fault("C1", "weight depth must be 4, but got 5", Change({"weight": "tensor<3x5xi8>"})),
        Fault("C1", "data must have at least 1 dimension, but got 0", Change({"data": "tensor<ui8>"})),
        *CONTRACTION_FAULTS,
        unsigned_weight("3x4"),
    ),
)
MATMUL = Family(
    (MatMulOp, FusedMatMulOp),
    Change({**ROWS, "weight": "tensor<4x3xi8>"}, None, ONE_SCALE),
    (
        Fault("C1", "data must have at least 2 dimensions, but got 1", Change({"data": "tensor<4xui8>"})),
        Fault("C1", "weight must have at least 2 dimensions, but got 1", Change({"weight": "tensor<4xi8>"})),
        Fault("C2", "weight depth must be 4, but got 5", Change({"weight": "tensor<5x3xi8>"})),
        Fault(
            "C3",
            "leading dimensions must broadcast, but got [2] and [3]",
            Change({"data": "tensor<2x2x4xui8>", "weight": "tensor<3x4x3xi8>"}),
        ),
        *CONTRACTION_FAULTS,
        unsigned_weight("4x3"),
    ),
)
WINDOWS = {"strides": "array<i64: 1, 1>", "dilation": "array<i64: 1, 1>", "groups": "1 : i64"}
GEOMETRY_FAULTS = (
    *list_faults("C1", "strides", 2, 1, PAIRS),
    *list_faults("C1", "dilation", 2, 1, PAIRS),
    attributes("C2", "groups must be at least 1, but got 0", groups="0 : i64"),
    attributes("C2", "groups must be at least 1, but got -1", groups="-1 : i64"),
    attributes("C2", "groups must divide 2 input and 3 output channels, but got 2", groups="2 : i64"),
    attributes("C2", "groups must divide 2 input and 3 output channels, but got 3", groups="3 : i64"),
)
SHORT = Fault("C2", "weight depth must be 2, but got 1", Change({"weight": "tensor<3x2x2x1xi8>"}))
FITTING_FAULTS = (
    attributes("C3", "input height must be at least 5 with padding, but got 4", dilation="array<i64: 4, 1>"),
    attributes("C3", "input width must be at least 6 with padding, but got 4", dilation="array<i64: 1, 5>"),
    attributes(
        "C3",
        "input height must be at least 9223372036854775808 with padding, but got 4",
        dilation="array<i64: 9223372036854775807, 1>",
    ),
)
IMAGES = {
    "data": "tensor<1x4x4x2xui8>",
    "weight": "tensor<3x2x2x2xi8>",
    "bias": "tensor<3xi32>",
    "residual": "tensor<1x3x3x3xi8>",
}
PADDED = {**WINDOWS, "padding": "array<i64: 0, 0, 0, 0>"}
CONV = Family(
    (Conv2DOp, FusedConv2DOp),
    Change(IMAGES, None, {**ONE_SCALE, **PADDED}),
    (
        *GEOMETRY_FAULTS,
        SHORT,
        *FITTING_FAULTS,
        *list_faults("C1", "padding", 4, 0, BORDERS),
        *CONTRACTION_FAULTS,
        unsigned_weight("3x2x2x2"),
    ),
)
CONV_TRANSPOSE = Family(
    (ConvTranspose2DOp, FusedConvTranspose2DOp),
    Change(IMAGES, None, {**ONE_SCALE, **PADDED, "padding": "array<i64: 1, 1, 1, 1>"}),
    (
        *GEOMETRY_FAULTS,
        SHORT,
        *list_faults("C1", "padding", 4, 0, BORDERS),
        *list_faults("C1", "output_padding", 2, 0, ([0, -1], [0], [0, 0, 0])),
        attributes(
            "C3",
            "result height must be at least 1 after padding is cut off, but got 0",
            padding="array<i64: 2, 0, 3, 0>",
        ),
        attributes(
            "C3",
            "result width must be at least 1 after padding is cut off, but got -18446744073709551609",
            padding="array<i64: 0, 9223372036854775807, 0, 9223372036854775807>",
        ),
        *CONTRACTION_FAULTS,
        unsigned_weight("3x2x2x2"),
    ),
)
F32_CONV = Family(
    (F32Conv2DOp,),
    Change({"data": "tensor<1x4x4x2xf32>", "weight": "tensor<3x2x2x2xf32>"}, "tensor<1x3x3x3xf32>", WINDOWS),
    (
        *GEOMETRY_FAULTS,
        Fault("C2", "weight depth must be 2, but got 1", Change({"weight": "tensor<3x2x2x1xf32>"})),
        *FITTING_FAULTS,
    ),
)

FAMILIES = (
    UNARY,
    BINARY,
    POOL,
    RESCALED,
    ARG,
    EXTREME,
    F32_REDUCE,
    F32_RECURRENT,
    INTEGER_REDUCE,
    RESIZE,
    DENSE,
    MATMUL,
    CONV,
    CONV_TRANSPOSE,
    F32_CONV,
)
with_every_member = pytest.mark.parametrize(
    ("family", "op_class"),
    [pytest.param(family, op_class, id=op_class.OPERATION_NAME) for family in FAMILIES for op_class in family.ops],
)


@with_every_member
def test_without_a_fault_it_is_accepted(family: Family, op_class: type[QnnOp]) -> None:
    with read(family.start.of(op_class, example(op_class))) as op:
        assert isinstance(op, op_class)


@with_every_member
def test_each_fault_breaks_its_constraint(
    family: Family, op_class: type[QnnOp], monkeypatch: pytest.MonkeyPatch
) -> None:
    fired: list[str] = []
    original = ConstraintError.__init__

    def record(self: ConstraintError, label: str, message: str) -> None:
        fired.append(label)
        original(self, label, message)

    monkeypatch.setattr(ConstraintError, "__init__", record)
    start = family.start.of(op_class, example(op_class))
    for fault in family.faults:
        fired.clear()
        assert_refused(fault.change.of(op_class, start), fault.message)
        assert fired == [fault.label]


@pytest.mark.parametrize("op_class", ops_of(SameElementOp), ids=lambda op_class: op_class.OPERATION_NAME)
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

    def check(self, op: RequantizeOp) -> str | qdialect.MatchFailure:
        wanted = "fixed64_nearest"
        return qdialect.MatchFailure(f"rounds as {wanted} already") if op.rounding == wanted else wanted

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
