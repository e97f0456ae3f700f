"""No lower bound of a number from which only a product in one `vscalefps` is computed.

    bounded = x < bound ? bound : x
    f(bounded) * 2^k(bounded)          ->        f(x) * 2^k(x)

The bound is tagged where k(x) is -151 or less from it down, with and without it.  There `scale_exponent` masks the
product to zero, whatever f(x) is, infinity and NaN too: the bound changes no result.  A NaN passes through both.
"""

from __future__ import annotations

from typing import ClassVar

from qdialect._mlir import ir
from qdialect.lowering.kernels.float32_machine import SCALE_BOUND, SCALED
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.lowering.x86.scale_exponent import SCALE, ScaleExponent
from qdialect.passes.pattern import MatchFailure

_LANEWISE = ("arith", "math")
_SHAPES = ("vector.shape_cast", "vector.extract", "vector.bitcast")


class ScaleBound(InstructionPattern[ir.Value]):
    """The bounded number, all of whose uses end in products that `ScaleExponent` rewrites: the number itself."""

    name: ClassVar[str] = "scale-bound"
    root: ClassVar[str] = "arith.select"

    def check(self, op: ir.Operation) -> ir.Value | MatchFailure | None:
        if SCALE_BOUND not in op.attributes:
            return None
        return _escape(op) or op.operands[2]

    def rewrite(self, op: ir.Operation, match: ir.Value) -> ir.Value:
        return match


def _escape(op: ir.Operation) -> MatchFailure | None:
    """Why something beside such products is computed from the result of `op`."""
    seen: set[ir.Operation] = set()
    left = _users(op)
    while left:
        user = left.pop()
        if user in seen or _is_scaling(user):
            continue
        if reason := _other_use(user):
            return reason
        seen.add(user)
        left += _users(user) if SCALED not in user.attributes else []
    return None


def _users(op: ir.Operation) -> list[ir.Operation]:
    return [use.owner.operation for result in op.results for use in result.uses]


def _is_scaling(op: ir.Operation) -> bool:
    """Whether `op` is what such a product became."""
    return op.name == "llvm.call_intrinsic" and ir.StringAttr(op.attributes["intrin"]).value == SCALE


def _other_use(op: ir.Operation) -> MatchFailure | None:
    """Why `op` is neither such a product nor on the way to one."""
    if SCALED in op.attributes:
        found = ScaleExponent().check(op)
        return found if isinstance(found, MatchFailure) else None
    if op.name.split(".")[0] in _LANEWISE or op.name in _SHAPES:
        return None
    return MatchFailure(f"must be used in scaled products alone, but '{op.name}' reads it")
