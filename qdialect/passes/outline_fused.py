"""`qnn-outline-fused`: each fused op moves into a function of its own, for an external code generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

from qdialect._mlir import func, ir
from qdialect.dialect import FusedConv2DOp, FusedConvTranspose2DOp, FusedDenseOp, FusedMatMulOp, FusedOp
from qdialect.dialect.constants import constant_value
from qdialect.passes.matching import producer
from qdialect.passes.outlined import EXTERNAL, PARAMETERS, is_outlined
from qdialect.passes.pattern import MatchFailure, Pattern, PatternPass, Rewriter
from qdialect.passes.registry import register

Predicate = Callable[[FusedOp], str | None]
"""Why a code generator does not take a fused op; None where it takes it."""


class OutlineFused(Pattern[FusedOp]):
    """A fused op becomes a call of a private function that holds it and its constants."""

    name: ClassVar[str] = "outline-fused"
    roots: ClassVar[tuple[str, ...]] = tuple(
        op_class.OPERATION_NAME for op_class in (FusedConv2DOp, FusedConvTranspose2DOp, FusedDenseOp, FusedMatMulOp)
    )

    def __init__(self, predicate: Predicate | None = None) -> None:
        self._predicate = predicate

    def check(self, op: FusedOp) -> FusedOp | MatchFailure | None:
        if is_outlined(_function_of(op)):
            return None
        reason = self._predicate(op) if self._predicate else None
        return MatchFailure(reason) if reason else op

    def rewrite(self, op: FusedOp, match: FusedOp, rewriter: Rewriter) -> None:
        operands = list(op.operation.operands)
        inputs = list(dict.fromkeys(value for value in operands if constant_value(value) is None))
        outlined = _outlined(op, operands, inputs)
        with rewriter.before(op):
            call = func.CallOp(outlined, inputs)
        rewriter.replace(op, call.results[0])


def _function_of(op: FusedOp) -> ir.Operation:
    block = op.operation.block
    assert block is not None, "an op of a function stands in a block"
    return block.owner.operation


def _outlined(op: FusedOp, operands: Sequence[ir.Value], inputs: Sequence[ir.Value]) -> func.FuncOp:
    """The function that computes `op` from `inputs`; what is constant of `operands` is in its body."""
    caller = _function_of(op)
    result = op.operation.results[0].type
    with ir.InsertionPoint(caller), op.location:
        type_ = ([value.type for value in inputs], [result])
        created = func.FuncOp(_free_name(op, caller), type_, visibility="private")
        block = created.add_entry_block()
        values: dict[ir.Value, ir.Value] = dict(zip(inputs, block.arguments, strict=False))
        with ir.InsertionPoint(block):
            for value in operands:
                if value not in values:
                    values[value] = _cloned(value)
            clone = op.operation.clone()
            for index, value in enumerate(operands):
                clone.operands[index] = values[value]
            func.ReturnOp(list(clone.results))
    created.attributes[EXTERNAL] = ir.StringAttr.get(op.operation.name)
    parameters = {name: attribute for name, attribute in op.operation.attributes.items() if "." not in name}
    created.attributes[PARAMETERS] = ir.DictAttr.get(parameters)
    return created


def _cloned(constant: ir.Value) -> ir.Value:
    owner = producer(constant)
    assert owner is not None, "a constant is no argument"
    return owner.operation.clone().results[0]


def _free_name(op: FusedOp, caller: ir.Operation) -> str:
    module = caller.parent
    assert module is not None, "a function stands in a module"
    taken = {ir.StringAttr(f.attributes["sym_name"]).value for f in module.regions[0].blocks[0].operations}
    stem = f"{ir.StringAttr(caller.attributes['sym_name']).value}_{op.operation.name.removeprefix('qnn.')}"
    return next(name for name in (f"{stem}_{number}" for number in range(len(taken) + 1)) if name not in taken)


@register
@dataclass(frozen=True)
class OutlineFusedPass(PatternPass):
    """Move every fused op, with its constants, into a private function of its own.

    The function is tagged for a code generator outside the project: `qnn.external` names the op, `qnn.parameters` holds
    all its attributes, every scale and zero point among them.  What is not constant is an argument.  The interpreter
    evaluates the calls; compilation first puts the ops back, as `qnn-inline-outlined` does.

    `symmetric_weights_only` leaves ops whose weights have a zero point.  From Python `predicate` is any function that
    says why an op must stay, or None.
    """

    name: ClassVar[str] = "qnn-outline-fused"
    symmetric_weights_only: bool = False
    predicate: InitVar[Predicate | None] = None

    def __post_init__(self, predicate: Predicate | None) -> None:
        object.__setattr__(self, "_predicate", predicate)

    def patterns(self) -> Sequence[Pattern[Any]]:
        return (OutlineFused(self._match_failure),)

    def _match_failure(self, op: FusedOp) -> str | None:
        zero_points = [point for point in op.weight_zero_points if point != 0]
        if self.symmetric_weights_only and zero_points:
            return f"must have weights without zero point, but got {zero_points[0]}"
        predicate: Predicate | None = getattr(self, "_predicate", None)
        return predicate(op) if predicate else None
