"""Ctrl-C: imports and callbacks of MLIR end before it is handled, and the process compiles again."""

import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from subprocesses import output_of

import qdialect
from qdialect.ir._mlir import ir, walk
from qdialect.support.late_imports import LATE_IMPORTS, UNINTERRUPTED

TEXT = """
func.func @main(%x: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %0 : tensor<2x3xi8>
}
"""
# Ctrl-C while the first module of each of these packages is imported, and while what is lowered needs another one.
INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import qdialect
class Finder:
    names = ["torch_mlir.dialects._arith_ops_gen", "torch_mlir.dialects._func_ops_gen", "qdialect.dialect.movement_ops"]
    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            self.names.remove(name)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
interrupted = 0
while True:
    try:
        qdialect.compile(sys.argv[1], cache=False)
        break
    except KeyboardInterrupt:
        interrupted += 1
print(interrupted, Finder.names, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


class StoppedError(Exception):
    """The error of a handler."""


@pytest.fixture(autouse=True)
def handler() -> Generator[None]:
    def stop(number: int, _: object) -> None:
        raise StoppedError(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGALRM)}
    yield
    assert all(signal.getsignal(number) is stop for number in before)
    for number, previous in before.items():
        signal.signal(number, previous)


@pytest.mark.parametrize("context", [UNINTERRUPTED, LATE_IMPORTS])
def test_handlers_run_at_the_end(context: AbstractContextManager[None]) -> None:
    done = list[str]()

    def work() -> None:
        with context:
            with UNINTERRUPTED:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with pytest.raises(StoppedError, match=str(int(signal.SIGINT))):
        work()
    assert done == ["inner", "outer"]
    with pytest.raises(StoppedError):
        signal.raise_signal(signal.SIGALRM)


def test_other_threads_are_let_alone() -> None:
    def work() -> None:
        with LATE_IMPORTS, UNINTERRUPTED:
            done.append(signal.getsignal(signal.SIGINT))

    done, before = list[object](), signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [before]


def test_callbacks_of_mlir_are_not_interrupted() -> None:
    module, seen = qdialect.parse(TEXT), list[str]()

    def visit(op: ir.Operation) -> ir.WalkResult:
        seen.append(op.name)
        signal.raise_signal(signal.SIGINT)
        return ir.WalkResult.ADVANCE

    with pytest.raises(StoppedError):
        walk(module.operation, visit)
    assert seen == ["builtin.module", "func.func", "qnn.clip", "func.return"]


def test_ctrl_c_in_the_first_compilation(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(TEXT)
    assert output_of(INTERRUPTED, str(tmp_path / "model.mlir")) == "1 [] True\n"


def test_a_command_that_is_interrupted_while_it_starts_shows_no_traceback() -> None:
    for name, is_told in (("qdialect-run", False), ("other", True)):
        start = f"import signal, sys; sys.argv = ['/bin/{name}']; import qdialect.cli"
        ended = f"{start}; signal.signal(signal.SIGINT, signal.default_int_handler); signal.raise_signal(signal.SIGINT)"
        found = subprocess.run([sys.executable, "-c", ended], capture_output=True, text=True, check=False)
        assert (found.returncode, "Traceback" in found.stderr) == (-signal.SIGINT, is_told)
