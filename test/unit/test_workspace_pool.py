"""The pool of workspaces: bounded, waited for, and never lost."""

import gc
import threading
import time
from collections.abc import Callable

import pytest
from deadline import HANG
from subprocesses import output_of

from qdialect.runtime.memory import MAX, WorkspacePool, checked
from qdialect.support.diagnostics import CompileError


class Memory:
    """A workspace that tells apart who has it."""

    def __init__(self) -> None:
        self.is_spare = False
        self.users = 0


def counted_pool(limit: int) -> tuple[WorkspacePool[Memory], list[Memory]]:
    """A pool, and the workspaces that it has made so far."""
    made: list[Memory] = []

    def make() -> Memory:
        made.append(Memory())
        return made[-1]

    return WorkspacePool(make, limit), made


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


def test_one_caller_needs_one_workspace() -> None:
    pool, made = counted_pool(4)
    assert [used(pool) for _ in range(10)] == [1] * 10
    assert len(made) == 1


def test_many_callers_share_few_and_none_is_shared() -> None:
    pool, made = counted_pool(3)
    found: list[int] = []
    threads = [in_another_thread(lambda: found.extend(used(pool, 1e-4) for _ in range(50))) for _ in range(8)]
    for thread in threads:
        thread.join(HANG)
    assert found == [1] * 400
    assert len(made) <= 3


def test_each_of_the_allowed_callers_gets_a_workspace_at_once() -> None:
    pool, made = counted_pool(3)
    all_have_one = threading.Barrier(4)

    def hold() -> None:
        held = pool.take()
        all_have_one.wait(HANG)
        pool.give_back(held)

    threads = [in_another_thread(hold) for _ in range(3)]
    all_have_one.wait(HANG)
    for thread in threads:
        thread.join(HANG)
    assert len(made) == 3


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


class Interrupted(list[Memory]):
    """A list during whose changes a signal handler makes a call."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call = call

    def append(self, item: Memory, /) -> None:
        self._call()
        super().append(item)


def test_a_call_while_a_workspace_is_returned_gets_a_spare_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = WorkspacePool(Memory, 1)
    held = pool.take()
    found: list[Memory] = []

    def call() -> None:
        found.append(pool.take())
        pool.give_back(found[-1])

    monkeypatch.setattr(pool, "_idle", Interrupted(call))
    pool.give_back(held)
    assert found[0].is_spare
    assert pool.take() is held


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


def test_a_forked_process_has_what_other_threads_had() -> None:
    output_of(
        "import os, threading\n"
        "from qdialect.runtime.memory import WorkspacePool\n"
        "class Memory: is_spare = False\n"
        "pool = WorkspacePool(Memory, 2)\n"
        "taken, end = threading.Barrier(3), threading.Event()\n"
        "def hold():\n"
        "    held = pool.take()\n"
        "    taken.wait()\n"
        "    end.wait()\n"
        "    pool.give_back(held)\n"
        "for _ in range(2): threading.Thread(target=hold, daemon=True).start()\n"
        "taken.wait()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    found = [pool.take(), pool.take()]\n"
        "    os._exit(any(one.is_spare for one in found))\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "end.set()\n"
    )
