"""The time steps of recurrent operators: one after another, each with ops of its own.

Kernels of equal steps are compiled once, so that a step costs little more than its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from qdialect._mlir import ir
from qdialect.dialect import TransposeOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.common import require
from qdialect.frontends.slices import Slice, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Shape, Tensor

State = TypeVar("State")
MAX_STEPS = 256
"""Of one operator: more would take long to compile."""


@dataclass(frozen=True)
class Steps:
    """How the sequences of an operator lie: time or the batch first, time running forwards or backwards."""

    count: int
    batch: int
    is_time_major: bool
    is_reverse: bool = False

    @classmethod
    def of(cls, data: Tensor, is_time_major: bool) -> Steps:
        """Those of an input [T, B, I] or [B, T, I]; raises `UnsupportedError`."""
        require(len(data.shape) == 3, f"input must have 3 dimensions, but got {len(data.shape)}")
        count, batch = data.shape[:2] if is_time_major else data.shape[1::-1]
        require(count >= 1 and batch >= 1, f"input must have time steps and a batch, but got {list(data.shape)}")
        require(count <= MAX_STEPS, f"input must have at most {MAX_STEPS} time steps, but got {count}")
        return cls(count, batch, is_time_major)

    def time_first(self, emitter: Emitter, value: ir.Value) -> ir.Value:
        """A sequence as [T, B, I]."""
        if self.is_time_major:
            return value
        if self.batch == 1:
            return emitter.reshape(value, (self.count, 1, shape_of(value.type)[2]))
        return emitter.build(TransposeOp, value, element=element_of(value.type), permutation=(1, 0, 2))

    def row(self, emitter: Emitter, value: ir.Value, step: int) -> ir.Value:
        """[B, I] of a sequence [T, B, I]."""
        width = shape_of(value.type)[2]
        part = take_slices(emitter, value, (Slice(step, 1, 1), Slice(0, 1, self.batch), Slice(0, 1, width)))
        return emitter.reshape(part, (self.batch, width))

    def joined(self, emitter: Emitter, rows: Sequence[ir.Value]) -> ir.Value:
        """The sequence of [B, P] after each step, as it lies in the file."""
        width = shape_of(rows[0].type)[1]
        axis, shape = (0, (1, self.batch, width)) if self.is_time_major else (1, (self.batch, 1, width))
        return emitter.concatenate([emitter.reshape(row, shape) for row in rows], axis)

    def run(self, start: State, step: Callable[[State, int], tuple[State, ir.Value]]) -> list[ir.Value]:
        """What each step gives, in the order of time; `step` gets the state before and the number of the step."""
        order, state = range(self.count), start
        given: list[ir.Value] = []
        for index in reversed(order) if self.is_reverse else order:
            state, row = step(state, index)
            given.append(row)
        return given[::-1] if self.is_reverse else given


def of_both(
    emitter: Emitter, steps: Steps, directions: Sequence[Sequence[ir.Value]], is_merged: bool
) -> list[ir.Value]:
    """The sequences of two directions: side by side in one where they are merged."""
    if is_merged:
        return [steps.joined(emitter, [emitter.concatenate(pair, 1) for pair in zip(*directions, strict=True)])]
    return [steps.joined(emitter, rows) for rows in directions]


def columns(emitter: Emitter, value: ir.Value, index: int, count: int) -> ir.Value:
    """Part `index` of `count` equal parts of the last dimension of [B, N]."""
    rows, width = shape_of(value.type)
    return take_slices(emitter, value, (Slice(0, 1, rows), Slice(index * (width // count), 1, width // count)))


def check_matrix(tensor: Tensor, shape: Shape, what: str) -> None:
    """`tensor` has a shape; raises `UnsupportedError`."""
    require(tensor.shape == shape, f"{what} must have the shape {list(shape)}, but got {list(tensor.shape)}")
