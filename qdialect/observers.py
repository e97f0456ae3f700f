"""What may watch a pass manager at work: printing the module around passes, and measuring their time."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TextIO

from qdialect._mlir import ir


class Observer:
    """Is told of every pass; one that `is_composite` is a list of others, each of which it is told of as well."""

    def before(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        """The pass `name` is about to run."""

    def after(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        """The pass `name` has run, and the module is valid."""

    def failed(self, name: str, module: ir.Module) -> None:
        """The pass `name` has failed, or has left an invalid module."""


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
    """Prints the module before or after the passes of these names, or around every pass.

    With `only_changed` a module is printed after a pass only where the pass has changed it, with `on_failure` after a
    pass that has failed and no other. `folder` takes each print as a file of its own, in the place of `stream`.
    """

    names_before: frozenset[str] = frozenset()
    names_after: frozenset[str] = frozenset()
    before_all: bool = False
    after_all: bool = False
    only_changed: bool = False
    on_failure: bool = False
    text_of: Callable[[ir.Module], str] = str
    stream: TextIO | None = None
    folder: Path | None = None
    _contents: list[bytes] = field(default_factory=list[bytes])
    """Of the module before each pass that is at work."""
    _files: int = 0

    def before(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        if self.only_changed:
            self._contents.append(_content(module))
        if name in self.names_before or (self.before_all and not is_composite):
            self._print("Before", name, module)

    def after(self, name: str, module: ir.Module, *, is_composite: bool) -> None:
        is_same = self.only_changed and self._contents.pop() == _content(module)
        is_wanted = name in self.names_after or (self.after_all and not is_composite)
        if is_wanted and not is_same and not self.on_failure:
            self._print("After", name, module)

    def failed(self, name: str, module: ir.Module) -> None:
        if self.on_failure:
            self._print("After", name, module, " Failed")

    def _print(self, when: str, name: str, module: ir.Module, outcome: str = "") -> None:
        text = f"// -----// IR Dump {when} {name}{outcome} //----- //\n{self.text_of(module).rstrip()}\n"
        if self.folder is None:
            print(text, file=self.stream or sys.stderr)
            return
        folder = self.folder / "builtin_module_no-symbol-name"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self._files}_{name}.mlir").write_text(text)
        self._files += 1


def _content(module: ir.Module) -> bytes:
    bytecode = BytesIO()
    module.operation.write_bytecode(bytecode)
    return hashlib.blake2b(bytecode.getbuffer()).digest()


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
