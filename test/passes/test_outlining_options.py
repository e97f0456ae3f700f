"""Which fused ops go to a target: predicates by name, merged regions, and what other passes leave alone."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from drawn_graphs import random_inputs
from drawn_networks import branched, with_externs

import qdialect
from qdialect.dialect import FusedOp
from qdialect.ir._mlir import ir
from qdialect.passes.outline_fused import OutlineFusedPass
from qdialect.reference import interpreter

PREDICATES = """
def without_residual(op):
    return len(op.operation.operands) < 4

def with_reason(op):
    return None if without_residual(op) else "has a residual"

def raising(op):
    raise KeyError("scale")

def number(op):
    return 1

class Limits:
    @staticmethod
    def none(op):
        return False

table = {}
"""


@pytest.fixture(autouse=True)
def predicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_predicates.py").write_text(PREDICATES)
    (tmp_path / "broken_predicates.py").write_text("raise RuntimeError('no driver')")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def fused() -> ir.Module:
    module = branched()
    qdialect.PassManager.parse("fuse-qnn").run(module)
    return module


def symbols(module: ir.Module) -> list[str]:
    functions = [op.operation for op in module.body.operations]
    return [ir.StringAttr(f.attributes["qnn.symbol"]).value for f in functions if "qnn.symbol" in f.attributes]


def run(module: ir.Module, pipeline: str) -> ir.Module:
    copy = qdialect.parse(str(module))
    qdialect.PassManager.parse(pipeline).run(copy)
    return copy


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ("target=npu", 4),
        ("target=npu predicate=some_predicates:without_residual", 3),
        ("target=npu predicate=some_predicates:with_reason", 3),
        ("target=npu predicate=some_predicates:Limits.none", 0),
        ("target=npu symmetric-weights-only predicate=''", 4),
    ],
)
def test_a_predicate_has_a_name(fused: ir.Module, options: str, count: int) -> None:
    assert symbols(run(fused, f"qnn-outline-fused{{{options}}}")) == ["npu_fused_conv2d"] * count


def test_the_text_of_a_pass_is_the_pass(fused: ir.Module) -> None:
    text = "qnn-outline-fused{symmetric-weights-only=false target=npu merge=true predicate=some_predicates:with_reason}"
    manager = qdialect.PassManager.parse(text)
    assert text in str(manager)
    assert symbols(run(fused, str(manager))) == symbols(run(fused, text))


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("some_predicates", "option 'predicate' of 'qnn-outline-fused' must be MODULE:FUNCTION, but got 'some_predi"),
        ("no_such_module:f", "cannot be found: ModuleNotFoundError: No module named 'no_such_module'"),
        ("some_predicates:absent", "cannot be found: AttributeError: .* has no attribute 'absent'"),
        ("broken_predicates:f", "cannot be found: RuntimeError: no driver"),
        ("some_predicates:table", "must be a function, but 'some_predicates:table' is of type dict"),
    ],
)
def test_a_predicate_that_is_not_there(predicate: str, message: str) -> None:
    with pytest.raises(qdialect.PipelineError, match=message):
        qdialect.PassManager.parse(f"qnn-outline-fused{{target=npu predicate='{predicate}'}}")


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("raising", "'qnn.fused_conv2d' op has a predicate that raised KeyError: 'scale'"),
        ("number", "'qnn.fused_conv2d' op must have a predicate that returns a bool or a reason, but got 1"),
    ],
)
def test_a_predicate_that_fails(fused: ir.Module, predicate: str, message: str) -> None:
    with pytest.raises(qdialect.PassError, match=message) as failed:
        run(fused, f"qnn-outline-fused{{predicate=some_predicates:{predicate}}}")
    assert failed.value.diagnostics[0].line > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("merge", "option 'merge' of 'qnn-outline-fused' must come with the option 'target'"),
        ("target=2x", "'target' of 'qnn-outline-fused' must be letters, digits and _ that .* letter, but got '2x'"),
    ],
)
def test_options_that_make_no_sense(options: str, message: str) -> None:
    with pytest.raises(qdialect.PipelineError, match=message):
        qdialect.PassManager.parse(f"qnn-outline-fused{{{options}}}")


def test_a_refused_op_says_why(fused: ir.Module) -> None:
    with qdialect.explain_matches() as remarks:
        run(fused, "qnn-outline-fused{target=npu predicate=some_predicates:without_residual}")
    (remark,) = remarks
    assert "'qnn.fused_conv2d' is not taken by some_predicates:without_residual" in remark.message


def test_neighbours_become_one_region(fused: ir.Module) -> None:
    merged = run(fused, "qnn-outline-fused{target=npu merge=true}")
    # The result of the first convolution is also a result of the network; the pool stands before the last.
    assert sorted(symbols(merged)) == ["npu_fused_conv2d", "npu_fused_conv2d", "npu_region"]
    inputs = random_inputs(fused)
    for found, wanted in zip(interpreter.run(merged, inputs), interpreter.run(fused, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert str(run(merged, "qnn-inline-outlined,cse")) == str(run(fused, "cse"))


def test_a_target_takes_what_another_has_left(fused: ir.Module) -> None:
    def has_residual(op: FusedOp) -> bool:
        return len(op.operation.operands) == 4

    module = qdialect.parse(str(fused))
    qdialect.PassManager(
        OutlineFusedPass(target="dsp", predicate=has_residual), OutlineFusedPass(target="npu", merge=True)
    ).run(module)
    assert sorted(symbols(module)) == ["dsp_fused_conv2d", "npu_fused_conv2d", "npu_fused_conv2d", "npu_fused_conv2d"]


def test_what_is_left_is_decomposed_and_nothing_else(fused: ir.Module) -> None:
    module = run(fused, "qnn-outline-fused{target=npu predicate=some_predicates:without_residual},qnn-decompose-fused")
    text = str(module)
    assert len(symbols(module)) == text.count('"qnn.fused_conv2d"(') == 3
    assert (text.count('"qnn.conv2d"('), text.count('"qnn.add"(')) == (1, 1)
    inputs = random_inputs(fused)
    for found, wanted in zip(interpreter.run(module, inputs), interpreter.run(fused, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_functions_go_with_their_last_call() -> None:
    module = with_externs(branched(), merge=True)
    called = [line for line in str(module).splitlines() if "call @" in line]
    assert len(called) == len(symbols(module)) == 3


# Outlined fused ops: what a predicate says, what runs them, and the way back.


DENSE = """
  %weight{number} = "qnn.constant"() {{value = dense<{weight}> : tensor<8x8xi8>}} : () -> tensor<8x8xi8>
  %bias{number} = "qnn.constant"() {{value = dense<7> : tensor<8xi32>}} : () -> tensor<8xi32>
  %sum{number} = "qnn.dense"({data}, %weight{number}, %bias{number}) {{
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.1>,
    weight_zero_points = array<i64: {point}>
  }} : (tensor<2x8xi8>, tensor<8x8xi8>, tensor<8xi32>) -> tensor<2x8xi32>
  %code{number} = "qnn.requantize"(%sum{number}) {{
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 3 : i64, rounding = "fixed64_up", weight_scales = array<f64: 0.1>
  }} : (tensor<2x8xi32>) -> tensor<2x8xi8>
"""
ARRAY = np.arange(-60, 68, 8, dtype=np.int8).reshape(2, 8)


def network() -> ir.Module:
    """Two dense layers; the weights of the second have a zero point."""
    layers = DENSE.format(number=0, weight=2, data="%x", point=0) + DENSE.format(
        number=1, weight=-3, data="%code0", point=5
    )
    text = f"func.func @main(%x: tensor<2x8xi8>) -> tensor<2x8xi8> {{{layers}  return %code1 : tensor<2x8xi8>\n}}"
    module = qdialect.parse(text)
    qdialect.PassManager.parse("fuse-qnn").run(module)
    return module


def outlined_names(module: ir.Module) -> list[str]:
    functions = [op.operation for op in module.body.operations]
    return [ir.StringAttr(f.attributes["sym_name"]).value for f in functions if "qnn.external" in f.attributes]


def test_calls_run_where_the_ops_ran() -> None:
    module = network()
    (wanted,) = interpreter.run(module, [ARRAY])
    qdialect.PassManager.parse("qnn-outline-fused").run(module)
    assert outlined_names(module) == ["main_fused_dense_0", "main_fused_dense_1"]
    np.testing.assert_array_equal(interpreter.run(module, [ARRAY])[0], wanted)
    np.testing.assert_array_equal(qdialect.compile(module)(ARRAY), wanted)


def test_outlined_ops_stay_outlined() -> None:
    module = network()
    qdialect.PassManager.parse("qnn-outline-fused").run(module)
    before = str(module)
    qdialect.PassManager.parse("qnn-outline-fused").run(module)
    assert str(module) == before


def at_most(limit: int) -> Callable[[FusedOp], str | None]:
    def predicate(op: FusedOp) -> str | None:
        return f"has a weight zero point above {limit}" if max(op.weight_zero_points) > limit else None

    return predicate


@pytest.mark.parametrize(("limit", "count"), [(4, 1), (5, 2)])
def test_a_predicate_says_why_an_op_stays(limit: int, count: int) -> None:
    module = network()
    with qdialect.explain_matches() as remarks:
        qdialect.PassManager(OutlineFusedPass(predicate=at_most(limit))).run(module)
    assert len(outlined_names(module)) == count
    reasons = [remark.message for remark in remarks]
    wanted = f"[outline-fused] 'qnn.fused_dense' has a weight zero point above {limit}"
    assert reasons == [wanted] * (2 - count)
    np.testing.assert_array_equal(interpreter.run(module, [ARRAY])[0], interpreter.run(network(), [ARRAY])[0])


def test_a_call_of_what_calls_has_no_reference_meaning() -> None:
    module = qdialect.parse("""
    func.func private @inner(%x: tensor<2xi8>) -> tensor<2xi8> {
      %0 = call @inner(%x) : (tensor<2xi8>) -> tensor<2xi8>
      return %0 : tensor<2xi8>
    }
    func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {
      %0 = call @inner(%x) : (tensor<2xi8>) -> tensor<2xi8>
      return %0 : tensor<2xi8>
    }
    """)
    with pytest.raises(qdialect.CompileError, match="must consist of ops with a reference meaning, but 1 have none"):
        interpreter.run(module, [np.zeros(2, np.int8)])
