"""LLVM at work while other threads of Python go on, and forks that wait for it."""

import os
import time
from threading import Event, Thread

import pytest

from qdialect._mlir import ExecutionEngine, ir
from qdialect.aot.code_generation import FORKS, address_of
from qdialect.context import make_context

STEPS = 700
SECONDS_OF_A_TEST = 60


def engine_of(steps: int) -> ExecutionEngine:
    """A module whose code takes LLVM longer the more steps there are."""
    lines = ["%v0 = llvm.load %from : !llvm.ptr -> i64"]
    for step in range(steps):
        lines.append(f"%w{step} = llvm.mul %v{step}, %v{max(step - 7, 0)} : i64")
        lines.append(f"%v{step + 1} = llvm.xor %w{step}, %v{max(step - 3, 0)} : i64")
    lines.append(f"llvm.store %v{steps}, %from : i64, !llvm.ptr")
    text = "llvm.func @main(%from: !llvm.ptr) {\n" + "\n".join(lines) + "\nllvm.return\n}"
    with make_context():
        return ExecutionEngine(ir.Module.parse(text), opt_level=0)


def test_the_interpreter_lock_is_free() -> None:
    done = Event()
    seconds = [0.0]

    def count() -> None:
        while not done.is_set():
            start = time.thread_time()
            is_at_work = bool(FORKS.inside)
            sum(range(100))
            if is_at_work:
                seconds[0] += time.thread_time() - start

    engine, counter = engine_of(STEPS), Thread(target=count)
    counter.start()
    address_of(engine, "main")
    done.set()
    counter.join()
    # With the lock taken, at most the moments before and after LLVM.
    assert seconds[0] > 0.01


def test_an_unknown_function() -> None:
    with pytest.raises(RuntimeError, match="Unknown function other"):
        address_of(engine_of(1), "other")


def test_a_fork_waits_for_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    is_inside, is_waited_for = Event(), Event()
    order: list[object] = []
    wait = FORKS.condition.wait

    def waited() -> bool:
        is_waited_for.set()
        return wait()

    def in_llvm() -> None:
        with FORKS.held_up():
            is_inside.set()
            order.append(is_waited_for.wait(SECONDS_OF_A_TEST))

    monkeypatch.setattr(FORKS.condition, "wait", waited)
    other = Thread(target=in_llvm)
    other.start()
    is_inside.wait()
    child = os.fork()
    if not child:
        os._exit(0)
    order.append("forked")
    other.join()
    os.waitpid(child, 0)
    assert order == [True, "forked"]
    with FORKS.held_up():
        pass
