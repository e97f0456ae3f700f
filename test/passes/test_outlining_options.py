"""Which fused ops go to a target: predicates by name, merged regions, and what other passes leave alone."""

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


def check_same(found: ir.Module, wanted: ir.Module) -> None:
    inputs = random_inputs(wanted)
    for one, other in zip(interpreter.run(found, inputs), interpreter.run(wanted, inputs), strict=True):
        np.testing.assert_array_equal(one, other)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("merge", "option 'merge' of 'qnn-outline-fused' must come with the option 'target'"),
        ("target=2x", "'target' of 'qnn-outline-fused' must be letters, digits and _ that .* letter, but got '2x'"),
        (
            "predicate=some_predicates",
            "option 'predicate' of 'qnn-outline-fused' must be MODULE:FUNCTION, but got 'some_predi",
        ),
        ("predicate=no_such_module:f", "cannot be found: ModuleNotFoundError: No module named 'no_such_module'"),
        ("predicate=some_predicates:absent", "cannot be found: AttributeError: .* has no attribute 'absent'"),
        ("predicate=broken_predicates:f", "cannot be found: RuntimeError: no driver"),
        ("predicate=some_predicates:table", "must be a function, but 'some_predicates:table' is of type dict"),
    ],
)
def test_options_that_make_no_sense(options: str, message: str) -> None:
    with pytest.raises(qdialect.PipelineError, match=message):
        qdialect.PassManager.parse(f"qnn-outline-fused{{{options}}}")


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


def test_a_refused_op_says_why(fused: ir.Module) -> None:
    with qdialect.explain_matches() as remarks:
        run(fused, "qnn-outline-fused{target=npu predicate=some_predicates:without_residual}")
    (remark,) = remarks
    assert "'qnn.fused_conv2d' is not taken by some_predicates:without_residual" in remark.message


def test_neighbours_become_one_region(fused: ir.Module) -> None:
    merged = run(fused, "qnn-outline-fused{target=npu merge=true}")
    # The result of the first convolution is also a result of the network; the pool stands before the last.
    assert sorted(symbols(merged)) == ["npu_fused_conv2d", "npu_fused_conv2d", "npu_region"]
    check_same(merged, fused)
    assert str(run(merged, "qnn-inline-outlined,cse")) == str(run(fused, "cse"))


def test_a_target_takes_ops_that_another_has_left(fused: ir.Module) -> None:
    def has_residual(op: FusedOp) -> bool:
        return len(op.operation.operands) == 4

    module = qdialect.parse(str(fused))
    qdialect.PassManager(
        OutlineFusedPass(target="dsp", predicate=has_residual), OutlineFusedPass(target="npu", merge=True)
    ).run(module)
    assert sorted(symbols(module)) == ["dsp_fused_conv2d", "npu_fused_conv2d", "npu_fused_conv2d", "npu_fused_conv2d"]


def test_ops_that_are_left_are_decomposed_and_nothing_else(fused: ir.Module) -> None:
    module = run(fused, "qnn-outline-fused{target=npu predicate=some_predicates:without_residual},qnn-decompose-fused")
    text = str(module)
    assert len(symbols(module)) == text.count('"qnn.fused_conv2d"(') == 3
    assert (text.count('"qnn.conv2d"('), text.count('"qnn.add"(')) == (1, 1)
    check_same(module, fused)


def test_functions_go_with_their_last_call() -> None:
    module = with_externs(branched(), merge=True)
    called = [line for line in str(module).splitlines() if "call @" in line]
    assert len(called) == len(symbols(module)) == 3
