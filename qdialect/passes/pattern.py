"""Patterns: what to look for, why not, and how to rewrite; with the driver that applies them.

The bindings' own pattern driver has no match-failure notes and no dynamic legality.  Here a pattern first *checks*: a
pure function that answers with a match, a `MatchFailure` with its reason, or None where the op is no candidate at all.  Only
then it *rewrites*, which cannot fail any more.  `explain_matches` collects the reasons.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from qdialect._mlir import ir
from qdialect.context import location_of
from qdialect.diagnostics import Diagnostic, PassError, Severity
from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.locations import joined, names_of
from qdialect.passes.pass_base import Pass

M = TypeVar("M")

# Rewrites per op of the module after which patterns are taken to feed each other for ever.
_REWRITES_PER_OP = 50
_PURE_DIALECTS = ("qnn", "arith", "math", "tensor")


@dataclass(frozen=True)
class MatchFailure:
    """A candidate that a pattern does not rewrite, with the reason a user is shown."""

    reason: str


class Rewriter:
    """What a pattern's `rewrite` may do to the module.

    An op is erased when `rewrite` has returned, so it stays readable until then; so do the producers that lose their
    last use with it.  The op that stands for them afterwards is located where all of them were.
    """

    def __init__(self) -> None:
        self._doomed: list[ir.Operation] = []
        self._successors: list[ir.Value] = []

    @contextmanager
    def before(self, op: ir.OpView) -> Generator[None]:
        """Create ops in front of `op`, with its location."""
        with ir.InsertionPoint(op), op.location:
            yield

    def replace(self, op: ir.OpView, value: ir.Value) -> None:
        """Let `value` stand wherever the one result of `op` stood, and erase `op`.

        What an importer noted on `op` (attributes with a dialect prefix) goes on to the op that computes `value`.
        """
        _hand_on_notes(op, value)
        op.results[0].replace_all_uses_with(value)
        self._successors.append(value)
        self.erase(op)

    def erase(self, op: ir.OpView) -> None:
        """Erase `op`, whose results have no use."""
        self._doomed.append(op.operation)

    def flush(self) -> set[int]:
        """Erase what is due; returns the hashes of the erased ops, which must not be touched any more."""
        erased: set[int] = set()
        places: list[ir.Location] = []
        doomed, self._doomed = self._doomed, []
        for operation in doomed:
            _erase_with_producers(operation, erased, places)
        for value in self._successors:
            _locate(value, places)
        return erased


class Pattern(ABC, Generic[M]):
    """A rewrite with one op as its root; one that lacks a method, or misspells it, cannot be instantiated.

    `check` must not change anything; `rewrite` gets what `check` returned and must not fail.
    """

    name: ClassVar[str]
    roots: ClassVar[tuple[str, ...]]

    @abstractmethod
    def check(self, op: Any) -> M | MatchFailure | None:
        """The match at the root `op`, a reason why there is none, or None where `op` is no candidate."""

    @abstractmethod
    def rewrite(self, op: Any, match: M, rewriter: Rewriter) -> None:
        """Rewrite at the root `op`."""


class PatternPass(Pass):
    """A pass that applies patterns until none of them matches."""

    @abstractmethod
    def patterns(self) -> Sequence[Pattern[Any]]:
        """The patterns; where several match one op the first wins."""

    def run(self, module: ir.Module) -> None:
        with module.context:
            apply_patterns(module, self.patterns())


_explanations: ContextVar[list[Diagnostic] | None] = ContextVar("explanations", default=None)


@contextmanager
def explain_matches() -> Generator[list[Diagnostic]]:
    """Collect a remark for every refusal of the passes that run inside, each once, in the order of the passes."""
    remarks: list[Diagnostic] = []
    token = _explanations.set(remarks)
    try:
        yield remarks
    finally:
        _explanations.reset(token)


def is_explained() -> bool:
    """Whether somebody collects the reasons of refusals."""
    return _explanations.get() is not None


def explain(name: str, op: ir.Operation, failure: MatchFailure) -> None:
    """Add a remark that the pattern `name` left `op` alone, for those who collect them."""
    _record([_remark(name, op, failure)])


def apply_patterns(module: ir.Module, patterns: Sequence[Pattern[Any]]) -> int:
    """Apply `patterns` to every op of `module` until none matches; returns the number of rewrites.

    Ops are visited in program order, round after round.  Ops without side effects that nobody uses are erased.  Raises
    `PassError` when patterns undo each other's work and no end is in sight.
    """
    by_root: dict[str, list[Pattern[Any]]] = {}
    for pattern in patterns:
        for root in pattern.roots:
            by_root.setdefault(root, []).append(pattern)
    _erase_dead(module)
    budget = _REWRITES_PER_OP * (1 + len(_operations(module)))
    total = 0
    while True:
        rewrites, remarks = _round(module, by_root)
        total += rewrites
        if rewrites == 0:
            _record(remarks)
            return total
        if total > budget:
            names = ", ".join(pattern.name for pattern in patterns)
            raise PassError(f"patterns [{names}] must reach an end, but {total} rewrites did not")


def _round(module: ir.Module, by_root: dict[str, list[Pattern[Any]]]) -> tuple[int, list[Diagnostic]]:
    erased: set[int] = set()
    rewrites = 0
    remarks: list[Diagnostic] = []
    for operation in _operations(module):
        # An erased op's handle dangles: its hash, which is its address, is all that may be asked for.
        if hash(operation) in erased or operation.name not in by_root:
            continue
        gone = _apply_first(operation.opview, by_root[operation.name], remarks.append)
        rewrites += gone is not None
        erased.update(gone or ())
    return rewrites, remarks


def _apply_first(
    op: ir.OpView, patterns: Sequence[Pattern[Any]], remark: Callable[[Diagnostic], None]
) -> set[int] | None:
    """Rewrite with the first pattern that matches; returns the hashes of the erased ops, None where none matches."""
    for pattern in patterns:
        match = pattern.check(op)
        if isinstance(match, MatchFailure):
            remark(_remark(pattern.name, op.operation, match))
        elif match is not None:
            rewriter = Rewriter()
            pattern.rewrite(op, match, rewriter)
            return rewriter.flush()
    return None


def _hand_on_notes(op: ir.OpView, value: ir.Value) -> None:
    producer = value.owner
    if isinstance(producer, ir.Block):
        return
    for name, attribute in op.attributes.items():
        if "." in name and name not in producer.attributes:
            producer.attributes[name] = attribute


def _remark(name: str, op: ir.Operation, failure: MatchFailure) -> Diagnostic:
    file, line, column = location_of(op.location)
    names = names_of(op.location)
    node = f" at node '{', '.join(names)}'" if names and not file else ""
    return Diagnostic(Severity.REMARK, f"[{name}] '{op.name}'{node} {failure.reason}", file, line, column)


def _record(remarks: Sequence[Diagnostic]) -> None:
    recorded = _explanations.get()
    if recorded is not None:
        recorded.extend(remark for remark in dict.fromkeys(remarks) if remark not in recorded)


def _operations(module: ir.Module) -> list[ir.Operation]:
    """All ops in program order, an op before those of its regions."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _erase_dead(module: ir.Module) -> None:
    for operation in reversed(_operations(module)):
        if _is_dead(operation):
            operation.erase()


def _locate(value: ir.Value, places: Sequence[ir.Location]) -> None:
    producer = value.owner
    if not isinstance(producer, ir.Block):
        producer.operation.location = joined([producer.operation.location, *places])


def _erase_with_producers(operation: ir.Operation, erased: set[int], places: list[ir.Location]) -> None:
    """Erase `operation` and the producers that nobody uses without it; note who they were and where, but constants."""
    pending = [(hash(operation), operation)]
    while pending:
        address, dead = pending.pop()
        # What two erased ops used is gone with the first of them.
        if address in erased or (dead is not operation and not _is_dead(dead)):
            continue
        producers = {hash(o): o.operation for o in (v.owner for v in dead.operands) if isinstance(o, ir.OpView)}
        erased.add(address)
        if dead.name not in CONSTANT_OPS:
            places.append(dead.location)
        dead.erase()
        pending += reversed(producers.items())


def _is_dead(operation: ir.Operation) -> bool:
    is_pure = operation.name.split(".")[0] in _PURE_DIALECTS
    return is_pure and not any(next(iter(result.uses), None) for result in operation.results)
