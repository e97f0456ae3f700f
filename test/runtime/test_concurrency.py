"""Python threads, forks and signal handlers: nothing crashes, hangs or computes something else."""

import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bounds import HANG
from subprocesses import IN_THREADS, output_of

from qdialect.runtime.memory import MAX, WorkspacePool, checked
from qdialect.support.diagnostics import CompileError

THREADS, ROUNDS = 8, 6

PROLOGUE = """
import gc, os, signal, sys, threading, time
import numpy as np
import qdialect

TEXT = '''func.func @main(%x: tensor<{n}xi8>) -> tensor<{n}xi8> {
  %0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<{n}xi8>) -> tensor<{n}xi8>
  func.return %0 : tensor<{n}xi8>
}'''

def text(n):
    return TEXT.replace("{n}", str(n))

def child_ends(work, seconds=900):
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False
"""

COMPILE = """
array = np.arange(-8, 8, dtype=np.int8)
def work(_):
    for _ in range(int(sys.argv[2])):
        found = qdialect.compile(qdialect.parse(text(16)))(array)
        assert (found == array.clip(-5, 9)).all()
in_threads(work, int(sys.argv[1]))
"""

ONE_MODULE = """
array = np.arange(-8, 8, dtype=np.int8)
module = qdialect.parse(text(16))
def work(_):
    for _ in range(10):
        assert (qdialect.compile(module)(array) == array.clip(-5, 9)).all()
        assert qdialect.parse(text(4), module.context).context is module.context
in_threads(work)
"""

OTHER_WORK = """
from qdialect.reference import interpreter
array = np.arange(-8, 8, dtype=np.int8)
def work(_):
    for _ in range(10):
        module = qdialect.parse(text(16))
        qdialect.PassManager.parse("fuse-qnn,canonicalize,cse").run(module)
        (found,) = interpreter.run(module, [array])
        assert (found == array.clip(-5, 9)).all()
        try:
            qdialect.parse(text(16).replace("max = 9", "max = 900"))
        except qdialect.ParseError as error:
            assert "900" in str(error)
        else:
            raise AssertionError("no error")
in_threads(work)
"""

GARBAGE = """
import queue
left = queue.Queue(maxsize=4)
def produce(_):
    for _ in range(20):
        module = qdialect.parse(text(16))
        cycle = [module, module.body.operations[0], module.context]
        cycle.append(cycle)
        left.put(cycle)
        del module, cycle
def consume():
    for _ in range(80):
        left.get()
        gc.collect(0)
consumer = threading.Thread(target=consume)
consumer.start()
in_threads(produce, 4)
consumer.join()
gc.collect()
"""

IMPORT = """
from qdialect.frontends.tosa import import_tosa
TOSA = '''func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = tosa.clamp %x {min_val = -5 : i8, max_val = 9 : i8} : (tensor<4xi8>) -> tensor<4xi8>
  func.return %0 : tensor<4xi8>
}'''
import pathlib
path = pathlib.Path(sys.argv[1])
path.write_text(TOSA)
def work(_):
    for _ in range(10):
        assert "qnn.clip" in str(import_tosa(path))
in_threads(work)
"""

BACKEND = """
import torch
import torch.ao.quantization.fx._decomposed
from qdialect.driver.torch_backend import compile_captured
ops = torch.ops.quantized_decomposed
def work(index):
    scale = 0.5
    def function(x):
        values = ops.quantize_per_tensor.default(x, scale, 3, -128, 127, torch.int8)
        return ops.dequantize_per_tensor.default(values, scale, 3, -128, 127, torch.int8)
    data = torch.arange(-4.0, 4.0)
    assert torch.equal(torch.compile(function, backend=compile_captured)(data), function(data))
in_threads(work, 4)
"""

FROM_A_HANDLER = """
qdialect.parse(text(4))  # what it needs is imported: a handler may not interrupt that
parsed = []
def handler(*_):
    parsed.append(qdialect.parse(text(4)))
signal.signal(signal.SIGALRM, handler)
for n in range(60):
    signal.setitimer(signal.ITIMER_REAL, 0.0003 * (n + 1))
    qdialect.parse(text(16))
signal.setitimer(signal.ITIMER_REAL, 0)
assert parsed
"""


def test_compilations_in_many_threads_neither_crash_nor_differ() -> None:
    output_of(IN_THREADS + PROLOGUE + COMPILE, str(THREADS), str(ROUNDS))


@pytest.mark.parametrize("program", [ONE_MODULE, OTHER_WORK, GARBAGE, FROM_A_HANDLER])
def test_contexts_and_modules_in_many_threads(program: str) -> None:
    output_of(IN_THREADS + PROLOGUE + program)


def test_imports_in_many_threads(tmp_path: Path) -> None:
    output_of(IN_THREADS + PROLOGUE + IMPORT, str(tmp_path / "model.mlir"))


def test_the_torch_backend_in_many_threads() -> None:
    pytest.importorskip("torch")
    output_of(IN_THREADS + PROLOGUE + BACKEND)


FORK_IN_A_COMPILATION = """
stop = False
def busy():
    while not stop:
        qdialect.compile(qdialect.parse(text(16)))
def work():
    found = qdialect.compile(qdialect.parse(text(16)))(np.arange(-8, 8, dtype=np.int8))
    assert found.tolist() == [-5] * 4 + list(range(-4, 8)), found
thread = threading.Thread(target=busy)
thread.start()
try:
    assert all(child_ends(work) for _ in range(12))
finally:
    stop = True
    thread.join()
"""

FORK_IN_AN_IMPORT = """
reached = threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1] and not reached.is_set():
            reached.set()
            time.sleep(0.5)
sys.meta_path.insert(0, Slow())
def work():
    found = qdialect.compile(qdialect.parse(text(16)))(np.arange(-8, 8, dtype=np.int8))
    assert found.tolist() == [-5] * 4 + list(range(-4, 8)), found
thread = threading.Thread(target=work)
thread.start()
assert reached.wait(900)
ended = child_ends(work)
thread.join()
assert ended
"""

FORK_BEFORE_LOGGING = """
from qdialect.support.late_imports import LATE_IMPORTS
reached = threading.Event()
def late():
    with LATE_IMPORTS:
        import logging
        reached.set()
        time.sleep(0.5)
        logging.getLogger("late")
thread = threading.Thread(target=late)
thread.start()
assert reached.wait(900)
assert child_ends(lambda: None)
thread.join()
"""

CHILD_AND_PARENT = """
from qdialect.runtime import memory
for size in (1 << 10, 1 << 22):
    block = memory.allocate(size)
    block[:] = 5
    def work():
        assert (block == 5).all()
        block[:] = 7
    assert child_ends(work)
    assert (block == 5).all(), size
"""

HANDLER_IN_A_CALL = """
executable = qdialect.compile(qdialect.parse(text(64)))
array, other = np.zeros(64, np.int8), np.full(64, 3, np.int8)
output, inner = np.empty_like(array), np.empty_like(array)
calls = 0
def handler(*_):
    global calls
    executable.run([other], [inner])
    assert (inner == 3).all()
    calls += 1
signal.signal(signal.SIGALRM, handler)
rounds = 0
while calls < 1000:
    rounds += 1
    signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + rounds % 50))
    executable.run([array], [output])
    assert (output == 0).all()
    output[:] = 9
signal.setitimer(signal.ITIMER_REAL, 0)

# And where the handler's own call is interrupted in turn.
def failing(*_):
    raise KeyboardInterrupt
def nested(*_):
    signal.signal(signal.SIGALRM, failing)
    try:
        signal.setitimer(signal.ITIMER_REAL, 2e-5)
        while True:
            executable.run([other], [inner])
    except KeyboardInterrupt:
        pass
for _ in range(300):
    signal.signal(signal.SIGALRM, nested)
    signal.setitimer(signal.ITIMER_REAL, 1e-5)
    for _ in range(20):
        output[:] = 9
        executable.run([array], [output])
        assert (output == 0).all()
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
"""

OTHERS_OPENMP = """
from ctypes import CDLL
from qdialect.runtime import compile_module, openmp
openmp.addresses()
library = CDLL(openmp.NAMES[0])
levels = library.omp_get_max_active_levels()
assert levels > 0
array = np.arange(1 << 12, dtype=np.int32).astype(np.int8)
executable = compile_module(qdialect.parse(text(1 << 12)), threads=2, min_cycles=0)
binding = executable.bind([array], [np.empty_like(array)])
executable(array)
def work():
    assert (executable(array) == array.clip(-5, 9)).all()
    binding()
    assert (binding.outputs[0] == array.clip(-5, 9)).all()
    assert (compile_module(qdialect.parse(text(1 << 12)), threads=2, min_cycles=0)(array) == array.clip(-5, 9)).all()
    assert library.omp_get_max_active_levels() == levels
assert child_ends(work)
assert library.omp_get_max_active_levels() == levels
"""


@pytest.mark.parametrize(
    "program", [FORK_IN_A_COMPILATION, FORK_BEFORE_LOGGING, CHILD_AND_PARENT, HANDLER_IN_A_CALL, OTHERS_OPENMP]
)
def test_forks_and_handlers(program: str) -> None:
    output_of(IN_THREADS + PROLOGUE + program)


@pytest.mark.parametrize(
    "name", ["qdialect.runtime", "qdialect.passes.fuse_residual", "torch_mlir.dialects._linalg_ops_gen"]
)
def test_a_fork_in_an_import(name: str) -> None:
    output_of(IN_THREADS + PROLOGUE + FORK_IN_AN_IMPORT, name)


# The pool of workspaces: bounded, waited for, and never lost.


class Memory:
    """A workspace that tells apart who has it."""

    def __init__(self) -> None:
        self.is_spare = False
        self.users = 0


def used(pool: WorkspacePool[Memory], seconds: float = 0.0) -> int:
    """How many have a workspace at the same time as this caller."""
    workspace = None
    try:
        workspace = pool.take()
        workspace.users += 1
        time.sleep(seconds)
        users = workspace.users
        workspace.users -= 1
        return users
    finally:
        pool.give_back(workspace)


def in_another_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_caller_waits_where_all_are_taken() -> None:
    pool = WorkspacePool(Memory, 1)
    held = pool.take()
    got = threading.Event()

    def second() -> None:
        pool.give_back(pool.take())
        got.set()

    in_another_thread(second)
    assert not got.wait(0.2)
    pool.give_back(held)
    assert got.wait(HANG)


def test_a_caller_that_waits_is_not_passed_by() -> None:
    pool = WorkspacePool(Memory, 1)
    stop, got = threading.Event(), threading.Event()

    def greedy() -> None:
        while not stop.is_set():
            used(pool, 1e-4)

    def patient() -> None:
        for _ in range(50):
            used(pool)
        got.set()

    thread = in_another_thread(greedy)
    in_another_thread(patient)
    is_served = got.wait(HANG)
    stop.set()
    thread.join(HANG)
    assert is_served


def test_a_call_within_a_call_of_the_thread_gets_a_spare_one() -> None:
    pool = WorkspacePool(Memory, 1)
    outer = pool.take()
    inner = pool.take()
    assert inner is not outer
    assert inner.is_spare
    pool.give_back(inner)
    pool.give_back(outer)
    assert pool.take() is outer


def test_a_lost_workspace_is_made_again() -> None:
    pool = WorkspacePool(Memory, 1)
    for _ in range(5):
        lost = pool.take()
        pool.give_back(None)
        del lost
        gc.collect()
    assert not pool.take().is_spare


def test_a_workspace_that_cannot_be_made_may_be_made_later() -> None:
    problems = [CompileError("too large")] * 2

    def make() -> Memory:
        if problems:
            raise problems.pop()
        return Memory()

    pool = WorkspacePool(make, 1)
    for _ in range(2):
        with pytest.raises(CompileError, match="too large"):
            pool.take()
        pool.give_back(None)
    assert not pool.take().is_spare


@pytest.mark.parametrize("count", [0, -1, MAX + 1, 1.5, True, "2"])
def test_counts_that_are_none(count: object) -> None:
    with pytest.raises(CompileError, match=f"workspaces must be an integer from 1 to {MAX}, but got {count!r}"):
        checked(count)
