"""Instrumentation of the pass manager: printing the module around passes, and timing them."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from qdialect.ir._mlir import ir
from qdialect.ir.context import bytecode
from qdialect.ir.module_text import Printing
from qdialect.support.log import LOG, tell, telling


@dataclass(frozen=True)
class Observed:
    """A pass that observers are told of."""

    name: str
    is_composite: bool = False
    """Whether the pass is a list of others, each of which observers are told of as well."""
    anchors: tuple[str, ...] = ()
    """The names of the ops that the pass is nested in, outermost first; empty for a pass on the whole module."""


class Observer:
    """Is told of every pass."""

    def before(self, observed: Observed, module: ir.Module) -> None:
        """The pass is about to run."""

    def after(self, observed: Observed, module: ir.Module) -> None:
        """The pass has run, and the module is valid."""

    def failed(self, observed: Observed, module: ir.Module) -> None:
        """The pass has failed, or has left an invalid module."""


# The anchor that stands for any op.
_ANY = "any"
PATIENCE = 1.0
"""Seconds after which progress is shown."""

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

    Of a pass that is nested in other ops, such as functions, only these are printed, unless `module_scope` is set. With
    `only_changed` an op is printed after a pass only where the pass has changed it, with `on_failure` the whole module
    after a pass that has failed, and after no other. `folder` takes each print as a file of its own, instead of
    `stream`. A location in the text `-` is printed as one in the file `source`.
    """

    names_before: frozenset[str] = frozenset()
    names_after: frozenset[str] = frozenset()
    before_all: bool = False
    after_all: bool = False
    only_changed: bool = False
    on_failure: bool = False
    module_scope: bool = False
    printing: Printing = field(default_factory=Printing)
    source: str = "-"
    stream: TextIO | None = None
    folder: Path | None = None
    _contents: list[list[bytes]] = field(default_factory=list[list[bytes]])
    """Of each pass at work: its ops as they were before."""
    _files: int = 0

    def before(self, observed: Observed, module: ir.Module) -> None:
        ops = self._ops(observed, module)
        if self.only_changed:
            self._contents.append(list(map(_content, ops)))
        if observed.name in self.names_before or (self.before_all and not observed.is_composite):
            self._print("Before", observed.name, ops)

    def after(self, observed: Observed, module: ir.Module) -> None:
        ops = self._ops(observed, module)
        if self.only_changed:
            known = self._contents.pop()
            ops = [op for op in ops if _content(op) not in known]
        is_wanted = observed.name in self.names_after or (self.after_all and not observed.is_composite)
        if is_wanted and not self.on_failure:
            self._print("After", observed.name, ops)

    def failed(self, observed: Observed, module: ir.Module) -> None:
        if self.on_failure:
            self._print("After", observed.name, [module], " Failed")

    def _ops(self, observed: Observed, module: ir.Module) -> list[ir.Module | ir.Operation]:
        """The module, or the ops in it that a nested pass works on."""
        if self.module_scope or not observed.anchors:
            return [module]
        ops = [module.operation]
        for anchor in observed.anchors:
            ops = [inner for op in ops for inner in _nested(op) if anchor in (inner.name, _ANY)]
        return [*ops]

    def _print(self, when: str, name: str, ops: Sequence[ir.Module | ir.Operation], outcome: str = "") -> None:
        for op in ops:
            text = self.printing.text(op, self.source).rstrip()
            self._write(name, f"// -----// IR Dump {when} {name}{outcome} //----- //\n{text}\n")

    def _write(self, name: str, text: str) -> None:
        if self.folder is None:
            print(text, file=self.stream or sys.stderr)
            return
        folder = self.folder / "builtin_module_no-symbol-name"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self._files}_{name}.mlir").write_text(text)
        self._files += 1


def _nested(op: ir.Operation) -> list[ir.Operation]:
    """The ops directly inside of `op` that a pass may work on: those with regions."""
    inner = [one.operation for region in op.regions for block in region.blocks for one in block.operations]
    return [one for one in inner if len(one.regions)]


def _content(op: ir.Module | ir.Operation) -> bytes:
    # Used with one flag alone, and slow to import.
    import hashlib

    return hashlib.blake2b(bytecode(op)).digest()


@dataclass
class Timer(Observer):
    """Measures the wall time of each pass, verification included."""

    seconds: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    _started: float = 0.0

    def before(self, observed: Observed, module: ir.Module) -> None:
        self._started = time.perf_counter()

    def after(self, observed: Observed, module: ir.Module) -> None:
        if not observed.is_composite:
            self.seconds.append((observed.name, time.perf_counter() - self._started))

    def report(self) -> str:
        """A table as MLIR prints it: seconds and share of each pass in the order of running, then the total."""
        total = sum(seconds for _, seconds in self.seconds)
        rows = [*self.seconds, ("Total", total)]
        lines = (f"  {s:9.4f} ({100 * s / total if total else 100.0:5.1f}%)  {name}" for name, s in rows)
        heading = f"{_heading('Execution time report')}\n  Total Execution Time: {total:.4f} seconds\n"
        return "\n".join([heading, "  ----Wall Time----  ----Name----", *lines])


@dataclass
class Statistics(Observer):
    """Notes how often each pass applied each of its patterns; `counts` adds them up over all passes."""

    counts: Counter[str]
    passes: list[tuple[str, Counter[str]]] = field(default_factory=list[tuple[str, Counter[str]]])

    def after(self, observed: Observed, module: ir.Module) -> None:
        if not observed.is_composite:
            self.passes.append((observed.name, self.counts.copy()))
            self.counts.clear()

    def report(self) -> str:
        """A list as MLIR prints it: each pass in the order of running, and its patterns."""
        lines = [_heading("Pass statistics report")]
        for name, counts in self.passes:
            lines += [name, *(f"  (S) {count} {pattern} - rewrites" for pattern, count in counts.items())]
        return "\n".join(lines)


class Progress(Observer):
    """Tells each pass, shows steps on a terminal once all take longer than a second, and logs how long passes took."""

    def __init__(self, what: str) -> None:
        self._what, self._start, self._began = what, time.perf_counter(), 0.0
        self._shown = 0
        """Characters on the line of the terminal."""

    def before(self, observed: Observed, module: ir.Module) -> None:
        self._began = time.perf_counter()
        if not observed.is_composite:
            tell(observed.name)

    def after(self, observed: Observed, module: ir.Module) -> None:
        if not observed.is_composite:
            LOG.debug("pass %s took %.3f s", observed.name, time.perf_counter() - self._began)

    def step(self, name: str) -> None:
        """A step begins."""
        seconds = time.perf_counter() - self._start
        if seconds > PATIENCE and sys.stderr and sys.stderr.isatty():
            self._show(f"qdialect: {self._what}, {seconds:.0f} s: {name}")

    def _show(self, text: str) -> None:
        with suppress(OSError):
            print(f"\r{text:{self._shown}}", end="", file=sys.stderr, flush=True)
        self._shown = len(text)

    def end(self) -> None:
        """Remove the line, and log how long all took."""
        if self._shown:
            self._show("")
            self._show("\r")
        LOG.debug("%s took %.1f s", self._what, time.perf_counter() - self._start)


@contextmanager
def progress_of(what: str) -> Generator[None]:
    """Show and log the progress of the passes that run inside."""
    progress = Progress(what)
    try:
        with observing(progress), telling(progress.step):
            yield
    finally:
        progress.end()


def _heading(title: str) -> str:
    rule = f"==={'-' * 73}==="
    return f"{rule}\n{f'... {title} ...'.center(79).rstrip()}\n{rule}"
