"""How the dialect is extended, and ops that keep the element type."""

from typing import Any

import pytest
from op_texts import CONTEXT, assert_refused, example

import qdialect
from qdialect.dialect import OPS, QnnOp, RequantizeOp
from qdialect.dialect.movement_ops import SameElementOp
from qdialect.ir._mlir import ir


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
