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
from qdialect.passes.pattern import MatchFailure, Pattern, Rewriter, apply_greedily, attempted, explain_left, require

M = TypeVar("M")


class InstructionPattern(Pattern[M]):
    """Replaces one op, its root, by instructions with the same meaning."""

    benefit: ClassVar[int] = 1
    """Of several patterns with one root the one with the largest benefit is tried first."""

    @abstractmethod
    def check(self, op: ir.Operation) -> M | None:
        """The match at the root `op`, None where it is no candidate; raises `MatchFailure` where it is left alone."""

    @abstractmethod
    def emit(self, op: ir.Operation, match: M) -> ir.Value | None:
        """Emit the replacement of `op`, before it; returns the new result, None for an op without a result."""

    def match(self, op: ir.OpView) -> M | MatchFailure | None:
        """The match of `check`, for ops outside of mask regions and on vectors of a fixed size."""
        return attempted(self._matched, op.operation)

    def _matched(self, op: ir.Operation) -> M | None:
        found = self.check(op)
        if found is None:
            return None
        require(op.parent is None or op.parent.name != "vector.mask", "must not be masked")
        vectors = (value.type for value in (*op.operands, *op.results) if isinstance(value.type, ir.VectorType))
        require(not any(vector.scalable for vector in vectors), "must be of vectors of a fixed size")
        return found

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


def require_f32(element: ir.Type) -> None:
    """Raise `MatchFailure` for numbers of another type than f32."""
    require(isinstance(element, ir.F32Type), f"numbers must be f32, but got {element}")
