"""`qnn-fuse-clamp`: clip, relu and relu6 become the output range of the op that feeds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from qdialect.arithmetic import clamp_of_table
from qdialect.dialect import AnyFused, ClipOp, LutOp, QnnOp, Relu6Op, ReluOp, UnaryOp, build
from qdialect.dialect.contraction_ops import PlacedStage
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.pool_ops import PoolOp
from qdialect.dialect.stages.builtin_stages import ClampStage, LutStage
from qdialect.dialect.stages.stage_base import Stage
from qdialect.dialect.type_constraints import dtype_of, element_of, range_of
from qdialect.ir._mlir import ir
from qdialect.passes import pattern
from qdialect.passes.fused_stages import decomposes
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, producer, refuse, require
from qdialect.passes.registry import register
from qdialect.passes.tabulate import table_of

Bounds = tuple[int, int]


@dataclass(frozen=True)
class _Match:
    producer: QnnOp
    changes: dict[str, Any]


class FuseClamp(Replacement[_Match]):
    """A clamp of the result of an op that clamps already, or of another clip.

    A relu is a clamp where its input and output have the same parameters.
    """

    roots = ("qnn.clip", "qnn.relu", "qnn.relu6")

    def check(self, op: ClipOp | ReluOp | Relu6Op) -> _Match | None:
        clamped = producer(op.input)
        if not isinstance(clamped, AnyFused | BinaryOp | PoolOp | ClipOp):
            return None
        ends_in_table = isinstance(clamped, AnyFused) and isinstance(clamped.epilogue[-1], LutStage)
        require(not ends_in_table, "must come before the table of the fused op that feeds it")
        bounds = clamp_of(op)
        refuse(pattern.second_use(op.input) or _mismatch(clamped, op))
        if bounds is None:
            raise MatchFailure("must have the same parameters before and after to be a clamp")
        return _Match(clamped, _clamped(clamped, bounds))

    def emit(self, op: ClipOp | ReluOp | Relu6Op, match: _Match) -> ir.Value:
        return pattern.rebuilt(match.producer, **match.changes).operation.results[0]


def clamp_of(op: ClipOp | UnaryOp | LutOp) -> Bounds | None:
    """The bounds of the clamp that `op` is, None where it is something else."""
    if isinstance(op, ClipOp):
        return op.min, op.max
    if op.input.type != op.output.type or not pattern.same_quantization(op.input_params, op.output_params):
        return None
    dtype = dtype_of(op.input.type)
    return clamp_of_table(table_of(op.output, op.input), dtype, dtype)


def _mismatch(clamped: QnnOp, op: ClipOp | UnaryOp) -> str | None:
    if isinstance(op, ClipOp) or not isinstance(clamped, AnyFused | BinaryOp):
        return None
    before = clamped.output_params if isinstance(clamped, BinaryOp) else clamped.output_type
    return pattern.quantization_difference("input", before, op.input_params)


def _clamped(clamped: QnnOp, bounds: Bounds) -> dict[str, Any]:
    """The changed attributes: bounds within bounds."""
    if isinstance(clamped, AnyFused):
        return {"epilogue": _clamped_epilogue(clamped, bounds)}
    names = ("min", "max") if isinstance(clamped, ClipOp) else ("output_min", "output_max")
    values = clamped.attribute_values()
    low, high = bounds
    return {name: min(max(values[name], low), high) for name in names}


def _clamped_epilogue(clamped: AnyFused, bounds: Bounds) -> tuple[Stage, ...]:
    stages, clamp = clamped.epilogue, ClampStage(min=bounds[0], max=bounds[1])
    found = whole = range_of(clamped.output.type)
    last = stages[-1]
    if isinstance(last, ClampStage):
        stages, found = stages[:-1], (last.min, last.max)
    low, high = clamp.narrowed(found)
    return stages if (low, high) == whole else (*stages, ClampStage(min=low, max=high))


@decomposes(ClampStage)
def _decompose(_: AnyFused, placed: PlacedStage, value: ir.Value) -> ir.Value:
    stage: Any = placed.stage
    return build(ClipOp, value, element=element_of(value.type), min=stage.min, max=stage.max).output


@register
class FuseClampPass(GraphPass):
    """Fuse clip, relu and relu6 into the output range of the op that feeds them.

    That op is a fused contraction, an add, a mul, a pool or another clip.
    """

    name: ClassVar[str] = "qnn-fuse-clamp"
    rewrites = (FuseClamp,)
