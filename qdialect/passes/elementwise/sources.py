"""On which tensors values depend through element-wise ops, found once for each value of a module."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp
from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.passes.elementwise.graph import is_member
from qdialect.passes.matching import producer

_ENOUGH = 2


@dataclass(frozen=True)
class Dependence:
    """The tensors on which a value depends, two of them at most, and the length of the longest way to one."""

    sources: tuple[ir.Value, ...]
    depth: int


class Sources:
    """Dependences that are remembered; `forget` them when the module changes."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Dependence] = {}

    def forget(self) -> None:
        """Start anew."""
        self._known.clear()

    def of(self, value: ir.Value) -> Dependence:
        """On what `value` depends: itself, where no member of a graph computes it."""
        pending = [value]
        while pending:
            current = pending[-1]
            missing = [operand for operand in _operands(current) if operand not in self._known]
            if missing:
                pending += missing
                continue
            self._known.setdefault(current, self._from_operands(current))
            pending.pop()
        return self._known[value]

    def _from_operands(self, value: ir.Value) -> Dependence:
        operands = _operands(value)
        if not operands:
            return Dependence(() if _is_constant(value) else (value,), 0)
        before = [self._known[operand] for operand in operands]
        sources = dict.fromkeys(source for dependence in before for source in dependence.sources)
        return Dependence(tuple(sources)[:_ENOUGH], 1 + max(dependence.depth for dependence in before))


def _operands(value: ir.Value) -> list[ir.Value]:
    op = producer(value)
    return list(op.operation.operands) if op is not None and is_member(op) else []


def _is_constant(value: ir.Value) -> bool:
    op = producer(value)
    while isinstance(op, BroadcastOp):
        op = producer(op.input)
    return op is not None and op.operation.name in CONSTANT_OPS
