"""Patterns of the x86 lowering step: a check that gives a match or a reason, and a rewrite that cannot fail.

A pattern is tried at every op with its root's name.  Its check reads whatever a legal module may hold and changes
nothing; it rejects every op that it cannot prove to match.  Reasons are remarks (`explain_matches`), and
notes of an error if the op must not remain.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import function_of, ops_named
from qdialect.passes.pattern import MatchFailure, Pattern, Rewriter, apply_greedily, explain_left

M = TypeVar("M")


class InstructionPattern(Pattern[M]):
    """Replaces one op, its root, by instructions with the same meaning."""

    benefit: ClassVar[int] = 1
    """Of several patterns with one root the one with the largest benefit is tried first."""

    @abstractmethod
    def check(self, op: ir.Operation) -> M | MatchFailure | None:
        """The match at the root `op`, a reason why it is left alone, or None where `op` is no candidate."""

    @abstractmethod
    def emit(self, op: ir.Operation, match: M) -> ir.Value | None:
        """Emit the replacement of `op`, before it; returns the new result, None for an op without a result."""

    def match(self, op: ir.OpView) -> M | MatchFailure | None:
        """The match of `check`, for ops outside of mask regions and on vectors of a fixed size."""
        found = self.check(op.operation)
        if found is None or isinstance(found, MatchFailure):
            return found
        reason = _outside(op.operation)
        return MatchFailure(reason) if reason else found

    def rewrite(self, op: ir.OpView, match: M, rewriter: Rewriter) -> None:
        with rewriter.before(op):
            value = self.emit(op.operation, match)
        # Not by the rewriter's own means: the locations of kernels are those of their networks' ops already.
        if value is None:
            rewriter.driver.erase_op(op)
        else:
            rewriter.driver.replace_op(op, [value])


def apply_instructions(module: ir.Module, patterns: Sequence[InstructionPattern[Any]]) -> None:
    """Apply `patterns` to all of `module` until none matches, and explain match failures."""
    by_benefit = sorted(patterns, key=lambda pattern: -pattern.benefit)
    # Functions without a root are skipped: the driver visits and folds every op of a function.
    roots = ops_named(module, *{root for pattern in patterns for root in pattern.roots if isinstance(root, str)})
    for function in dict.fromkeys(map(function_of, roots)):
        apply_greedily(function.operation, by_benefit, len(roots), folds=True)
    explain_left(module, patterns)


def _outside(op: ir.Operation) -> str | None:
    """Why no pattern takes an op that it would match."""
    if op.parent is not None and op.parent.name == "vector.mask":
        return "must not be masked"
    vectors = (value.type for value in (*op.operands, *op.results) if isinstance(value.type, ir.VectorType))
    if any(vector.scalable for vector in vectors):
        return "must be of vectors of a fixed size"
    return None
