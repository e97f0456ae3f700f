"""A row group as one kernel: a loop over blocks of rows, and in it the kernels of its ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.locations import joined, names_of
from qdialect.lowering.graph import ROW_GROUP, GraphLowering, dim_strides, lowers_each
from qdialect.lowering.handlers.transpose import store_transposed
from qdialect.lowering.memory.storage import ELEMENT_BYTES, STORAGE_ELEMENTS, Storage, image_shape
from qdialect.lowering.operands.transposed_operands import source_of
from qdialect.lowering.program import BufferSlot, Program
from qdialect.lowering.rows.block_function import block_function
from qdialect.lowering.rows.block_program import BlockProgram, Moving
from qdialect.lowering.rows.in_place import heirs
from qdialect.lowering.rows.overwriting import overwritable
from qdialect.lowering.rows.row_groups import RowGroup, Scope
from qdialect.lowering.rows.row_roles import block_shape
from qdialect.lowering.rows.row_views import steps

_BLOCK_BYTES = 8 * 1024
"""Of the largest tensor of a block: several of them go into a first-level cache."""
_PRODUCT_BYTES = 64 * 1024
"""The same where rows are multiplied by matrices, which come from further away for every block."""
_LABEL = "rows"


@dataclass(frozen=True)
class _Blocks:
    """`count` blocks of `rows` rows from row `first` on."""

    first: int
    count: int
    rows: int


def _lower_row_group(lowering: GraphLowering, group: RowGroup) -> None:
    """Append the kernel of `group`: whole blocks, then the rows that are left."""
    lowering.program.names = names_of(joined([member.location for member in group.members]))
    lowering.program.location = group.members[-1].location
    _store_inputs(lowering, group)
    outputs = [_output(lowering, group, value) for value in group.outputs]
    program = BlockProgram.of(lowering.program)
    for blocks in _blocks(group):
        _lower_blocks(lowering, program, group, blocks, outputs)
    program.finish(_LABEL)


lowers_each([ROW_GROUP], _lower_row_group)


def _output(lowering: GraphLowering, group: RowGroup, value: ir.Value) -> BufferSlot:
    """Where an output goes: into the memory of an input that is not read any more, or into its own."""
    readers = set(group.members)
    for source in overwritable(group, value) if value not in group.views else ():
        slot = None if source in group.views else lowering.overwritten(value, source, readers)
        if slot is not None:
            return slot
    return lowering.result(_stored(group, value))


def _stored(group: RowGroup, value: ir.Value) -> ir.Value:
    """What stands in memory for an input or output: that, or the other side of a transposition."""
    view = group.views.get(value)
    if view is None:
        return value
    return view.input if value == view.output else view.output


def _store_inputs(lowering: GraphLowering, group: RowGroup) -> None:
    """Store the transposed operands that a product alone would read where they were before: blocks are of rows."""
    for value in group.inputs:
        view = source_of(value)
        if view is not None and not lowering.is_stored(value):
            store_transposed(lowering, view)


class _BlockLowering(GraphLowering):
    """The state of lowering the function of a block."""

    def __init__(
        self,
        function: ir.Operation,
        program: Program,
        arguments: Sequence[BufferSlot],
        results: Sequence[BufferSlot],
        overwrites: Sequence[bool],
        scope: Scope,
    ) -> None:
        """`overwrites` says which results have the memory of an argument, which nothing else is written to then."""
        super().__init__(function, program, scope=scope)
        self._slots.update(zip(self._arguments, arguments, strict=True))
        self._results = dict(zip(self._returned, results, strict=True))
        self._fresh = {value for value, is_old in zip(self._returned, overwrites, strict=True) if not is_old}
        self._heirs = heirs(self._operations, self.islands)

    def lower(self) -> None:
        """Lower every op."""
        for op in self._operations[:-1]:
            self._lower_at(op)
        for value, result in self._results.items():
            slot = self.slot(value)
            if slot != result:
                self.copy(slot, result, shape_of(value.type), "result")

    def result(self, value: ir.Value) -> BufferSlot:
        """The slot of a new value: in the block's part of a result, in place of another value or in scratch memory."""
        slot = self._results.get(value) or self._inherited(value)
        if slot is None:
            return super().result(value)
        self.define(value, slot)
        return slot

    def _inherited(self, value: ir.Value) -> BufferSlot | None:
        """The slot of a result or of a stored value that `value` shares, if it has the same layout."""
        heir, storage = value, self._storage(value)
        while heir := self._heirs.get(heir):
            slot = self._results.get(heir)
            if slot is not None and heir in self._fresh and slot.storage == storage and self.can_be_array(value):
                return slot
        before = next((one for one, heir in self._heirs.items() if heir == value), None)
        slot = self._slots.get(before) if before is not None else None
        return slot if slot is not None and slot.storage == storage else None


def _blocks(group: RowGroup) -> Iterator[_Blocks]:
    if group.is_of_matrices:
        yield _Blocks(0, group.rows, 1)
        return
    most = _PRODUCT_BYTES if group.products else _BLOCK_BYTES
    values = [*group.outputs, *(op.results[0] for op in group.members)]
    row = max(prod(shape_of(value.type)) // group.rows * _bytes(value) for value in values)
    block = _best_block(group.rows, max(1, min(group.rows, most // row)))
    whole, rest = divmod(group.rows, block)
    yield _Blocks(0, whole, block)
    if rest:
        yield _Blocks(whole * block, 1, rest)


def _best_block(rows: int, maximum: int) -> int:
    """Up to `maximum` rows: those that leave none, unless these are fewer than half as many."""
    divisor = max(count for count in range(1, maximum + 1) if rows % count == 0)
    return divisor if 2 * divisor >= maximum else maximum


def _lower_blocks(
    lowering: GraphLowering, program: BlockProgram, group: RowGroup, blocks: _Blocks, outputs: Sequence[BufferSlot]
) -> None:
    function = block_function(group, blocks.rows)
    has_rows = dict(zip(group.inputs, group.has_rows, strict=True))
    moving = [_moving(group, value, slot, blocks) for value, slot in zip(group.outputs, outputs, strict=True)]
    slots = [(value, lowering.slot(_stored(group, value))) for value in function.inputs]
    overwrites = [any(output == slot for _, slot in slots) for output in outputs]
    moving += [_moving(group, value, slot, blocks) if has_rows[value] else _fixed(slot) for value, slot in slots]
    with program.blocks(blocks.count, moving) as slots:
        results, arguments = slots[: len(outputs)], slots[len(outputs) :]
        scope = Scope.MATRICES if group.is_of_matrices else Scope.ROWS
        _BlockLowering(function.operation, program, arguments, results, overwrites, scope).lower()


def _moving(group: RowGroup, value: ir.Value, slot: BufferSlot, blocks: _Blocks) -> Moving:
    """A tensor of which each block has its rows; rows of storage lie one after the other."""
    shape = shape_of(value.type)
    block = block_shape(shape, group.rows, blocks.rows)
    if value in group.views:
        return _viewed(group, value, slot, blocks)
    pitch = slot.storage.pitch if len(shape) > 1 else block[0]
    row = prod(block[:-1]) * pitch // blocks.rows if len(shape) > 1 else 1
    storage = Storage(image_shape(block), slot.storage.element, pitch)
    return Moving(slot, blocks.first * row, blocks.rows * row, storage)


def _viewed(group: RowGroup, value: ir.Value, slot: BufferSlot, blocks: _Blocks) -> Moving:
    """Matrices whose rows lie apart, as they are on the other side of a transposition."""
    shape, stored = shape_of(value.type), shape_of(_stored(group, value).type)
    found = steps(group.views[value], value, dim_strides(stored, slot.storage))
    step = next(step for step, extent in zip(found, shape, strict=True) if extent > 1)
    storage = Storage(image_shape(block_shape(shape, group.rows, blocks.rows)), slot.storage.element, found[-2])
    return Moving(slot, blocks.first * step, blocks.rows * step, storage)


def _fixed(slot: BufferSlot) -> Moving:
    return Moving(slot, 0, 0, slot.storage)


def _bytes(value: ir.Value) -> int:
    return ELEMENT_BYTES[STORAGE_ELEMENTS[element_of(value.type)]]
