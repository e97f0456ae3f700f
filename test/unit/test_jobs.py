"""Compiling on several threads: the same code for every number of them."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from phase_networks import NETWORKS

import qdialect
from qdialect.cli import compile as compile_command
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse, several_threads
from qdialect.lowering.ir import upstream
from qdialect.lowering.pipeline.phases import Phase, compile_to
from qdialect.support import threads
from qdialect.support.diagnostics import CompileError
from qdialect.targets import TARGETS

needs_two_cpus = pytest.mark.skipif(threads.available_jobs() < 2, reason="one CPU compiles on one thread")
UNKNOWN_REGION = """func.func @f{number}() {{
  "other.op"() ({{
    "other.op"() : () -> ()
  }}) : () -> ()
  return
}}
"""


def llvm_text(network: str, count: int) -> str:
    with threads.using_jobs(count):
        return str(compile_to(parse(network, make_context()), Phase.LLVM, TARGETS["avx512vnni"]))


@needs_two_cpus
@pytest.mark.parametrize("name", sorted(NETWORKS)[:2])
def test_code_does_not_depend_on_jobs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def counted(context: ir.Context, count: int) -> AbstractContextManager[None]:
        counts.append(count)
        return several_threads(context, count)

    monkeypatch.setattr(upstream, "several_threads", counted)
    monkeypatch.setattr(upstream, "FUNCTIONS_PER_THREAD", 1)
    assert llvm_text(NETWORKS[name], 2) == llvm_text(NETWORKS[name], 1)
    assert set(counts) == {1, 2}


@needs_two_cpus
def test_threads_are_as_many_as_wanted_and_end() -> None:
    context, cpus = make_context(), os.sched_getaffinity(0)
    with several_threads(context, 2):
        assert context.get_num_threads() == 2
        assert os.sched_getaffinity(0) == cpus
    assert context.get_num_threads() == 1


@needs_two_cpus
def test_failures_are_in_the_order_of_the_functions() -> None:
    text = "".join(UNKNOWN_REGION.format(number=number) for number in range(4 * upstream.FUNCTIONS_PER_THREAD))
    found: list[list[str]] = []
    for count in (1, 2):
        context = make_context()
        context.allow_unregistered_dialects = True
        module = parse(text, context)
        upstream.load_kernel_dialects(module)
        with threads.using_jobs(count), pytest.raises(CompileError) as caught:
            upstream.run_passes(module, "builtin.module(func.func(ownership-based-buffer-deallocation))", "pass")
        found.append([str(diagnostic) for diagnostic in caught.value.diagnostics])
    assert len(found[0]) == 4 * upstream.FUNCTIONS_PER_THREAD
    assert found[0] == found[1]


def test_small_modules_start_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned_on(context: ir.Context, enable: bool) -> None:
        pytest.fail("threads were turned on")

    monkeypatch.setattr(ir.Context, "enable_multithreading", turned_on)
    context = ir.Context()
    with context:
        upstream.run_passes(ir.Module.parse("func.func @f() {\n  return\n}"), "builtin.module(func.func(cse))", "pass")


@pytest.mark.parametrize("wrong", [0, -1, True, "2", 1.0])
def test_jobs_must_be_a_count(wrong: int) -> None:
    with pytest.raises(CompileError, match=f"jobs must be an integer of at least 1, but got {wrong!r}"):
        qdialect.compile("model.tflite", jobs=wrong)


def test_more_jobs_than_cpus_are_as_many_as_cpus() -> None:
    with threads.using_jobs(100000):
        assert threads.active_jobs() == threads.available_jobs()
    with threads.using_jobs(1):
        assert threads.active_jobs() == 1


def test_commands_take_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts: list[int] = []

    def compiled(options: object) -> int:
        counts.append(threads.active_jobs())
        return 0

    monkeypatch.setattr(compile_command, "_compile", compiled)
    assert compile_command.main([str(tmp_path / "m.mlir"), "-o", "m.so", "-j", "1"]) == 0
    assert counts == [1]
    with pytest.raises(SystemExit):
        compile_command.main([str(tmp_path / "m.mlir"), "-o", "m.so", "--jobs", "0"])
    assert "argument --jobs/-j: must be an integer of at least 1, but got 0" in capsys.readouterr().err
