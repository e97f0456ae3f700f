"""Builds the function's ops: which values are held, in which order of dimensions, and constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.dialect import TransposeOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.budget import Budget
from qdialect.frontends.common import Array, Shape
from qdialect.frontends.op_builder import OpBuilder


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor that the module holds, with the shape the model gives it: an argument, a constant or what ops compute.

    `name` is the model's for it; `data` is what a constant holds, `emission` builds what is computed.
    """

    name: str
    shape: Shape
    element: str
    data: Array | None = None
    emission: Emission | None = None


Emitted = tuple[ir.Value, bool]
"""What an emission built, and whether its channels, dimension 1 of the model, come last."""


class Emitter(OpBuilder):
    """The values emitted so far, and the location of the value being emitted.

    Convolutions and pools want the channels last; element-wise ops take what they get.  So a value may be held both
    ways, and a transpose is built where the other way is wanted first.
    """

    def __init__(self, file_name: str, budget: Budget | None) -> None:
        super().__init__(file_name, budget)
        self._channels_first: dict[Value, ir.Value] = {}
        self._channels_last: dict[Value, ir.Value] = {}

    def define(self, value: Value, held: ir.Value) -> None:
        """`held` is the argument `value`."""
        self._channels_first[value] = held

    def emit(self, value: Value) -> None:
        """Build what computes `value`; an argument or a constant needs nothing."""
        if value.emission is None:
            return
        self.enter(value.name)
        held, is_channels_last = value.emission(self)
        (self._channels_last if is_channels_last else self._channels_first)[value] = held

    def to_channels_first(self, value: Value) -> ir.Value:
        """`value` with the model's order of dimensions."""
        if value not in self._channels_first:
            if value.data is not None:
                self._channels_first[value] = self.constant(value.data)
            else:
                self._channels_first[value] = self.transpose(
                    self._channels_last[value], channels_first(len(value.shape))
                )
        return self._channels_first[value]

    def last(self, value: Value) -> ir.Value:
        """`value` with its channels last."""
        order = channels_last(len(value.shape))
        if value not in self._channels_last:
            if value.data is not None:
                self._channels_last[value] = self.constant(value.data.transpose(order))
            else:
                self._channels_last[value] = self.transpose(self._channels_first[value], order)
        return self._channels_last[value]

    def either(self, value: Value) -> Emitted:
        """`value` as it is held; with its channels last where it is held both ways."""
        return (
            (self._channels_last[value], True)
            if value in self._channels_last
            else (self.to_channels_first(value), False)
        )

    def alike(self, values: Sequence[Value]) -> tuple[list[ir.Value], bool]:
        """Operands that broadcast, all with their channels last where one of the highest rank is held so."""
        rank = max(len(value.shape) for value in values)
        is_channels_last = any(value in self._channels_last and len(value.shape) == rank for value in values)
        if not is_channels_last:
            return [self.to_channels_first(value) for value in values], False
        return [self._last_of_rank(value, rank) for value in values], True

    def _last_of_rank(self, value: Value, rank: int) -> ir.Value:
        if len(value.shape) == rank:
            return self.last(value)
        shape = (1,) * (rank - len(value.shape)) + value.shape
        if value.data is not None:
            return self.constant(value.data.reshape(shape).transpose(channels_last(rank)))
        return self.transpose(self.reshape(self.to_channels_first(value), shape), channels_last(rank))

    def upstream(self, name: str, element: str, *operands: ir.Value) -> ir.Value:
        """An element-wise upstream op of the value being emitted, whose result has another element type."""
        type_ = ir.RankedTensorType.get(list(shape_of(operands[0].type)), ir.Type.parse(element))
        return ir.Operation.create(name, results=[type_], operands=list(operands), loc=self._location).results[0]

    def transpose(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """`value` with its dimensions in another order."""
        return self.build(TransposeOp, value, element=element_of(value.type), permutation=tuple(order))


Emission = Callable[[Emitter], Emitted]
"""Builds the ops of a value and gives its last one's result."""


def channels_last(rank: int) -> tuple[int, ...]:
    """The order of dimensions that puts dimension 1 last."""
    return (0, *range(2, rank), 1)


def channels_first(rank: int) -> tuple[int, ...]:
    """The order of dimensions that undoes `channels_last`."""
    return (0, rank - 1, *range(1, rank - 1))
