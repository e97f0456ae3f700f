"""Every phase is run and compared; a fault in one step is found at its phase, and at the op that it changes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from drawn_networks import CONVOLUTION, DIVISIBLE, NETWORKS, STATES
from numpy.typing import NDArray

from qdialect.cli import opt
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.ir.module_text import Printing
from qdialect.lowering.linalg_to_vector import to_vector
from qdialect.lowering.pipeline.phases import Phase, compile_to, lower
from qdialect.lowering.vector_to_x86.to_x86 import to_x86
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.registry import Pass
from qdialect.runtime.comparison import first_difference, random_inputs
from qdialect.runtime.phase_comparison import RUNS, compare_phases
from qdialect.support.diagnostics import InputError
from qdialect.targets import GENERIC, TARGETS, Target

# Runs anywhere, and is not the target that stands for "any CPU".
SPECIAL = Target("special", frozenset())


@pytest.fixture(autouse=True)
def special_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, SPECIAL.name, SPECIAL)


@pytest.mark.parametrize("name", NETWORKS)
def test_all_phases_of_a_network_agree(name: str) -> None:
    module = parse(NETWORKS[name])
    inputs = random_inputs(lower(module, GENERIC, Phase.QNN).inputs, 0)
    results = compare_phases(module, inputs, target="generic")
    assert [result.phase for result in results] == list(Phase)
    assert not any(result.differing for result in results)
    assert all(result.elements > 0 for result in results)


@pytest.mark.parametrize("target", ["amxint8", "avx512vbmi"])
def test_contractions_of_tiles_are_loops_for_any_cpu(target: str) -> None:
    """Written one after the other, LLVM takes seconds for the products of each."""
    rng = np.random.default_rng(0)
    data, weights = rng.integers(-128, 128, (13, 193), np.int8), rng.integers(0, 256, (24, 193), np.uint8)
    text = f"""
    func.func @main(%x: tensor<13x193xi8>) -> tensor<13x24xi32> {{
      %w = "qnn.constant"() {{value = dense<{weights.tolist()}> : tensor<24x193xui8>}} : () -> tensor<24x193xui8>
      %0 = "qnn.dense"(%x, %w) {{
        input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
        weight_zero_points = array<i64: 128>
      }} : (tensor<13x193xi8>, tensor<24x193xui8>) -> tensor<13x24xi32>
      return %0 : tensor<13x24xi32>
    }}"""
    module = lower(parse(text), TARGETS[target], Phase.VECTOR).module
    run = RUNS[Phase.VECTOR]
    assert run.code is not None
    assert str(run.code(module)).count("llvm.mul ") < 300
    (found,) = run.run(module, [data])
    np.testing.assert_array_equal(found, (data.astype(np.int32) - 7) @ (weights.astype(np.int32) - 128).T)


def test_a_comparison_starts_at_the_phase_of_the_module() -> None:
    module = compile_to(parse(CONVOLUTION), Phase.VECTOR, GENERIC)
    results = compare_phases(module, [np.ones((1, 6, 6, 4), np.int8)])
    assert [result.phase for result in results] == [Phase.VECTOR, Phase.X86, Phase.LLVM]
    assert not any(result.differing for result in results)


def damage(module: ir.Module) -> None:
    """A fault: the last sum of the kernel that computes the node `activation` adds its first operand twice."""
    sums: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "arith.addi":
            sums.append(op)
        return ir.WalkResult.ADVANCE

    for op in module.body.operations:
        if "activation" in ir.StringAttr(op.attributes["sym_name"]).value:
            op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    sums[-1].operands[1] = sums[-1].operands[0]


def an_image() -> NDArray[Any]:
    return np.random.default_rng(0).integers(4, 10, (1, 6, 6, 4)).astype(np.int8)


def test_a_fault_of_the_instructions_is_found_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(module: ir.Module, target: Target) -> None:
        to_x86(module, target)
        if target == SPECIAL:
            damage(module)

    monkeypatch.setattr("qdialect.lowering.vector_to_x86.to_x86.to_x86", broken)
    results = compare_phases(parse(CONVOLUTION), [an_image()], target="special")
    assert [result.phase for result in results if result.differing] == [Phase.X86, Phase.LLVM]
    x86 = results[4]
    assert x86.first
    assert x86.first.array == "scores"
    assert x86.first.expected != x86.first.found
    assert x86.node
    assert x86.node.op == "qnn.fused_conv2d"
    assert "net/conv;1" in x86.node.name
    assert x86.node.kernel == "kernel_3_activation"
    assert results[5].node is None


def test_a_fault_of_the_vector_step_is_found_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qdialect.lowering.linalg_to_vector.to_vector.to_vector", vector_step)
    results = compare_phases(parse(CONVOLUTION), [an_image()], target="generic")
    assert [result.phase for result in results if result.differing] == [Phase.VECTOR, Phase.X86, Phase.LLVM]
    assert results[3].node
    assert results[3].node.kernel == "kernel_2_activation"


@dataclass(frozen=True)
class ShiftZeroPoint(Pass):
    """A fault: a fused convolution gets another zero point."""

    name: ClassVar[str] = "shift-zero-point"

    def run(self, module: ir.Module) -> None:
        with module.context:
            for op in module.body.operations[0].regions[0].blocks[0].operations:
                if op.operation.name == "qnn.fused_conv2d":
                    op.attributes["input_zero_point"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 6)


def test_a_fault_of_the_fusion_is_found_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fusing = FuseQnnPass.passes

    def broken(self: FuseQnnPass) -> list[Pass]:
        return [*fusing(self), ShiftZeroPoint()]

    monkeypatch.setattr(FuseQnnPass, "passes", broken)
    results = compare_phases(parse(CONVOLUTION), [an_image()], target="generic")
    assert [result.phase for result in results if result.differing] == list(Phase)[1:]
    assert results[1].node
    assert (results[1].node.op, results[1].node.kernel) == ("qnn.fused_conv2d", "")

    model, image = tmp_path / "net.mlir", tmp_path / "image.npy"
    model.write_text(CONVOLUTION)
    np.save(image, an_image())
    assert opt.main([str(model), "--compare-phases", f"--input={image}", "--target=generic"]) == 1
    text = capsys.readouterr().out
    assert "phase fused is the first that differs from phase qnn: output scores[0, " in text
    assert "first op that differs: 'qnn.fused_conv2d' 'activation, rescale, net/conv;1': value[0, " in text


SOUND_VECTOR_STEP = to_vector.to_vector


def vector_step(module: ir.Module) -> None:
    SOUND_VECTOR_STEP(module)
    damage(module)


def x86_step(module: ir.Module, target: Target) -> None:
    damage(module)
    to_x86(module, target)


@pytest.mark.parametrize(
    ("start", "step", "broken"),
    [(Phase.LINALG, "vector", vector_step), (Phase.LINALG, "x86", x86_step), (Phase.VECTOR, "x86", x86_step)],
)
def test_without_a_graph_the_kernel_is_named(
    start: Phase,
    step: str,
    broken: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "net.mlir"
    path.write_text(Printing(enable_debug_info=True).text(compile_to(parse(CONVOLUTION), start, GENERIC)))
    folder = {"vector": "linalg_to_vector", "x86": "vector_to_x86"}[step]
    monkeypatch.setattr(f"qdialect.lowering.{folder}.to_{step}.to_{step}", broken)
    assert opt.main([str(path), "--compare-phases", "--target=generic"]) == 1
    text = capsys.readouterr().out
    assert f"phase {step} is the first that differs from phase {start}: output scores[" in text
    assert "first kernel that differs: @kernel_2_activation 'activation, rescale, net/conv;1': scores[" in text


def test_a_kernel_of_a_divided_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(module: ir.Module, target: Target) -> None:
        damage(module)
        to_x86(module, target)

    module = compile_to(parse(DIVISIBLE), Phase.VECTOR, GENERIC, threads=2)
    monkeypatch.setattr("qdialect.lowering.vector_to_x86.to_x86.to_x86", broken)
    image = np.random.default_rng(0).integers(-128, 128, (1, 31, 16, 4)).astype(np.int8)
    results = compare_phases(module, [image], target="generic", threads=2)
    assert results[1].differing
    assert results[1].node
    assert results[1].node.kernel == "kernel_2_activation"


def test_a_difference_is_of_bits() -> None:
    zeros, signed = np.zeros(2, np.float32), np.array([0.0, -0.0], np.float32)
    difference = first_difference("y", zeros, signed)
    assert difference
    assert str(difference) == "y[1] must be 0.0, but got -0.0"
    nan = np.array([np.nan], np.float32)
    assert first_difference("y", nan, -nan) is None


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="input 'image' must be"):
        compare_phases(parse(CONVOLUTION), [np.zeros((1, 6, 6, 3), np.int8)], target="generic")


def test_states_are_compared_as_arguments_and_results() -> None:
    module = parse(STATES)
    rows, numbers = np.ones((8, 16), np.float32), np.array([3, 1 << 40])
    results = compare_phases(module, [rows, rows[:1] * 5, np.array([6], np.int32), numbers], target="generic")
    assert [result.elements for result in results] == [258] * len(RUNS)
    assert not any(result.differing for result in results)
