"""An op of a network, and in which dimension of its operands the batch is.

A value has the batch in one dimension, or not at all. The dimension has a multiple of as many elements as the batch has
entries: those of the first entry come first, then those of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from qdialect._mlir import ir
from qdialect.dialect.attribute_kinds import INTEGERS
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.errors import op_error
from qdialect.registry import Registry

Rule = Callable[["Site"], int]
"""The dimension of the result that has the batch; raises `CompileError` where the op mixes entries."""

RULES = Registry[Rule]("batch rule")


@dataclass
class Site:
    """An op of which an operand has the batch."""

    op: ir.Operation
    axes: list[int | None]
    """Of each operand, the dimension that has the batch."""
    batch: int
    """Entries of the batch that the network was written for."""
    wanted: int
    """Entries of the batch that it is to have."""
    grown: dict[int, int] = field(default_factory=dict[int, int])
    """Operands without batch that must be repeated for it: the dimension, by number."""
    attributes: dict[str, ir.Attribute] = field(default_factory=dict[str, ir.Attribute])
    """What an attribute must be for another batch."""

    @property
    def view(self) -> Any:
        """The op with its typed attributes."""
        return self.op.opview

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the operands."""
        return [shape_of(value.type) for value in self.op.operands]

    @property
    def result(self) -> tuple[int, ...]:
        """Shape of the result."""
        return shape_of(self.op.results[0].type)

    def extents(self, found: Sequence[int], axis: int) -> ir.Attribute:
        """An attribute of extents for the batch that is wanted, which is in dimension `axis`."""
        return INTEGERS.to_attribute(resized(tuple(found), axis, self.batch, self.wanted))

    def first(self) -> int:
        """The batch of operand 0, which all others lack."""
        axis = self.axes[0]
        others = [index for index, other in enumerate(self.axes) if index and other is not None]
        if axis is None or others:
            self.refuse(f"operand {others[0] if others else 0} {'has' if others else 'lacks'} the batch")
        return axis

    def refuse(self, reason: str) -> NoReturn:
        """Raise `CompileError`: `reason` is what stands against a dynamic batch."""
        raise op_error(self.op, f"must compute each entry of a dynamic batch alone, but {reason}")

    def refuse_axis(self, axis: int, dimension: int | None, what: str) -> None:
        """Refuse `dimension` where the batch is there."""
        if axis == dimension:
            self.refuse(f"{what} dimension {dimension}, which has the batch")


def resized(shape: tuple[int, ...], axis: int, batch: int, wanted: int) -> tuple[int, ...]:
    """`shape` with a batch of `wanted` entries in dimension `axis` in place of one of `batch`."""
    return (*shape[:axis], shape[axis] // batch * wanted, *shape[axis + 1 :])
