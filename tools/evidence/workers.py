"""Work in processes of their own, which may die or take too long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import TimeoutError as TooLongError
from multiprocessing import get_context
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from tools.evidence.outcomes import Outcome, Rank

Task = TypeVar("Task")
# A worker is replaced after so many tasks: frameworks keep memory.
_TASKS_OF_A_WORKER = 100


def outcomes(
    work: Callable[[Task], Outcome], tasks: Iterable[Task], *, jobs: int, seconds: float
) -> Iterator[tuple[Task, Outcome]]:
    """Each task with its outcome, in order; one that dies is a crash, one that takes longer than `seconds` slow."""
    # Pebble's types name another class of connections than those of the standard library.
    context: Any = get_context("spawn")
    with ProcessPool(max_workers=jobs, max_tasks=_TASKS_OF_A_WORKER, context=context) as pool:
        futures = [(task, pool.schedule(work, args=[task], timeout=seconds)) for task in tasks]
        for task, future in futures:
            try:
                yield task, future.result()
            except TooLongError:
                yield task, Outcome(Rank.SLOW, f"no answer in {seconds:g} s")
            except ProcessExpired as error:
                yield task, Outcome(Rank.CRASH, f"the process ended with {error.exitcode}")
            except Exception as error:
                yield task, Outcome(Rank.CRASH, f"the measurement failed: {type(error).__name__}: {error}"[:160])
