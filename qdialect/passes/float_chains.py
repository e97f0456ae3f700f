"""Activations as chains of upstream float ops: written for passes, recognised by them.

Both walk the trees of `qdialect.arithmetic.activations`, so whatever `build_activation` writes is what
`match_activation` finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from qdialect.arithmetic.activations import ACTIVATIONS, STAGE_ACTIVATIONS, Activation
from qdialect.arithmetic.expressions import Expression, Input, Node, Number, fold
from qdialect.dialect.constants import constant
from qdialect.dialect.f32_ops import is_in_float64
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.passes.pattern import producer, require, users
from qdialect.passes.tabulate import uniform_value

F = TypeVar("F")

_GREATER = 2
# Ordered or not, with or without equality: without NaN they differ only at zero, where both branches are equal.
_GREATER_PREDICATES = (2, 3, 9, 10)
_COMMUTATIVE = ("arith.addf", "arith.mulf", "arith.maximumf", "arith.minimumf")


def build_activation(activation: Activation, value: ir.Value, alpha: float = 0.0) -> ir.Value:
    """`activation` of the f32 tensor `value` as float ops at the insertion point."""
    parameter = uniform_constant(alpha, value.type) if activation.has_alpha else None
    return fold(
        ACTIVATIONS[activation],
        (value,),
        parameter,
        lambda number: uniform_constant(number, value.type),
        lambda op, operands: _build(op, operands, value.type),
    )


def uniform_constant(number: float, type_: ir.Type) -> ir.Value:
    """A constant of the f32 tensor type `type_` whose elements are all `number`, rounded to float32."""
    return constant(np.broadcast_to(np.float32(number), shape_of(type_)))


@dataclass(frozen=True)
class ChainMatch(Generic[F]):
    """`activation` of `source`; `values` are those computed on the way, the last one the activation's own."""

    activation: F
    alpha: float
    source: ir.Value
    values: tuple[ir.Value, ...]

    @property
    def is_closed(self) -> bool:
        """Whether nothing but the chain uses its source and its values, the result aside."""
        inside = {value.owner for value in self.values}
        return all(user in inside for value in (self.source, *self.values[:-1]) for user in users(value))

    def require_closed(self) -> None:
        """Raise `MatchFailure` unless it `is_closed`."""
        require(self.is_closed, f"must use the ops of its {self.activation} alone, but another op uses one of them")


def match_activation(value: ir.Value) -> ChainMatch[Activation] | None:
    """The activation that ends in `value`, None where it ends none."""
    return match_function(value, STAGE_ACTIVATIONS)


def match_function(value: ir.Value, functions: Mapping[F, Expression]) -> ChainMatch[F] | None:
    """The first of `functions` that ends in `value`, None where none does."""
    for activation, chain in functions.items():
        found = next(_match(chain, value, _Bound()), None)
        if found is not None and found.source is not None:
            return ChainMatch(activation, found.alpha or 0.0, found.source, found.values)
    return None


@dataclass(frozen=True)
class _Bound:
    """The values bound to the leaves of a tree so far."""

    source: ir.Value | None = None
    alpha: float | None = None
    values: tuple[ir.Value, ...] = field(default=())


def _match(expression: Expression, value: ir.Value, bound: _Bound) -> Iterator[_Bound]:
    """Every way in which `value` is `expression`."""
    if isinstance(expression, Node):
        yield from _match_node(expression, value, bound)
    elif isinstance(expression, Input):
        if bound.source is None or bound.source == value:
            yield _Bound(value, bound.alpha, bound.values)
    else:
        yield from _match_number(expression, value, bound)


def _match_number(expression: Expression, value: ir.Value, bound: _Bound) -> Iterator[_Bound]:
    uniform = uniform_value(value)
    if uniform is None:
        return
    number = float(uniform)
    if isinstance(expression, Number):
        if number == float(np.float32(expression.value)):
            yield bound
    elif bound.alpha is None or bound.alpha == number:
        yield _Bound(bound.source, number, bound.values)


def _match_node(node: Node, value: ir.Value, bound: _Bound) -> Iterator[_Bound]:
    op = producer(value)
    # Stages of an epilogue evaluate functions in float32.
    if op is None or op.operation.name != node.op or is_in_float64(op):
        return
    is_comparison, attributes = node.op == "arith.cmpf", op.operation.attributes
    if is_comparison and ir.IntegerAttr(attributes["predicate"]).value not in _GREATER_PREDICATES:
        return
    operands = list(op.operation.operands)
    orders = [operands, operands[::-1]] if node.op in _COMMUTATIVE else [operands]
    for order in orders:
        for found in _match_all(node.operands, order, bound):
            yield _Bound(found.source, found.alpha, (*found.values, value))


def _match_all(expressions: tuple[Expression, ...], values: list[ir.Value], bound: _Bound) -> Iterator[_Bound]:
    if not expressions:
        yield bound
        return
    for first in _match(expressions[0], values[0], bound):
        yield from _match_all(expressions[1:], values[1:], first)


def _build(op: str, operands: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    if op == "arith.cmpf":
        return arith.cmpf(_GREATER, *operands)
    return ir.Operation.create(op, results=[type_], operands=list(operands)).result
