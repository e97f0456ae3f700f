"""What may watch a pass manager at work: printing the module around passes, and measuring their time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TextIO

from qdialect._mlir import ir


class Observer:
    """Is told of every pass; one that `is_composite` is a list of others, each of which it is told of as well."""

    def before(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        """The pass `name` is about to run."""

    def after(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        """The pass `name` has run, and the module is valid."""


_observers: ContextVar[tuple[Observer, ...]] = ContextVar("observers", default=())


@contextmanager
def observing(*observers: Observer) -> Generator[None]:
    """Tell `observers` of every pass that runs inside, in whichever pass manager.

    The first of them is told first before a pass and last after it.
    """
    token = _observers.set((*_observers.get(), *observers))
    try:
        yield
    finally:
        _observers.reset(token)


def active() -> tuple[Observer, ...]:
    """The observers to tell."""
    return _observers.get()


@dataclass
class IRPrinter(Observer):
    """Prints the module before or after the passes of these names, or around every pass."""

    names_before: frozenset[str] = frozenset()
    names_after: frozenset[str] = frozenset()
    before_all: bool = False
    after_all: bool = False
    text_of: Callable[[ir.Module], str] = str
    stream: TextIO | None = None

    def before(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        if name in self.names_before or (self.before_all and not is_composite):
            self._print("Before", name, module)

    def after(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        if name in self.names_after or (self.after_all and not is_composite):
            self._print("After", name, module)

    def _print(self, when: str, name: str, module: ir.Module) -> None:
        stream = self.stream or sys.stderr
        print(f"// -----// IR Dump {when} {name} //----- //\n{self.text_of(module).rstrip()}\n", file=stream)


@dataclass
class Timer(Observer):
    """Measures the wall time of each pass, verification included."""

    seconds: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    _started: float = 0.0

    def before(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        self._started = time.perf_counter()

    def after(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        if not is_composite:
            self.seconds.append((name, time.perf_counter() - self._started))

    def report(self) -> str:
        """A table as MLIR prints it: seconds and share of each pass in the order of running, then the total."""
        total = sum(seconds for _, seconds in self.seconds)
        rows = [*self.seconds, ("Total", total)]
        lines = (f"  {s:9.4f} ({100 * s / total if total else 100.0:5.1f}%)  {name}" for name, s in rows)
        rule = f"==={'-' * 73}==="
        title = "... Execution time report ...".center(79).rstrip()
        heading = f"{rule}\n{title}\n{rule}\n  Total Execution Time: {total:.4f} seconds\n"
        return "\n".join([heading, "  ----Wall Time----  ----Name----", *lines])
