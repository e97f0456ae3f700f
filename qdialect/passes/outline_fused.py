"""`qnn-outline-fused`: each fused op moves into a function of its own, for an external code generator."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

from qdialect._mlir import func, ir
from qdialect.diagnostics import PipelineError
from qdialect.dialect import FusedConv2DOp, FusedConvTranspose2DOp, FusedDenseOp, FusedMatMulOp, FusedOp
from qdialect.dialect.constants import constant_value
from qdialect.passes.matching import producer
from qdialect.passes.merge_outlined import merge_outlined
from qdialect.passes.outlined import (
    EXTERNAL,
    PARAMETERS,
    SYMBOL,
    TARGET,
    free_name,
    function_of,
    is_outlined,
    symbol_for,
)
from qdialect.passes.outlining_predicate import Predicate, reason_of, resolved, text_of
from qdialect.passes.pattern import MatchFailure, Pattern, PatternPass, Rewriter
from qdialect.passes.registry import register

_TARGET = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class OutlineFused(Pattern[FusedOp]):
    """A fused op becomes a call of a private function that holds it and its constants."""

    name: ClassVar[str] = "outline-fused"
    roots: ClassVar[tuple[str, ...]] = tuple(
        op_class.OPERATION_NAME for op_class in (FusedConv2DOp, FusedConvTranspose2DOp, FusedDenseOp, FusedMatMulOp)
    )

    def __init__(self, reason: Callable[[FusedOp], str | None], target: str) -> None:
        """`reason` says why an op stays."""
        self._reason = reason
        self._target = target

    def check(self, op: FusedOp) -> FusedOp | MatchFailure | None:
        if is_outlined(function_of(op.operation)):
            return None
        reason = self._reason(op)
        return MatchFailure(reason) if reason else op

    def rewrite(self, op: FusedOp, match: FusedOp, rewriter: Rewriter) -> None:
        operands = list(op.operation.operands)
        inputs = list(dict.fromkeys(value for value in operands if constant_value(value) is None))
        outlined = _outlined(op, operands, inputs)
        if self._target:
            outlined.attributes[TARGET] = ir.StringAttr.get(self._target)
            outlined.attributes[SYMBOL] = ir.StringAttr.get(symbol_for(self._target, op.operation.name))
        with rewriter.before(op):
            call = func.CallOp(outlined, inputs)
        rewriter.replace(op, call.results[0])


def _outlined(op: FusedOp, operands: Sequence[ir.Value], inputs: Sequence[ir.Value]) -> func.FuncOp:
    """The function that computes `op` from `inputs`; what is constant of `operands` is in its body."""
    caller = function_of(op.operation)
    result = op.operation.results[0].type
    with ir.InsertionPoint(caller), op.location:
        type_ = ([value.type for value in inputs], [result])
        stem = f"{ir.StringAttr(caller.attributes['sym_name']).value}_{op.operation.name.removeprefix('qnn.')}"
        created = func.FuncOp(free_name(caller, stem), type_, visibility="private")
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


@register
@dataclass(frozen=True)
class OutlineFusedPass(PatternPass):
    """Move every fused op, with its constants, into a private function of its own.

    The function is tagged for a code generator outside the project: `qnn.external` names the op, `qnn.parameters` holds
    all of its attributes, including every scale and zero point.  Operands that are not constant are arguments.  The
    interpreter evaluates the calls.

    With `target` a target computes the functions: `qnn.external_target` names it, and `qnn.symbol` the C function that
    computes them, such as ``npu_fused_conv2d``.  They are called at run time; `qdialect.compile` takes the library.
    `merge` makes one function, ``npu_region``, of neighbours whose results nothing else reads.  Without a target
    compilation first puts the ops back, as `qnn-inline-outlined` does.

    `symmetric_weights_only` skips ops whose weights have a zero point.  `predicate` is ``module:function``, or from
    Python a function: it gets the op, and returns whether the op is moved, or the reason why not.
    """

    name: ClassVar[str] = "qnn-outline-fused"
    dependent_dialects = ()
    symmetric_weights_only: bool = False
    target: str = ""
    merge: bool = False
    predicate: InitVar[Predicate | str | None] = None

    def __post_init__(self, predicate: Predicate | str | None) -> None:
        if self.target and not _TARGET.fullmatch(self.target):
            wanted = "letters, digits and _ that begin with a letter"
            raise PipelineError(f"option 'target' of '{self.name}' must be {wanted}, but got '{self.target}'")
        if self.merge and not self.target:
            raise PipelineError(f"option 'merge' of '{self.name}' must come with the option 'target'")
        object.__setattr__(self, "_predicate", resolved(predicate, f"option 'predicate' of '{self.name}'"))
        object.__setattr__(self, "predicate", text_of(predicate))

    @classmethod
    def option_kinds(cls) -> dict[str, Any]:
        return {**super().option_kinds(), "predicate": str}

    def patterns(self) -> Sequence[Pattern[Any]]:
        return (OutlineFused(self._match_failure, self.target),)

    def run(self, module: ir.Module) -> None:
        super().run(module)
        if self.merge:
            with module.context:
                merge_outlined(module, self.target)

    def _match_failure(self, op: FusedOp) -> str | None:
        zero_points = [point for point in op.weight_zero_points if point != 0]
        if self.symmetric_weights_only and zero_points:
            return f"must have weights without zero point, but got {zero_points[0]}"
        predicate: Predicate | None = getattr(self, "_predicate", None)
        return reason_of(predicate, op) if predicate else None
