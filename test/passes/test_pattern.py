"""The pattern driver: rewrites to an end, erases what dies, tells why not, and cannot run for ever."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from drawn_graphs import Body, failures, graph, op_names, run_both
from quantized_layers import WEIGHT_SCALES, add, clip, conv, fused, lut, random_table, requantize, unary

from qdialect.arithmetic import AddArithmetic, Multiplier, Rounding, identity_table
from qdialect.dialect import AddOp, ClipOp, MulOp, Relu6Op, ReluOp, build
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.passes.canonicalize import CanonicalizePass
from qdialect.passes.compose_luts import ComposeLutsPass
from qdialect.passes.fuse_clamp import FuseClampPass
from qdialect.passes.fuse_lut import FuseLutPass
from qdialect.passes.fuse_requantize import FuseRequantizePass
from qdialect.passes.fuse_residual import FuseResidualPass
from qdialect.passes.pattern import (
    MatchFailure,
    Pattern,
    Rewriter,
    apply_patterns,
    explain_matches,
    produced_by,
    rebuilt,
)
from qdialect.passes.registry import Pass
from qdialect.support.diagnostics import PassError, Severity

TENSOR = "tensor<4xui8>"


@dataclass(frozen=True)
class MergeClips(Pattern[ClipOp]):
    """clip(clip(x)): the outer bounds alone; refuses bounds that differ by more than `maximum`."""

    name: ClassVar[str] = "merge-clips"
    roots = ("qnn.clip",)
    maximum: int = 255

    def check(self, op: ClipOp) -> ClipOp | None:
        inner = produced_by(op.input, ClipOp)
        if inner is not None and op.max - op.min > self.maximum:
            raise MatchFailure(f"is too wide: {op.max - op.min}")
        return inner

    def rewrite(self, op: ClipOp, match: ClipOp, rewriter: Rewriter) -> None:
        with rewriter.before(op):
            merged = rebuilt(op, match.input)
        rewriter.replace(op, merged.output)


class FlipFlop(Pattern[int]):
    """Never content: moves the upper bound up and down."""

    name: ClassVar[str] = "flip-flop"
    roots = ("qnn.clip",)

    def check(self, op: ClipOp) -> int:
        return 101 if op.max == 100 else 100

    def rewrite(self, op: ClipOp, match: int, rewriter: Rewriter) -> None:
        with rewriter.before(op):
            changed = rebuilt(op, max=match)
        rewriter.replace(op, changed.output)


def chain(length: int) -> ir.Module:
    def body(x: ir.Value) -> ir.Value:
        for _ in range(length):
            x = clip(x, 1, 9)
        return x

    return graph([TENSOR], body)


def test_a_chain_collapses_and_the_dead_ops_are_gone() -> None:
    module = chain(300)
    assert apply_patterns(module, [MergeClips()]) == 299
    assert op_names(module) == ["qnn.clip"]
    assert module.operation.verify()


def test_an_op_with_another_user_survives() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        inner = clip(x, 1, 9)
        return [clip(inner, 2, 8), inner]

    module = graph([TENSOR], body)
    assert apply_patterns(module, [MergeClips()]) == 1
    assert op_names(module) == ["qnn.clip", "qnn.clip"]


def test_dead_ops_are_erased_before_they_count_as_users() -> None:
    def body(x: ir.Value) -> ir.Value:
        clip(clip(x, 1, 9), 2, 8)
        return x

    module = graph([TENSOR], body)
    assert apply_patterns(module, []) == 0
    assert op_names(module) == []


class ClipToInput(Pattern[ir.Value]):
    """What a sum's first operand was clipped from, instead of the sum."""

    name: ClassVar[str] = "clip-to-input"
    roots = ("qnn.add",)

    def check(self, op: AddOp) -> ir.Value:
        return _first_input(op.lhs)

    def rewrite(self, op: AddOp, match: ir.Value, rewriter: Rewriter) -> None:
        rewriter.replace(op, match)


def _first_input(value: ir.Value) -> ir.Value:
    inner = produced_by(value, ClipOp)
    return value if inner is None else _first_input(inner.input)


def test_producers_that_share_a_producer_die_once() -> None:
    """Both operands of the sum lose their last use with it, and one of them is the other's own operand."""

    def body(x: ir.Value) -> ir.Value:
        inner = clip(x, 1, 9)
        return add(clip(clip(inner, 2, 8), 3, 7), inner)

    module = graph([TENSOR], body)
    assert apply_patterns(module, [ClipToInput()]) == 1
    assert op_names(module) == []


def test_the_new_op_is_located_where_all_that_it_stands_for_were() -> None:
    text = """func.func @main(%x: tensor<4xui8>) -> tensor<4xui8> {
      %0 = "qnn.clip"(%x) {min = 0 : i64, max = 8 : i64} : (tensor<4xui8>) -> tensor<4xui8> loc("inner")
      %1 = "qnn.clip"(%0) {min = 0 : i64, max = 9 : i64} : (tensor<4xui8>) -> tensor<4xui8> loc("outer")
      return %1 : tensor<4xui8>
    }"""
    module = parse(text)
    apply_patterns(module, [MergeClips()])
    block = module.body.operations[0].regions[0].blocks[0]
    assert str(block.operations[0].location) == 'loc(fused["outer", "inner"])'


def test_a_match_failure_becomes_one_located_remark() -> None:
    text = """func.func @main(%x: tensor<4xui8>) -> tensor<4xui8> {
      %0 = "qnn.clip"(%x) {min = 0 : i64, max = 8 : i64} : (tensor<4xui8>) -> tensor<4xui8>
      %1 = "qnn.clip"(%0) {min = 0 : i64, max = 9 : i64} : (tensor<4xui8>) -> tensor<4xui8>
      return %1 : tensor<4xui8>
    }"""
    module = parse(text, file_name="graph.mlir")
    with explain_matches() as remarks:
        apply_patterns(module, [MergeClips(maximum=5)])
        apply_patterns(module, [MergeClips(maximum=5)])
    (remark,) = remarks
    assert (remark.severity, remark.line, remark.column) == (Severity.REMARK, 3, 12)
    assert remark.message == "[merge-clips] 'qnn.clip' is too wide: 9"


def test_patterns_that_undo_each_other_are_stopped() -> None:
    with pytest.raises(PassError, match=r"patterns \[flip-flop\] must reach an end, but \d+ rewrites did not"):
        apply_patterns(chain(3), [FlipFlop()])


# Scales that are one float32 number are the same to every pass: f32 values are computed with no more of them.
#
# `NEAR` is what a double of a file becomes when a text gives six digits of it.  Each test also runs the graph before
# and after its pass; where an arithmetic reads doubles, a pass must keep those that were read.

EXACT, NEAR = 0.17717300355434418, 0.177173
IMAGE, OUT = "tensor<1x6x7x4xui8>", "tensor<1x6x7x5xui8>"
EVERY = "tensor<16x20xui8>"
TABLE = random_table()
FUSED: dict[str, Any] = {"output_scale": EXACT}


def mul(lhs: Any, rhs: Any, scale: float) -> Any:
    return build(
        MulOp,
        lhs,
        rhs,
        element="ui8",
        lhs_scale=scale,
        lhs_zero_point=7,
        rhs_scale=0.125,
        rhs_zero_point=11,
        output_scale=0.1,
        output_zero_point=5,
        output_min=0,
        output_max=255,
        rounding=Rounding.F32_RNE_ZP_LAST,
    )


def of_itself(x: Any) -> Any:
    table = lut(x, TABLE, input_scale=EXACT)
    return mul(x, table, NEAR).output


FUSIONS: dict[str, tuple[Pass, list[str], Body, list[str]]] = {
    "lut": (FuseLutPass(), [IMAGE], lambda x: lut(fused(x, **FUSED), TABLE, input_scale=NEAR), ["qnn.fused_conv2d"]),
    "clamp_after_fused": (
        FuseClampPass(),
        [IMAGE],
        lambda x: unary(Relu6Op, fused(x, **FUSED), input_scale=NEAR, output_scale=NEAR, output_zero_point=7),
        ["qnn.fused_conv2d"],
    ),
    "clamp_that_keeps_its_scale": (
        FuseClampPass(),
        [IMAGE],
        lambda x: unary(ReluOp, fused(x, **FUSED), input_scale=NEAR, output_scale=EXACT, output_zero_point=7),
        ["qnn.fused_conv2d"],
    ),
    "clamp_after_add": (
        FuseClampPass(),
        [EVERY, EVERY],
        lambda x, y: unary(
            ReluOp,
            add(x, y, output_scale=EXACT, output_zero_point=7),
            input_scale=NEAR,
            output_scale=NEAR,
            output_zero_point=7,
        ),
        ["qnn.add"],
    ),
    "residual_left": (
        FuseResidualPass(),
        [IMAGE, OUT],
        lambda x, y: add(fused(x, **FUSED), y, lhs_scale=NEAR, arithmetic=AddArithmetic.FLOAT_ONCE),
        ["qnn.fused_conv2d"],
    ),
    "residual_right": (
        FuseResidualPass(),
        [IMAGE, OUT],
        lambda x, y: add(y, fused(x, **FUSED), rhs_scale=NEAR, arithmetic=AddArithmetic.F32_RECIPROCAL),
        ["qnn.fused_conv2d"],
    ),
    "requantize": (
        FuseRequantizePass(),
        [IMAGE],
        lambda x: requantize(conv(x, input_scale=EXACT), input_scale=NEAR, multiplier=Multiplier.F64),
        ["qnn.fused_conv2d"],
    ),
    "requantize_channels": (
        FuseRequantizePass(),
        [IMAGE],
        lambda x: requantize(
            conv(x, weight_scales=(EXACT, *WEIGHT_SCALES[1:])), weight_scales=(NEAR, *WEIGHT_SCALES[1:])
        ),
        ["qnn.fused_conv2d"],
    ),
    "chain": (
        ComposeLutsPass(),
        [EVERY],
        lambda x: lut(lut(x, TABLE, output_scale=EXACT, output_zero_point=7), TABLE, input_scale=NEAR),
        ["qnn.lut"],
    ),
    "diamond": (ComposeLutsPass(), [EVERY], of_itself, ["qnn.lut"]),
    "lut_to_clip": (
        ComposeLutsPass(),
        [EVERY],
        lambda x: lut(x, np.maximum(identity_table(), 9), input_scale=EXACT, output_scale=NEAR, output_zero_point=7),
        ["qnn.clip"],
    ),
    "identity_table": (
        CanonicalizePass(),
        [EVERY],
        lambda x: clip(lut(x, identity_table(), input_scale=EXACT, output_scale=NEAR, output_zero_point=7), 3, 99),
        ["qnn.clip"],
    ),
    "identity_requantize": (
        CanonicalizePass(),
        [EVERY],
        lambda x: clip(
            requantize(x, input_scale=EXACT, weight_scales=(1.0,), input_zero_points=(7,), output_scale=NEAR), 3, 99
        ),
        ["qnn.clip"],
    ),
}


@pytest.mark.parametrize("name", FUSIONS)
def test_scales_that_are_one_float32_number_fuse(name: str) -> None:
    one, inputs, body, wanted = FUSIONS[name]
    assert op_names(run_both(graph(inputs, body), one)) == wanted


@pytest.mark.parametrize("name", ["lut", "chain"])
def test_the_next_float32_number_is_another_scale(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "NEAR", float(np.nextafter(np.float32(EXACT), np.float32(1))))
    one, inputs, body, _ = FUSIONS[name]
    assert "input_scale must be" in failures(graph(inputs, body), one)[0]


@pytest.mark.parametrize(
    "how",
    [
        {"arithmetic": AddArithmetic.SHIFTED_FIXED},
        {"arithmetic": AddArithmetic.REQUANTIZE_EACH, "rounding": Rounding.FIXED64_UP, "multiplier": Multiplier.F64},
    ],
)
def test_a_sum_that_reads_doubles_keeps_its_own(how: dict[str, Any]) -> None:
    module = graph([IMAGE, OUT], lambda x, y: add(fused(x, **FUSED), y, lhs_scale=NEAR, **how))
    assert "lhs_scale must be" in failures(module, FuseResidualPass())[0]
