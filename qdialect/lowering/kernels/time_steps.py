"""A kernel with a loop over time: its steps read rows of the gates and the states before, and write the states after.

States are written to the result row by row, and the next step reads them there.  What a step passes from one
micro-kernel to the next is scratch memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from qdialect._mlir import ir
from qdialect.dialect import F32RecurrentOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides
from qdialect.lowering.kernels.elementwise import Emit, MapOperand, emit_map
from qdialect.lowering.kernels.folds import F32_PRODUCTS
from qdialect.lowering.kernels.reduction import Finish, Reduced, Reduction, emit_reduction
from qdialect.lowering.memory.storage import Storage
from qdialect.lowering.memory.strides import row_major
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Value
from qdialect.lowering.tiling.strategy import rows_for

LANES = 16
"""Numbers of a vector."""
# Vectors of accumulators that a product keeps at a time: enough that no sum waits for the one before it.
_ACCUMULATORS = 8


@dataclass(frozen=True)
class TimeStep:
    """A time step: the rows of the gates and of the states, which `time` moves."""

    gate_rows: MapOperand
    rows_before: MapOperand
    rows_after: MapOperand

    def gates(self, first: int = 0) -> MapOperand:
        """What the sequence gives to the gates from column `first` on."""
        return columns_from(self.gate_rows, first)

    def before(self, first: int = 0) -> MapOperand:
        """The states before the step."""
        return columns_from(self.rows_before, first)

    def after(self, first: int = 0) -> MapOperand:
        """The states after the step."""
        return columns_from(self.rows_after, first)


@dataclass
class TimeSteps:
    """The kernel of an op: the initial states, then a loop over time."""

    lowering: GraphLowering
    op: F32RecurrentOp
    kernel: Kernel = field(init=False)

    def __post_init__(self) -> None:
        op, self.kernel = self.op, Kernel(self.lowering.program)
        self.count, self.batch, _ = shape_of(op.gates.type)
        self._gates = self.operand("gates", op.gates)
        slot = self.lowering.result(op.output)
        strides = dim_strides(shape_of(op.output.type), slot.storage)
        self._states = MapOperand(self.kernel.slot("states", slot), strides, slot.storage.origin)
        first = self.count * strides[0] if op.reverse else 0
        target = columns_from(replace(self._states, strides=strides[1:]), first)
        shape = shape_of(op.initial.type)
        emit_map(self.kernel, shape, [self.operand("initial", op.initial)], target, lambda _, values: values[0], LANES)

    @cached_property
    def _weights(self) -> MapOperand:
        return self.operand("weights", self.op.recurrence)

    def operand(self, name: str, value: ir.Value) -> MapOperand:
        """A tensor where it is stored, a constant where it lies."""
        shape, array = shape_of(value.type), constant_value(value)
        if array is not None:
            return MapOperand(self.kernel.data(name, array), row_major(shape))
        slot = self.lowering.slot(value)
        return MapOperand(self.kernel.slot(name, slot), dim_strides(shape, slot.storage), slot.storage.origin)

    def scratch(self, name: str, width: int) -> MapOperand:
        """Memory for [B, width] f32 values of one step."""
        storage = Storage((self.batch, 1, 1, width), "f32", width)
        return MapOperand(self.kernel.scratch(name, storage), (width, 1))

    def one_by_one(self) -> Iterator[TimeStep]:
        """The step of a loop over time."""
        with self.kernel.loop(self.count) as index:
            yield self._step(index)

    def in_pairs(self) -> Iterator[TimeStep]:
        """Two steps of a loop over time that takes two at once, and the last one of an odd number."""
        pairs, kernel = self.count // 2, self.kernel
        if pairs:
            with kernel.loop(pairs) as index:
                even = kernel.multiple(index, 2)
                yield self._step(even)
                yield self._step(kernel.sum(even, kernel.constant(1, "index")))
        if self.count % 2:
            yield self._step(kernel.constant(self.count - 1, "index"))

    def _step(self, index: Value) -> TimeStep:
        """The step that is computed after `index` others."""
        kernel, is_reverse = self.kernel, self.op.reverse
        if is_reverse:
            index = kernel.sum(kernel.multiple(index, -1), kernel.constant(self.count - 1, "index"))
        row = self._states.strides[0]
        low, high = (self._at(self._states, index, offset) for offset in (0, row))
        before, after = (high, low) if is_reverse else (low, high)
        return TimeStep(self._at(self._gates, index, 0), before, after)

    def product(
        self,
        rows: MapOperand,
        width: int,
        output: MapOperand,
        extras: Sequence[MapOperand],
        finish: Finish,
        first: int = 0,
    ) -> None:
        """``finish(rows [B, H] times `width` columns of the weights from `first` on, extras)``."""
        at_once = rows_for(self.batch, _ACCUMULATORS)
        reduction = Reduction(
            (self.batch, width),
            (self.op.hidden,),
            [
                Reduced(columns_from(replace(self._weights, strides=(0, 1)), first), self._weights.strides[:1]),
                Reduced(replace(rows, strides=(rows.strides[0], 0)), rows.strides[1:]),
            ],
            extras,
            output,
            F32_PRODUCTS,
            finish,
            LANES * (_ACCUMULATORS // at_once),
            at_once,
        )
        emit_reduction(self.kernel, reduction)

    def map(self, operands: Sequence[MapOperand], output: MapOperand, emit: Emit) -> None:
        """``emit`` of elements [B, H]."""
        emit_map(self.kernel, (self.batch, self.op.hidden), operands, output, emit, LANES)

    def call(self) -> None:
        """Append the call of the kernel."""
        macs = self.count * self.batch * prod(shape_of(self.op.recurrence.type))
        self.lowering.program.call(self.kernel, self.op.operation.name, macs)

    def _at(self, operand: MapOperand, index: Value, offset: int) -> MapOperand:
        """The row [B, ...] of `operand` at a time, `offset` elements further on."""
        start = self.kernel.multiple(index, operand.strides[0])
        return MapOperand(operand.source, operand.strides[1:], operand.offset + offset, start)


def columns_from(operand: MapOperand, first: int) -> MapOperand:
    """The columns of `operand` from `first` on."""
    return replace(operand, offset=operand.offset + first)
