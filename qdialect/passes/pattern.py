"""Rewrite patterns, and the driver that applies them.

The pattern driver of MLIR's bindings does not report why a pattern failed to match.  Here a pattern first *checks*,
which is a pure function: it returns a match, a `MatchFailure` with its reason, or None where the op is not a candidate.
Only then does it *rewrite*, which cannot fail.  `explain_matches` collects the reasons.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.ir._mlir import ir, walk
from qdialect.ir.context import location_of
from qdialect.ir.locations import joined, names_of
from qdialect.passes.pass_base import Pass
from qdialect.support.diagnostics import Diagnostic, PassError, Severity

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

    def __init__(self, graveyard: _Graveyard) -> None:
        self._graveyard = graveyard
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
        """Erase `op`, wherever it is; only ops that are erased by the same rewrite may use its results."""
        self._doomed.append(op.operation)

    def flush(self) -> None:
        """Erase what is due; raises `PassError` where an op that stays uses a result of one that goes."""
        locations = self._graveyard.bury(self._doomed)
        self._doomed = []
        for value in self._successors:
            _locate(value, locations)


class _Graveyard:
    """Where erased ops lie until a round is over.

    The walk of a round holds handles of ops that are visited later.  The bindings do not tell which of them dangle, so
    an erased op is not freed before the round ends.
    """

    def __init__(self, context: ir.Context) -> None:
        location = ir.Location.unknown(context)
        self._module = ir.Module.create(location)
        self._placeholder = self._module.body.add_argument(ir.NoneType.get(context), location)

    def holds(self, operation: ir.Operation) -> bool:
        """Whether `operation`, or an op around it, was erased."""
        return _is_inside(operation, [self._module.operation])

    def bury(self, doomed: Sequence[ir.Operation]) -> list[ir.Location]:
        """Erase `doomed` and the producers that nobody uses without them; returns their locations, but of constants.

        Raises `PassError`, and erases nothing, where an op outside of `doomed` uses a result.
        """
        for operation in doomed:
            _check_users(operation, doomed)
        locations: list[ir.Location] = []
        cut_off = [(operation, self._cut_off(operation)) for operation in doomed]
        for operation, producers in cut_off:
            self._lay(operation, locations)
            pending = producers[::-1]
            while pending:
                producer = pending.pop()
                # What two erased ops used is gone with the first of them.
                if not self.holds(producer) and _is_dead(producer):
                    pending += self._cut_off(producer)[::-1]
                    self._lay(producer, locations)
        return locations

    def _lay(self, operation: ir.Operation, locations: list[ir.Location]) -> None:
        if self.holds(operation):
            return
        self._module.body.append(operation)
        if operation.name not in CONSTANT_OPS:
            locations.append(operation.location)

    def _cut_off(self, operation: ir.Operation) -> list[ir.Operation]:
        """Let `operation`, and what is inside of it, use nothing; returns the producers of its operands."""
        owners = [value.owner for value in operation.operands]
        for user in _inside(operation):
            for index in range(len(user.operands)):
                user.operands[index] = self._placeholder
        return [owner.operation for owner in owners if not isinstance(owner, ir.Block)]


class Pattern(ABC, Generic[M]):
    """A rewrite with one op as its root; one that lacks a method, or misspells it, cannot be instantiated.

    `check` must not change anything; `rewrite` gets what `check` returned and must not fail.
    """

    name: ClassVar[str]
    roots: ClassVar[tuple[str, ...]]

    @abstractmethod
    def check(self, op: Any) -> M | MatchFailure | None:
        """The match at the root `op`, a match failure with its reason, or None where `op` is not a candidate."""

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
    """Collect a remark for every match failure of the passes that run inside, each once, in the order of the passes."""
    remarks: list[Diagnostic] = []
    token = _explanations.set(remarks)
    try:
        yield remarks
    finally:
        _explanations.reset(token)


def is_explained() -> bool:
    """Whether `explain_matches` collects the reasons of match failures."""
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
    operations = _erase_dead(_operations(module))
    budget = _REWRITES_PER_OP * (1 + len(operations))
    total = 0
    while True:
        rewrites, remarks = _round(module.context, operations, by_root)
        operations = _operations(module) if rewrites else []
        total += rewrites
        if rewrites == 0:
            _record(remarks)
            return total
        if total > budget:
            names = ", ".join(pattern.name for pattern in patterns)
            raise PassError(f"patterns [{names}] must reach an end, but {total} rewrites did not")


def _round(
    context: ir.Context, operations: Sequence[ir.Operation], by_root: dict[str, list[Pattern[Any]]]
) -> tuple[int, list[Diagnostic]]:
    graveyard = _Graveyard(context)
    rewrites = 0
    remarks: list[Diagnostic] = []
    for operation in operations:
        if operation.name in by_root and not graveyard.holds(operation):
            rewriter = Rewriter(graveyard)
            rewrites += _apply_first(operation.opview, by_root[operation.name], rewriter, remarks.append)
    return rewrites, remarks


def _apply_first(
    op: ir.OpView, patterns: Sequence[Pattern[Any]], rewriter: Rewriter, remark: Callable[[Diagnostic], None]
) -> bool:
    """Rewrite with the first pattern that matches; returns whether one did."""
    for pattern in patterns:
        match = pattern.check(op)
        if isinstance(match, MatchFailure):
            if is_explained():
                remark(_remark(pattern.name, op.operation, match))
        elif match is not None:
            pattern.rewrite(op, match, rewriter)
            rewriter.flush()
            return True
    return False


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
    return _inside(module.operation)


def _inside(root: ir.Operation) -> list[ir.Operation]:
    """`root` and the ops of its regions, in program order."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        found.append(operation)
        return ir.WalkResult.ADVANCE

    walk(root, visit)
    return found


def _is_inside(operation: ir.Operation, ancestors: Sequence[ir.Operation]) -> bool:
    """Whether `operation` is one of `ancestors`, or in a region of one."""
    current: ir.Operation | None = operation
    while current is not None and current not in ancestors:
        parent = current.parent
        current = parent.operation if parent is not None else None
    return current is not None


def _check_users(operation: ir.Operation, doomed: Sequence[ir.Operation]) -> None:
    for use in (use for result in operation.results for use in result.uses):
        if not _is_inside(use.owner.operation, doomed):
            message = f"'{operation.name}' op must not be erased while '{use.owner.name}' op uses its result"
            raise PassError(message, (Diagnostic(Severity.ERROR, message, *location_of(operation.location)),))


def _erase_dead(operations: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Those that are left, in their order."""
    left: list[ir.Operation] = []
    for operation in reversed(operations):
        if _is_dead(operation):
            operation.erase()
        else:
            left.append(operation)
    return left[::-1]


def _locate(value: ir.Value, locations: Sequence[ir.Location]) -> None:
    producer = value.owner
    if not isinstance(producer, ir.Block):
        producer.operation.location = joined([producer.operation.location, *locations])


def _is_dead(operation: ir.Operation) -> bool:
    is_pure = operation.name.split(".")[0] in _PURE_DIALECTS
    return is_pure and not any(next(iter(result.uses), None) for result in operation.results)
