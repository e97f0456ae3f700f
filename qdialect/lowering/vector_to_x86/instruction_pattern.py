"""What a pattern of the x86 lowering step is: a check that gives a match or a reason, and a rewrite that cannot fail.

A pattern is tried at every op with its root's name.  Its check reads whatever a legal module may hold and changes
nothing; what it does not prove, it refuses.  Reasons are remarks for those who collect them (`explain_matches`), and
notes where an op that must not be left is left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from qdialect.ir._mlir import ir, rewrite, walk
from qdialect.lowering.ir.functions import function_of, ops_named
from qdialect.passes.pattern import MatchFailure, explain, is_explained
from qdialect.support.late_imports import UNINTERRUPTED

M = TypeVar("M")


class InstructionPattern(ABC, Generic[M]):
    """Puts instructions where one op, its root, means just that."""

    name: ClassVar[str]
    root: ClassVar[str]
    benefit: ClassVar[int] = 1
    """Of several patterns with one root the one with the largest benefit is tried first."""

    @abstractmethod
    def check(self, op: ir.Operation) -> M | MatchFailure | None:
        """The match at the root `op`, a reason why it is left alone, or None where `op` is no candidate."""

    @abstractmethod
    def rewrite(self, op: ir.Operation, match: M) -> ir.Value | None:
        """Emit what replaces `op`, before it: the value of its result, None for an op without a result."""

    def match(self, op: ir.Operation) -> M | MatchFailure | None:
        """What `check` finds, for ops that are masked by no region and on vectors of a fixed size."""
        found = self.check(op)
        if found is None or isinstance(found, MatchFailure):
            return found
        reason = _outside(op)
        return MatchFailure(reason) if reason else found

    def apply(self, op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool | None:
        """Rewrite `op`; truthy where it is left alone, as the bindings want it."""
        match = self.match(op.operation)
        if match is None or isinstance(match, MatchFailure):
            return True
        with rewriter.ip, op.location:
            value = self.rewrite(op.operation, match)
        if value is None:
            rewriter.erase_op(op)
        else:
            rewriter.replace_op(op, [value])
        return None


def apply_instructions(module: ir.Module, patterns: Sequence[InstructionPattern[Any]]) -> None:
    """Apply `patterns` to all of `module` until none matches, and explain what is left alone."""
    found = rewrite.RewritePatternSet(module.context)
    for pattern in patterns:
        found.add(pattern.root, pattern.apply, pattern.benefit)
    frozen, config = found.freeze(), _once_each()
    # Functions without a root are left out: every op of a function is looked at, and folded.
    roots = ops_named(module, *{pattern.root for pattern in patterns})
    for function in dict.fromkeys(map(function_of, roots)):
        with UNINTERRUPTED:
            rewrite.apply_patterns_and_fold_greedily(function, frozen, config)
    if is_explained():
        _explain(module, patterns)


def _once_each() -> rewrite.GreedyRewriteConfig:
    """How patterns are applied: blocks are as they should be, and every time that they are looked at costs as much."""
    config = rewrite.GreedyRewriteConfig()
    config.region_simplification_level = rewrite.GreedySimplifyRegionLevel.DISABLED
    return config


def reasons(op: ir.Operation, patterns: Sequence[InstructionPattern[Any]]) -> Iterator[tuple[str, MatchFailure]]:
    """The name of each of `patterns` that leaves the candidate `op` alone, and why."""
    for pattern in patterns:
        found = pattern.match(op) if pattern.root == op.name else None
        if isinstance(found, MatchFailure):
            yield pattern.name, found


def _explain(module: ir.Module, patterns: Sequence[InstructionPattern[Any]]) -> None:
    roots = {pattern.root for pattern in patterns}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in roots:
            for name, reason in reasons(op, patterns):
                explain(name, op, reason)
        return ir.WalkResult.ADVANCE

    walk(module.operation, visit)


def _outside(op: ir.Operation) -> str | None:
    """Why no pattern takes an op that it would match."""
    if op.parent is not None and op.parent.name == "vector.mask":
        return "must not be masked"
    vectors = (value.type for value in (*op.operands, *op.results) if isinstance(value.type, ir.VectorType))
    if any(vector.scalable for vector in vectors):
        return "must be of vectors of a fixed size"
    return None
