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

# After this many rewrites per op of the module, patterns are assumed not to terminate.
_REWRITES_PER_OP = 50
_PURE_DIALECTS = ("qnn", "arith", "math", "tensor")


@dataclass(frozen=True)
class MatchFailure:
    """A candidate that a pattern does not rewrite, with the reason that users see."""

    reason: str


class Rewriter:
    """The changes that a pattern's `rewrite` may make to the module.

    An op is erased when `rewrite` has returned, so it stays readable until then; so do the producers that lose their
    last use with it.  The op that replaces them gets the fused location of all of them.
    """

    def __init__(self, detached: _DetachedOps) -> None:
        self._detached = detached
        self._pending_erase: list[ir.Operation] = []
        self._successors: list[ir.Value] = []

    @contextmanager
    def before(self, op: ir.OpView) -> Generator[None]:
        """Create ops in front of `op`, with its location."""
        with ir.InsertionPoint(op), op.location:
            yield

    def replace(self, op: ir.OpView, value: ir.Value) -> None:
        """Replace all uses of the one result of `op` by `value`, and erase `op`.

        Discardable attributes of `op` (those with a dialect prefix) are kept on the op that computes `value`.
        """
        _keep_discardable_attributes(op, value)
        op.results[0].replace_all_uses_with(value)
        self._successors.append(value)
        self.erase(op)

    def erase(self, op: ir.OpView) -> None:
        """Erase `op`, wherever it is; only ops that are erased by the same rewrite may use its results."""
        self._pending_erase.append(op.operation)

    def flush(self) -> None:
        """Erase the pending ops; raises `PassError` where a remaining op uses a result of one of them."""
        locations = self._detached.detach(self._pending_erase)
        self._pending_erase = []
        for value in self._successors:
            _locate(value, locations)


class _DetachedOps:
    """Ops that are erased at the end of a round; until then they are in a module of their own.

    The walk of a round holds handles of ops that it visits later.  The bindings do not tell which of them dangle, so
    ops are not freed before the round ends.
    """

    def __init__(self, context: ir.Context) -> None:
        location = ir.Location.unknown(context)
        self._module = ir.Module.create(location)
        self._placeholder = self._module.body.add_argument(ir.NoneType.get(context), location)

    def holds(self, operation: ir.Operation) -> bool:
        """Whether `operation`, or an op around it, was erased."""
        return _is_inside(operation, [self._module.operation])

    def detach(self, pending_erase: Sequence[ir.Operation]) -> list[ir.Location]:
        """Detach `pending_erase` and the producers that become dead; returns their locations, except of constants.

        Raises `PassError`, and detaches nothing, where an op outside of `pending_erase` uses a result.
        """
        for operation in pending_erase:
            _check_users(operation, pending_erase)
        locations: list[ir.Location] = []
        cut_off = [(operation, self._cut_off(operation)) for operation in pending_erase]
        for operation, producers in cut_off:
            self._move(operation, locations)
            pending = producers[::-1]
            while pending:
                producer = pending.pop()
                # A producer that two erased ops used was detached with the first of them.
                if not self.holds(producer) and _is_dead(producer):
                    pending += self._cut_off(producer)[::-1]
                    self._move(producer, locations)
        return locations

    def _move(self, operation: ir.Operation, locations: list[ir.Location]) -> None:
        if self.holds(operation):
            return
        self._module.body.append(operation)
        if operation.name not in CONSTANT_OPS:
            locations.append(operation.location)

    def _cut_off(self, operation: ir.Operation) -> list[ir.Operation]:
        """Drop all operands of `operation` and of the ops inside it; returns the producers of its operands."""
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

    Ops are visited in program order, round after round.  Dead ops are erased.  Raises `PassError` if the patterns do
    not terminate.
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
    detached = _DetachedOps(context)
    rewrites = 0
    remarks: list[Diagnostic] = []
    for operation in operations:
        if operation.name in by_root and not detached.holds(operation):
            rewriter = Rewriter(detached)
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


def _keep_discardable_attributes(op: ir.OpView, value: ir.Value) -> None:
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


def _check_users(operation: ir.Operation, pending_erase: Sequence[ir.Operation]) -> None:
    for use in (use for result in operation.results for use in result.uses):
        if not _is_inside(use.owner.operation, pending_erase):
            message = f"'{operation.name}' op must not be erased while '{use.owner.name}' op uses its result"
            raise PassError(message, (Diagnostic(Severity.ERROR, message, *location_of(operation.location)),))


def _erase_dead(operations: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Erase dead ops; returns the others, in order."""
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
