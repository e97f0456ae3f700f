"""Ops that are computed block by block of rows as one kernel: a loop over blocks, and in it the kernels of the ops."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import BroadcastOp, F32SumOp, ReshapeOp
from qdialect.dialect.constants import constant, constant_value, is_repeated
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import joined, names_of
from qdialect.lowering.cost.strategy import groups_of
from qdialect.lowering.qnn_to_linalg.conversions.movement import store_transposed
from qdialect.lowering.qnn_to_linalg.graph.graph import FUSED_ROWS, GraphLowering, dim_strides, lowers_each
from qdialect.lowering.qnn_to_linalg.graph.row_fusion import FusedRows, Scope, block_shape, steps
from qdialect.lowering.qnn_to_linalg.program import program as programs
from qdialect.lowering.qnn_to_linalg.program.kernel_text import SCRATCH, Buffer
from qdialect.lowering.qnn_to_linalg.program.operands import source_of

# The function of a block: the fused ops on tensors of some rows.

_RESHAPED = (BroadcastOp.OPERATION_NAME, ReshapeOp.OPERATION_NAME)


@dataclass(frozen=True)
class BlockFunction:
    """A function in a module of its own; `inputs` are those of the group that its arguments stand for."""

    module: ir.Module
    inputs: tuple[ir.Value, ...]

    @property
    def operation(self) -> ir.Operation:
        return self.module.body.operations[0].operation


def block_function(group: FusedRows, block: int) -> BlockFunction:
    """The function of `block` rows of `group`: its results are the group's outputs.

    Constants that are the same for every block are constants of the function; all other inputs are arguments.
    """
    roles = dict(zip(group.inputs, group.has_rows, strict=True))
    arguments = tuple(value for value in group.inputs if not _is_constant(value, has_rows=roles[value]))
    types = [_block_type(value, group.rows, block) if roles[value] else value.type for value in arguments]
    results = [_block_type(value, group.rows, block) for value in group.outputs]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("block", (types, results))
    with ir.InsertionPoint(function.add_entry_block()):
        values = dict(zip(arguments, function.entry_block.arguments, strict=True))
        for value in group.inputs:
            if value not in values:
                values[value] = _constant(value, group.rows, block, has_rows=roles[value])
        for op in group.members:
            values[op.results[0]] = _member(op, values, group.rows, block)
        func.return_([values[value] for value in group.outputs])
    return BlockFunction(module, arguments)


def _block_type(value: ir.Value, rows: int, block: int) -> ir.Type:
    element = ir.RankedTensorType(value.type).element_type
    return ir.RankedTensorType.get(block_shape(shape_of(value.type), rows, block), element)


def _is_constant(value: ir.Value, *, has_rows: bool) -> bool:
    array = constant_value(value)
    return array is not None and (not has_rows or is_repeated(array))


def _constant(value: ir.Value, rows: int, block: int, *, has_rows: bool) -> ir.Value:
    array, owner = constant_value(value), value.owner
    assert isinstance(owner, ir.Operation | ir.OpView)
    assert array is not None, "only constants are written again"
    if not has_rows:
        return owner.operation.clone().results[0]
    return constant(np.broadcast_to(array[(0,) * array.ndim], block_shape(array.shape, rows, block)))


def _member(op: ir.Operation, values: Mapping[ir.Value, ir.Value], rows: int, block: int) -> ir.Value:
    """`op` on a block's operands."""
    type_ = _block_type(op.results[0], rows, block)
    attributes = dict(op.attributes.items())
    if op.name in _RESHAPED:
        attributes["shape"] = ir.DenseI64ArrayAttr.get(shape_of(type_))
    operands = [values[value] for value in op.operands]
    created = ir.Operation.create(op.name, [type_], operands, attributes, loc=op.location)
    return created.results[0]


# The calls of a block become parts of one kernel, inside a loop over blocks.
#
# Intermediates of a block are scratch memory of the kernel, small enough to stay in L1.

_BLOCK = "block"


@dataclass(frozen=True)
class Moving:
    """A tensor, and the elements of it that block `i` begins at: ``first + i * step``; `storage` is that of a block."""

    slot: programs.BufferSlot
    first: int
    step: int
    storage: programs.Storage


@dataclass
class BlockProgram(programs.Program):
    """A program whose calls become parts of one kernel of `outer`, which owns the constants and the memory."""

    outer: programs.Program = field(kw_only=True)
    kernel: programs.Kernel = field(kw_only=True)
    _macs: int = 0
    _blocks: int = 1
    _buffers: dict[tuple[str, int], Buffer] = field(default_factory=dict[tuple[str, int], Buffer])

    @classmethod
    def of(cls, outer: programs.Program) -> BlockProgram:
        """The program of the blocks of a new kernel of `outer`."""
        kernel = programs.Kernel(outer)
        return cls(
            (), (), outer.strategy, packed_weights=outer.packed_weights, whole=kernel, outer=outer, kernel=kernel
        )

    @contextmanager
    def blocks(self, count: int, tensors: Sequence[Moving]) -> Generator[list[programs.BufferSlot]]:
        """A loop over `count` blocks around the calls inside the `with`; gives the slots of a block's `tensors`."""
        self._blocks, kernel = count, self.kernel
        buffers = [kernel.slot("tensor", moving.slot) for moving in tensors]
        with kernel.loop(count) as index:
            slots: list[programs.BufferSlot] = []
            for moving, buffer in zip(tensors, buffers, strict=True):
                start = kernel.sum(kernel.multiple(index, moving.step), kernel.constant(moving.first, "index"))
                slot = programs.BufferSlot(_BLOCK, len(self._buffers), moving.storage, signed=moving.slot.signed)
                self._buffers[_BLOCK, slot.index] = kernel.moved(buffer, start)
                slots.append(slot)
            yield slots

    def finish(self, label: str) -> None:
        self.outer.call(self.kernel, label, self._macs)

    def known_buffer(self, slot: programs.BufferSlot) -> Buffer | None:
        """The kernel's buffer of a tensor of a block, or of scratch memory."""
        return self._buffers.get((slot.kind, slot.index))

    def buffer(self, storage: programs.Storage) -> programs.BufferSlot:
        """New scratch memory of the kernel."""
        slot = self.outer.buffer(storage)
        known = self.outer.known_buffer(slot)
        self._buffers[slot.kind, slot.index] = known or self.kernel.parameter("scratch", slot, attribute=SCRATCH)
        return slot

    def constant(self, array: NDArray[Any]) -> programs.Data:
        return self.outer.constant(array)

    def call(self, kernel: programs.Kernel, label: str, macs: int = 0) -> None:
        """Put `kernel` into the loop."""
        self.kernel.insert(kernel)
        self._macs += macs * self._blocks


# Fused rows become one kernel: a loop over blocks of rows, and in it the kernels of the ops.

_BLOCK_BYTES = 16 * 1024
"""Of the largest tensor of a block: several of them fit in L1."""
_PRODUCT_BYTES = 64 * 1024
"""The same if rows are multiplied by matrices, which every block reads again from an outer cache."""
_LABEL = "rows"


@dataclass(frozen=True)
class _Blocks:
    """`count` blocks of `rows` rows from row `first` on."""

    first: int
    count: int
    rows: int


def _lower_fused_rows(lowering: GraphLowering, group: FusedRows) -> None:
    """Append the kernel of `group`: whole blocks, then the remaining rows."""
    lowering.program.names = names_of(joined([member.location for member in group.members]))
    lowering.program.location = group.members[-1].location
    # An unfused product would read transposed operands through the transposition: blocks need rows.
    for value in group.inputs:
        view = source_of(value)
        if view is not None and not lowering.is_stored(value):
            store_transposed(lowering, view)
    outputs = [lowering.result(_stored(group, value)) for value in group.outputs]
    program = BlockProgram.of(lowering.program)
    for blocks in _blocks(group, program.strategy.lanes):
        function = block_function(group, blocks.rows)
        has_rows = dict(zip(group.inputs, group.has_rows, strict=True))
        moving = [_moving(group, value, slot, blocks) for value, slot in zip(group.outputs, outputs, strict=True)]
        slots = [(value, lowering.slot(_stored(group, value))) for value in function.inputs]
        moving += [
            _moving(group, value, slot, blocks) if has_rows[value] else Moving(slot, 0, 0, slot.storage)
            for value, slot in slots
        ]
        with program.blocks(blocks.count, moving) as slots:
            results, arguments = slots[: len(outputs)], slots[len(outputs) :]
            scope = Scope.MATRICES if group.is_of_matrices else Scope.ROWS
            _BlockLowering(function.operation, program, arguments, results, scope).lower()
    program.finish(_LABEL)


lowers_each([FUSED_ROWS], _lower_fused_rows)


def _stored(group: FusedRows, value: ir.Value) -> ir.Value:
    """The value that is in memory for an input or output: itself, or the other side of a transposition."""
    view = group.views.get(value)
    if view is None:
        return value
    return view.input if value == view.output else view.output


class _BlockLowering(GraphLowering):
    """The state of lowering the function of a block."""

    def __init__(
        self,
        function: ir.Operation,
        program: programs.Program,
        arguments: Sequence[programs.BufferSlot],
        results: Sequence[programs.BufferSlot],
        scope: Scope,
    ) -> None:
        super().__init__(function, program, scope=scope)
        self._slots.update(zip(self._arguments, arguments, strict=True))
        self._results = dict(zip(self._returned, results, strict=True))

    def lower(self) -> None:
        for op in self._operations[:-1]:
            self._lower_at(op)
        for value, result in self._results.items():
            slot = self.slot(value)
            if slot != result:
                self.copy(slot, result, shape_of(value.type), "result")

    def result(self, value: ir.Value) -> programs.BufferSlot:
        """The slot of a new value: the block's part of a result, or scratch memory."""
        slot = self._results.get(value)
        if slot is None:
            return super().result(value)
        self.define(value, slot)
        return slot

    def _reshaped_result(self, value: ir.Value) -> ir.Value | None:
        """None: what a block gives is no array of a user."""


def _blocks(group: FusedRows, lanes: int) -> Iterator[_Blocks]:
    if group.is_of_matrices:
        yield _Blocks(0, group.rows, 1)
        return
    most = _PRODUCT_BYTES if group.products else _BLOCK_BYTES
    values = [*group.outputs, *(op.results[0] for op in group.members)]
    row = max(prod(shape_of(value.type)) // group.rows * _bytes(value) for value in values)
    # Sums in order are those of as many rows as a vector has lanes, however long they are.
    least = lanes if any(isinstance(op.opview, F32SumOp) and op.opview.in_order for op in group.members) else 1
    # The largest divisor of the rows up to `maximum`; `maximum` itself if the divisor is less than half of it.
    maximum = min(group.rows, max(least, most // row))
    divisor = max(count for count in range(1, maximum + 1) if group.rows % count == 0)
    block = divisor if 2 * divisor >= maximum else maximum
    yield from (_Blocks(first * block, count, rows) for first, count, rows in groups_of(block, group.rows))


def _moving(group: FusedRows, value: ir.Value, slot: programs.BufferSlot, blocks: _Blocks) -> Moving:
    """A tensor that is divided into blocks of rows, which are contiguous in storage."""
    shape = shape_of(value.type)
    block = block_shape(shape, group.rows, blocks.rows)
    if value in group.views:
        # Matrices with a row stride, as they lie on the other side of a transposition.
        stored = shape_of(_stored(group, value).type)
        found = steps(group.views[value], value, dim_strides(stored, slot.storage))
        step = next(step for step, extent in zip(found, shape, strict=True) if extent > 1)
        storage = programs.Storage(programs.image_shape(block), slot.storage.element, found[-2])
        return Moving(slot, blocks.first * step, blocks.rows * step, storage)
    pitch = slot.storage.pitch if len(shape) > 1 else block[0]
    row = prod(block[:-1]) * pitch // blocks.rows if len(shape) > 1 else 1
    storage = programs.Storage(programs.image_shape(block), slot.storage.element, pitch)
    return Moving(slot, blocks.first * row, blocks.rows * row, storage)


def _bytes(value: ir.Value) -> int:
    return programs.ELEMENT_BYTES[programs.STORAGE_ELEMENTS[element_of(value.type)]]
