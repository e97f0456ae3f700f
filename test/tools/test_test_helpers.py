"""Helpers of the tests: bounds of time, forked commands, guarded processes, tolerances, variants together."""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import compiled_ops as together
import numpy as np
import pytest
from bounds import deadline
from compiled_ops import Array, check, check_compiled, is_chosen, variants_together
from drawn_graphs import graph
from forked_commands import ForkingSubprocess
from forking_process import ForkingProcess
from guarded import GuardedRunner
from numpy.typing import NDArray
from quantized_layers import fused
from tolerances import EXACT, TOLERANCES, Tolerance, assert_floats_within, assert_within, loosest, tolerance_of

from qdialect.dialect import ClipOp, build
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.model_files import FORMATS
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse

SOON = 0.05


def _endless() -> None:
    for _ in itertools.count():
        pass


def test_what_ends_soon_passes() -> None:
    with deadline():
        sum(range(1000))
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


def test_what_runs_on_is_ended() -> None:
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(pytest.fail.Exception, match=r"a loop must take at most 0\.05 s"), deadline("a loop", SOON):
        _endless()
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
    assert signal.getsignal(signal.SIGPROF) == before


def test_a_handler_of_exceptions_does_not_take_it() -> None:
    with pytest.raises(pytest.fail.Exception), deadline(seconds=SOON), contextlib.suppress(Exception):
        _endless()


def test_what_swallows_it_is_late_still() -> None:
    with pytest.raises(pytest.fail.Exception), deadline(seconds=SOON), contextlib.suppress(BaseException):
        _endless()


def test_an_error_of_the_block_is_not_hidden() -> None:
    with pytest.raises(ValueError, match="other"), deadline():
        raise ValueError("other")


# A command of a lit test does in a fork what it does in a process of its own.

Popen = Callable[..., subprocess.Popen[str]]

SCRIPTS = {
    "output": "import sys; print('one'); print('two', file=sys.stderr)",
    "arguments": "import sys; print(sys.argv[1:], __name__)",
    "input": "print(input())",
    "environment": "import os; print(sorted(os.environ.items()), os.getcwd())",
    "neighbour": "import neighbour; print(neighbour.NAME)",
    "status": "import sys; sys.exit(7)",
    "none": "import sys; sys.exit(None)",
    "message": "import sys; sys.exit('wrong')",
    "crash": "import os; os.abort()",
    "signals": "import signal; print(signal.getsignal(signal.SIGPIPE))",
    "descriptors": "import os; print([number for number in range(3, 30) if os.path.exists(f'/proc/self/fd/{number}')])",
    "encoding": "import sys; print([(s.encoding, s.errors) for s in (sys.stdin, sys.stdout, sys.stderr)])",
    "garbage": "import gc; print(gc.isenabled())",
}


def ended(popen: Popen, args: list[str], folder: Path, **options: Any) -> tuple[int, str, str]:
    """The exit status, stdout and stderr of a command that is started as lit starts it."""
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"GIVEN": "here"}
    with popen(args, cwd=folder, env=environment, universal_newlines=True, **settings) as process:
        output, errors = process.communicate("first\nsecond\n" if process.stdin else None)
    return process.returncode, output, errors


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script(name: str, tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("NAME = 'beside'")
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[name])
    args = [sys.executable, str(script), "a b", "-c"]
    assert ended(ForkingSubprocess.Popen, args, tmp_path) == ended(subprocess.Popen, args, tmp_path)


def test_an_exception_is_a_traceback_and_status_one(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise KeyError('missing')")
    status, _, errors = ended(ForkingSubprocess.Popen, [sys.executable, str(script)], tmp_path)
    assert status == 1
    assert errors.endswith("KeyError: 'missing'\n")


@pytest.mark.parametrize("arguments", [["-"], ["-", "--no-such-pass"], ["--version"]])
def test_a_command(arguments: list[str], tmp_path: Path) -> None:
    args = [sys.executable, "-m", "qdialect.cli.opt", *arguments]
    forked, started = (ended(popen, args, tmp_path) for popen in (ForkingSubprocess.Popen, subprocess.Popen))
    assert forked == started
    assert any(text in forked[1] + forked[2] for text in ("<stdin>", "qdialect"))


def test_a_process_that_forks_is_asked(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("def takes(op): raise KeyError('beside')")
    asked = ForkingProcess()
    try:
        for arguments in (["--version"], ["--no-such-pass", "-"], ["-", "--qnn-outline-fused=predicate=neighbour:x"]):
            args = [sys.executable, "-m", "qdialect.cli.opt", *arguments]
            started = subprocess.run(
                args, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            found = asked.run(args, tmp_path)
            assert (found.returncode, found.stdout, found.stderr) == (
                started.returncode,
                started.stdout,
                started.stderr,
            )
    finally:
        asked.close()


def test_filecheck(tmp_path: Path) -> None:
    (tmp_path / "expected").write_text("CHECK: fir\nCHECK: third\n")
    args = [sys.executable, "-m", "filecheck", "expected"]
    forked, started = (ended(popen, args, tmp_path) for popen in (ForkingSubprocess.Popen, subprocess.Popen))
    assert forked == started
    assert forked[0] == 1


def test_both_outputs_into_one_file(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS["output"])
    with (tmp_path / "file").open("w") as file:
        ended(ForkingSubprocess.Popen, [sys.executable, str(script)], tmp_path, stdout=file, stderr=subprocess.STDOUT)
    assert sorted((tmp_path / "file").read_text().split()) == ["one", "two"]


def test_a_pipe_that_is_longer_than_its_buffer(tmp_path: Path) -> None:
    """A command is started while the one before it still writes."""
    writer, reader = tmp_path / "writer.py", tmp_path / "reader.py"
    writer.write_text("print('line\\n' * 100_000)")
    reader.write_text("import sys; print(len(sys.stdin.read()))")
    first = ForkingSubprocess.Popen(
        [sys.executable, str(writer)], env=os.environ, stdout=subprocess.PIPE, universal_newlines=True
    )
    with first:
        assert ended(ForkingSubprocess.Popen, [sys.executable, str(reader)], tmp_path, stdin=first.stdout) == (
            0,
            "500001\n",
            "",
        )


def test_other_programs_are_executed(tmp_path: Path) -> None:
    assert ended(ForkingSubprocess.Popen, ["/bin/sh", "-c", "echo $GIVEN; exit 3"], tmp_path) == (3, "here\n", "")
    one = [sys.executable, "-c", "import sys; print(sys.flags.isolated, 'pytest' in sys.modules)"]
    assert ended(ForkingSubprocess.Popen, one, tmp_path) == (0, "0 False\n", "")


# Functions whose results of positive numbers nothing chooses are computed with less work and the same bits.


def f32_values(count: int, seed: int = 0) -> Array:
    """Numbers of every magnitude, and many near zero."""
    rng = np.random.default_rng(seed)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 16.5, 18.5, 89.5, -18.5, 1e-45, -1e-45, 3e38, -3e38])
    near = rng.normal(size=count // 2) * rng.choice([1e-3, 0.1, 1, 10, 40], count // 2)
    bits = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):
        return np.concatenate([special, near, bits])[:count].astype(np.float32)


def check_text(text: str, inputs: list[Array]) -> None:
    check(parse(text), inputs)


@variants_together
@pytest.mark.parametrize("guard", ["ogt", "oge", "olt"])
@pytest.mark.parametrize("of", ["%x", "%y"])
def test_expm1_chosen_beside_a_comparison(guard: str, of: str) -> None:
    # Only beside "x > 0" or "x >= 0" of its own operand do the results of positive numbers not count.
    text = f"""
      func.func @main(%x: tensor<4096xf32>, %y: tensor<4096xf32>) -> tensor<4096xf32> {{
        %zero = "qnn.constant"() {{value = dense<0.0> : tensor<f32>}} : () -> tensor<f32>
        %bound = "qnn.broadcast"(%zero) {{shape = array<i64: 4096>}} : (tensor<f32>) -> tensor<4096xf32>
        %alpha = "qnn.constant"() {{value = dense<0.7> : tensor<4096xf32>}} : () -> tensor<4096xf32>
        %guard = arith.cmpf {guard}, {of}, %bound : tensor<4096xf32>
        %expm1 = math.expm1 %x : tensor<4096xf32>
        %scaled = arith.mulf %expm1, %alpha : tensor<4096xf32>
        %result = arith.select %guard, %y, %scaled : tensor<4096xi1>, tensor<4096xf32>
        func.return %result : tensor<4096xf32>
      }}
    """
    check_text(text, [f32_values(4096), f32_values(4096, 2)])


@variants_together
@pytest.mark.parametrize("bound", [0.0, -1.0])
def test_expm1_that_something_else_reads_too(bound: float) -> None:
    text = f"""
      func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {{
        %bound = "qnn.constant"() {{value = dense<{bound}> : tensor<4096xf32>}} : () -> tensor<4096xf32>
        %guard = arith.cmpf ogt, %x, %bound : tensor<4096xf32>
        %expm1 = math.expm1 %x : tensor<4096xf32>
        %chosen = arith.select %guard, %x, %expm1 : tensor<4096xi1>, tensor<4096xf32>
        %result = arith.maximumf %chosen, %expm1 : tensor<4096xf32>
        func.return %result : tensor<4096xf32>
      }}
    """
    check_text(text, [f32_values(4096)])


# The guards of the fuzz tests can fail: one byte outside ends the process, and a crash is reported.

TEST_FOLDER = str(Path(__file__).resolve().parents[1])
# Each byte is touched in a fork, which may end for it.
TOUCH = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from guarded_worker import guarded
for offset, at_end in {touches}:
    child = os.fork()
    if not child:
        block = guarded({size}, at_end=at_end)
        ctypes.string_at(block.ctypes.data + offset, 1)
        ctypes.memset(block.ctypes.data + offset, 0, 1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def statuses(size: int, *touches: tuple[int, bool]) -> list[int]:
    """The exit statuses of processes that touch one byte each, at an offset of a block, which may end at its guard."""
    script = TOUCH.format(size=size, touches=touches)
    done = subprocess.run([sys.executable, "-c", script, TEST_FOLDER], check=True, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.parametrize("size", [1, 100, 4096, 5000])
def test_one_byte_outside_ends_the_process(size: int) -> None:
    assert statuses(size, (size, True), (-1, False)) == [-signal.SIGSEGV] * 2


def test_every_byte_inside_may_be_touched() -> None:
    assert statuses(5000, *((offset, at_end) for offset in (0, 4999) for at_end in (True, False))) == [0] * 4


def test_a_crash_is_an_answer_and_the_next_request_is_served() -> None:
    runner = GuardedRunner()
    text = str(graph(["tensor<1x3x3x2xui8>"], fused))
    try:
        assert runner.check(text, "generic", 0) == []
        runner.kill()
        assert runner.check(text, "generic", 0) == ["compiled code ended the process with status -9"]
        assert runner.check(text, "generic", 0) == []
    finally:
        runner.close()


def test_what_cannot_be_compiled_is_an_answer() -> None:
    runner = GuardedRunner()
    try:
        assert "function" in runner.check("module {}", "generic", 0)[0]
    finally:
        runner.close()


# The table of tolerances: it names operators that exist, and the tests of front ends compare with nothing else.

TEST = Path(__file__).resolve().parents[1]
KINDS = ("onnx", "tflite", "torch", "tosa", "models")
FILES = [
    path
    for path in sorted(TEST.rglob("test_*.py"))
    # The zoo's own evaluators are no front ends.
    if any(kind in path.stem for kind in KINDS) and not path.stem.startswith("test_zoo_")
]
# Comparisons that have a bound of their own.
BOUNDED = {"allclose", "assert_allclose", "isclose", "approx", "assert_array_almost_equal", "assert_almost_equal"}


def own_tolerances(source: str) -> Iterator[int]:
    """The lines of a test that compare with a tolerance that stands there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _name(node.func) in BOUNDED:
            yield node.lineno
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE):
            left, right = node.left, node.comparators[0]
            called = {_name(inner.func) for inner in ast.walk(left) if isinstance(inner, ast.Call)}
            if ("count_nonzero" in called or {"max", "abs"} <= called) and _is_number(right):
                yield node.lineno


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_number(node: ast.expr) -> bool:
    return all(isinstance(inner, ast.Constant | ast.BinOp | ast.operator) for inner in ast.walk(node))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_front_ends_compare_with_the_table_alone(path: Path) -> None:
    assert list(own_tolerances(path.read_text())) == []


@pytest.mark.parametrize(
    "line",
    [
        "assert np.allclose(found, wanted, rtol=1e-3)",
        "np.testing.assert_allclose(found, wanted)",
        "assert np.count_nonzero(found != wanted) <= 3",
        "assert np.abs(found - wanted).max() <= 1",
        "assert np.max(np.abs(found - wanted)) < 2",
    ],
)
def test_another_tolerance_is_found(line: str) -> None:
    assert list(own_tolerances(line)) == [1]


@pytest.mark.parametrize("suffix", TOLERANCES)
def test_the_table_names_operators_that_exist(suffix: str) -> None:
    assert set(TOLERANCES[suffix]) <= set(FORMATS[suffix].operators())


def test_what_has_no_entry_is_exact() -> None:
    assert str(tolerance_of(".tflite", "ADD")) == "exact"
    assert loosest(".pt2", []) == EXACT
    assert loosest(".pt2", ["aten.relu.default", "aten.mm.default", "aten.add.Tensor"]).share == 0.001
    assert str(Tolerance(2, 0.001, "why")) == "2 steps in at most 0.1 % of the elements: why"


def test_comparisons_refuse_what_is_too_far() -> None:
    wanted = np.zeros(100, dtype=np.int8)
    one, far = wanted.copy(), wanted.copy()
    one[3], far[3] = 1, 2
    assert_within(one, wanted, Tolerance(1, 0.01, "why"))
    for found, tolerance in ((one, EXACT), (far, Tolerance(1, 0.01, "why")), (one, Tolerance(1, 0.009, "why"))):
        with pytest.raises(AssertionError):
            assert_within(found, wanted, tolerance)
    with pytest.raises(AssertionError):
        assert_within(wanted.astype(np.int16), wanted, EXACT)
    with pytest.raises(AssertionError):
        assert_floats_within(np.array([1.0001]), np.array([1.0]), "layer")


# The decorator that makes one test of many variants: what is wrong is found and named, as by a test for each.

ArrayTogether = NDArray[Any]
Failed, Skipped = pytest.fail.Exception, pytest.skip.Exception
VALUES = np.arange(-8, 8)


def clip(element: str, bound: int, *, wrong: bool = False) -> tuple[ir.Module, ArrayTogether, ArrayTogether]:
    """A module, its input and what it gives, or something else."""
    x = VALUES.astype(NUMPY_DTYPES[element])
    module = graph([f"tensor<16x{element}>"], lambda x: build(ClipOp, x, element=element, min=0, max=bound).output)
    wanted = np.clip(x, 0, bound)
    wanted[3] += wrong
    return module, x, wanted


@variants_together
@pytest.mark.parametrize("element", ["i8", "i32"])
@pytest.mark.parametrize(("bound", "wrong"), [(3, None), (5, "i32"), (6, "all"), (7, None)])
def clips(bound: int, wrong: str | None, element: str, fixture: list[str]) -> None:
    fixture.append(f"{element} {bound}")
    assert wrong != "all", "found by the test itself"
    module, x, expected = clip(element, bound, wrong=wrong == element)
    check_compiled(module, "host", [[x]], [[expected]])


def message_of(**fixtures: Any) -> str:
    with pytest.raises(Failed) as caught:
        clips(**fixtures)
    return str(caught.value)


def test_every_variant_runs_and_those_that_are_wrong_are_named() -> None:
    seen: list[str] = []
    message = message_of(fixture=seen)
    assert sorted(seen) == sorted(f"{element} {bound}" for bound in (3, 5, 6, 7) for element in ("i8", "i32"))
    assert message.startswith("3 of 8 variants fail; one alone: VARIANT=")
    assert "variant [bound=5, wrong='i32', element='i32']" in message
    assert "Mismatched elements: 1 / 16" in message
    # The line of the test that handed over what is wrong.
    assert "check_compiled(module, " in message
    assert message.count("found by the test itself") >= 2
    assert "bound=7" not in message


def test_a_variant_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setenv(together.CHOSEN, "bound=5, wrong='i32', element='i32'")
    assert message_of(fixture=seen).startswith("1 of 1 variants fail")
    assert seen == ["i32 5"]
    monkeypatch.setenv(together.CHOSEN, "bound=7")
    clips(fixture=seen)
    assert seen[1:] == ["i8 7", "i32 7"]
    monkeypatch.setenv(together.CHOSEN, "bound=9")
    with pytest.raises(Skipped, match="no variant 'bound=9'"):
        clips(fixture=seen)


def test_what_is_wrong_together_alone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = vars(together)["_joined"]

    def mixed_up(modules: list[ir.Module]) -> ir.Module:
        return joined(modules if len(modules) == 1 else [modules[0], *modules[:0:-1]])

    monkeypatch.setattr(together, "_joined", mixed_up)
    monkeypatch.setenv(together.CHOSEN, "element='i8'")
    assert "only together" in message_of(fixture=[])


def test_several_rounds_and_a_module_that_cannot_be_joined() -> None:
    @variants_together
    @pytest.mark.parametrize("bound", [2, 4])
    def rounds(bound: int) -> None:
        module, x, wanted = clip("i8", bound)
        check_compiled(module, "host", [[x], [x[::-1].copy()]][:bound], [[wanted], [wanted[::-1]]][:bound])
        module, x, wanted = clip("i8", bound, wrong=bound == 4)
        module.operation.attributes["qnn.own"] = ir.UnitAttr.get(module.context)
        check_compiled(module, "generic", [[x]], [[wanted]])

    with pytest.raises(Failed, match=r"1 of 2 variants fail; one alone: VARIANT='bound=4' pytest"):
        rounds()


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (np.array([0], np.float32), np.array([-0.0], np.float32)),
        (np.array([1], np.int8), np.array([1], np.uint8)),
        (np.array([[1]], np.int8), np.array([1], np.int8)),
        (np.array([np.nan], np.float32), np.array([1], np.float32)),
    ],
)
def test_bits_are_compared(found: ArrayTogether, wanted: ArrayTogether) -> None:
    compare = vars(together)["_compare_bits"]
    compare(found, found.copy(), "output 3")
    with pytest.raises(AssertionError, match="output 3"):
        compare(found, wanted, "output 3")


def test_half_of_the_variants_are_chosen_and_always_the_same() -> None:
    def chosen() -> list[bool]:
        found: list[bool] = []

        @variants_together
        @pytest.mark.parametrize("number", range(40))
        def asking(number: int) -> None:
            del number
            found.append(is_chosen())

        asking()
        return found

    assert is_chosen()
    assert 10 < sum(chosen()) < 30
    assert chosen() == chosen()
