"""Reductions of integers that start from what changes nothing -> reductions without a start.

Upstream converts a start to a scalar operation of its own, which for a minimum is a comparison and a jump.
"""

from __future__ import annotations

from collections.abc import Mapping

from qdialect._mlir import ir, rewrite
from qdialect.late_imports import UNINTERRUPTED

_REDUCTION = "vector.reduction"
_NEUTRAL: Mapping[str, int] = {"add": 0, "or": 0, "xor": 0, "maxui": 0, "and": -1, "minui": -1}
"""By the kind of reduction, as signed numbers of any width."""


def drop_neutral_starts(module: ir.Module) -> None:
    """Rewrite such reductions, in place."""
    patterns = rewrite.RewritePatternSet(module.context)
    patterns.add(_REDUCTION, _drop)
    with UNINTERRUPTED:
        rewrite.walk_and_apply_patterns(module.operation, patterns.freeze())


def _drop(op: ir.OpView, rewriter: rewrite.PatternRewriter) -> bool:
    """Replace one op; truthy where it is left alone, as the bindings want it."""
    operation = op.operation
    neutral = _NEUTRAL.get(str(operation.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">"))
    if len(operation.operands) == 1 or neutral is None or _constant(operation.operands[1]) != neutral:
        return True
    with rewriter.ip, operation.location:
        attributes = {"kind": operation.attributes["kind"]}
        results = [result.type for result in operation.results]
        rewriter.replace_op(op, [ir.Operation.create(_REDUCTION, results, [operation.operands[0]], attributes).result])
    return False


def _constant(value: ir.Value) -> int | None:
    """A constant integer, signed; None for what is no constant, or no integer."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    number = value.owner.attributes["value"]
    return number.value if isinstance(number, ir.IntegerAttr) else None
