"""Lowers a whole network: assigns a buffer to each tensor and runs one conversion per op.

A conversion asks for the buffer slots of its operands and for one for its result, and appends kernel calls.  It never
copies for padding: consumers declare beforehand which pads they read, and the producer stores the tensor with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from qdialect import dialect as qnn
from qdialect.dialect.constants import CONSTANT_OPS, constant_value
from qdialect.dialect.type_constraints import SMALL_FLOATS, TypeConstraint, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import joined, names_of, note_at
from qdialect.lowering.ir.functions import error_at, only_user
from qdialect.lowering.ir.views import row_major
from qdialect.lowering.qnn_to_linalg.graph.fusion_groups import MEMBERS, FusionGroups, ResultEpilogue, result_epilogues
from qdialect.lowering.qnn_to_linalg.graph.padding import Convolution, Padding, middle_of, padding_of
from qdialect.lowering.qnn_to_linalg.graph.row_fusion import RowFusion, Scope
from qdialect.lowering.qnn_to_linalg.kernels import elementwise
from qdialect.lowering.qnn_to_linalg.kernels.geometry import group_blocks
from qdialect.lowering.qnn_to_linalg.program import program as programs
from qdialect.lowering.qnn_to_linalg.program.operands import is_read_through
from qdialect.support.diagnostics import CompileError
from qdialect.support.registry import Registry

Op = TypeVar("Op", bound=qnn.QnnOp)
Derived = TypeVar("Derived")
Conversion = Callable[["GraphLowering", Any], None]
_CONVERSIONS = Registry[Conversion]("lowering", "qdialect.lowering.qnn_to_linalg.conversions")
_TAKES_ARRAYS: set[str] = {"func.return"}
FUSED_ROWS = "fused_rows"
"""The name under which the conversion of `FusedRows` is registered."""


def lowers(
    *op_classes: type[Op], takes_arrays: bool = False
) -> Callable[[Callable[[GraphLowering, Op], None]], Callable[[GraphLowering, Op], None]]:
    """Register the conversion of an op class, or of several.

    With `takes_arrays` its kernels access users' arrays directly: rows without padding lanes, signed values.
    """

    def register(conversion: Callable[[GraphLowering, Op], None]) -> Callable[[GraphLowering, Op], None]:
        lowers_each([op_class.OPERATION_NAME for op_class in op_classes], conversion, takes_arrays)
        return conversion

    return register


def lowers_each(
    names: Sequence[str], conversion: Callable[[GraphLowering, Any], None], takes_arrays: bool = False
) -> None:
    """Register the conversion of ops by name, for upstream ops that have no class here."""
    _CONVERSIONS.add(names, conversion)
    if takes_arrays:
        _TAKES_ARRAYS.update(names)


def has_conversion(name: str) -> bool:
    """Whether ops of this name can be lowered."""
    return name in _CONVERSIONS


class GraphLowering:
    """The state of lowering one function."""

    def __init__(
        self,
        function: ir.Operation,
        program: programs.Program,
        extern_functions: Mapping[str, ir.Operation] = MappingProxyType({}),
        *,
        states: Mapping[int, int] = MappingProxyType({}),
        scope: Scope = Scope.NETWORK,
        is_apart: Callable[[ir.Operation], bool] = lambda _: False,
    ) -> None:
        """`extern_functions` are those that external libraries implement, by name; `is_apart` is for `RowFusion`.

        Arguments that are `states`, by number, are in the arrays of results, whose numbers stand there.
        """
        self.extern_functions = extern_functions
        block = function.regions[0].blocks[0]
        self._operations = [op.operation for op in block.operations]
        self._arguments = list(block.arguments)
        self._returned = list(self._operations[-1].operands)
        self._states = states
        self.program = program
        self._slots: dict[ir.Value, programs.BufferSlot] = {}
        self._derived: dict[Hashable, Any] = {}
        self._paddings = paddings = self._collect_paddings()
        # A reference to this object would keep it and all weights alive until the cyclic garbage collector runs.
        self._row_fusion = RowFusion(self._operations, lambda value: value not in paddings, scope, is_apart)
        self.fusion_groups = FusionGroups(self._operations, self._row_fusion.computed, self._row_fusion.read)
        self._epilogues = dict(result_epilogues(self._operations, self.fusion_groups, self._is_inner))
        self._in_epilogues = {one for found in self._epilogues.values() for one in found.computed}

    def run(self) -> programs.Program:
        """Lower every op; raises `CompileError` with a note per op without conversion, and if memory is too small."""
        _refuse_unknown(self._operations[:-1])
        check_repeated_constants(self._operations)
        inputs = count()
        for index, argument in enumerate(self._arguments):
            if index in self._states:
                self._stage_state(argument, self._states[index])
            else:
                self._stage_input(next(inputs), argument)
        for op in self._operations[:-1]:
            self._lower_at(op)
        self.program.names = ()
        self.program.location = self._operations[-1].location
        for index, value in enumerate(self._returned):
            self._return(index, value)
        return self.program

    def _lower_at(self, op: ir.Operation) -> None:
        """Lower `op`, and the fused rows that start at it."""
        group = self._row_fusion.starting.get(op)
        if group is not None:
            _CONVERSIONS[FUSED_ROWS](self, group)
        is_elsewhere = op in self._row_fusion.computed or op in self._in_epilogues or op in self.fusion_groups.inside
        if op.name in CONSTANT_OPS or is_elsewhere:
            return
        epilogue = self._epilogues.get(op)
        members = () if epilogue is None else epilogue.members
        self.program.names = names_of(joined([op.location, *(member.location for member in members)]))
        self.program.location = op.location
        try:
            _CONVERSIONS[op.name](self, op.opview)
        except CompileError as error:
            raise error_at(op.location, f"'{op.name}' op {error}") from error
        except MemoryError as error:
            raise error_at(op.location, f"'{op.name}' op needs more memory to be compiled than there is") from error

    def slot(self, value: ir.Value, padding: Padding | None = None) -> programs.BufferSlot:
        """The slot of `value`, with at least the pads of `padding`, filled with its value."""
        found = self._slots.get(value)
        if found is None:
            return self._constant(value, padding)
        if padding is None or padding.pads == programs.NO_PADS or self._paddings[value].fill == padding.fill:
            return found
        # Two consumers need different padding values around the same image: the second gets its own copy.
        slot = self.program.buffer(programs.storage_of(value.type, padding.pads))
        self.copy(found, slot, shape_of(value.type), label=f"pad {value.get_name()}")
        self._fill_padding(slot, padding.fill)
        return slot

    def result(self, value: ir.Value) -> programs.BufferSlot:
        """The slot of a new value: a user's output array where that has the right layout, else the arena."""
        reshaped = self._reshaped_result(value)
        if value in self._returned and not self.is_padded(value) and self.can_be_array(value):
            slot = self._array("output", self._returned.index(value), value)
        elif reshaped is not None:
            self._slots[reshaped] = array = self._array("output", self._returned.index(reshaped), reshaped)
            slot = replace(array, storage=programs.dense_storage_of(value.type))
        else:
            slot = self._inside_padded(value) or self.program.buffer(self._storage(value))
        self.define(value, slot)
        return slot

    def _reshaped_result(self, value: ir.Value) -> ir.Value | None:
        """The result of the network that is `value` in another shape, if the reshape alone reads it and can stay."""
        reshape = only_user(value)
        if not isinstance(reshape, qnn.ReshapeOp) or self.is_padded(value) or reshape.output not in self._returned:
            return None
        fits = self._is_written_as_array(value) or self.can_be_array(value)
        is_last = all(use.owner.name == self._operations[-1].name for use in reshape.output.uses)
        return reshape.output if fits and is_last else None

    def _inside_padded(self, value: ir.Value) -> programs.BufferSlot | None:
        """The middle of the tensor that pads `value` and is its only reader, so that nothing is copied there."""
        pad = only_user(value)
        if not isinstance(pad, qnn.PadOp) or not shape_of(value.type) or self.is_padded(value):
            return None
        if not {value, pad.output}.isdisjoint(self._returned) or self._reshaped_result(pad.output) is not None:
            return None
        whole = self._storage(pad.output)
        middle = middle_of(pad, whole)
        if middle is None or self.is_of_rows([value]) or whole.pitch != self._storage(value).pitch:
            return None
        return replace(self.result(pad.output), storage=middle.storage, offset=middle.offset)

    def once(self, key: Hashable, emit: Callable[[], Derived]) -> Derived:
        """The result of `emit`, which appends kernel calls, at the first call with `key`; the same at later ones."""
        if key not in self._derived:
            self._derived[key] = emit()
        return self._derived[key]

    def epilogue(self, op: ir.OpView) -> ResultEpilogue | None:
        """The epilogue that the kernel of a product applies to its values before it stores them."""
        return self._epilogues.get(op.operation)

    def product(self, op: ir.OpView) -> programs.BufferSlot:
        """The slot of a product's values, or of its epilogue's result."""
        value, epilogue = op.operation.results[0], self.epilogue(op)
        if epilogue is None:
            return self.result(value)
        slot = self.result(epilogue.result)
        if epilogue.reshape is None:
            return slot
        shape = programs.image_shape(shape_of(value.type))
        return replace(slot, storage=programs.Storage(shape, slot.storage.element, slot.storage.pitch))

    def _is_inner(self, value: ir.Value) -> bool:
        """Whether `value` is neither returned nor read by a kernel of fused rows."""
        return value not in self._returned and value not in self._row_fusion.read and not self.is_of_rows([value])

    def define(self, value: ir.Value, slot: programs.BufferSlot) -> None:
        """Set the slot of `value` and fill its padding, before its producer runs."""
        self._slots[value] = slot
        padding = self._paddings.get(value)
        if padding is not None and slot.storage.pads != programs.NO_PADS:
            self._fill_padding(slot, padding.fill)

    def is_padded(self, value: ir.Value) -> bool:
        """Whether a consumer reads around `value`."""
        return value in self._paddings

    def copy(
        self, source: programs.BufferSlot, target: programs.BufferSlot, shape: tuple[int, ...], label: str
    ) -> None:
        """Copy the quantized values of `shape`."""
        shape = shape or (1,)
        self.move(shape, stored_operand(source, shape), stored_operand(target, shape), label)

    def move(
        self, shape: Sequence[int], source: elementwise.MapOperand, target: elementwise.MapOperand, label: str
    ) -> None:
        """Append the kernel call that copies as many elements of one tensor to another."""
        kernel = programs.Kernel(self.program)
        elementwise.emit_map(kernel, shape, [source], target, elementwise.as_stored(source, target))
        self.program.call(kernel, label)

    def _fill_padding(self, slot: programs.BufferSlot, fill: int) -> None:
        kernel = programs.Kernel(self.program)
        element = slot.storage.element
        value = kernel.number("fill", fill, element)
        elementwise.emit_padding(kernel, slot, value)
        self.program.call(kernel, "padding")

    def can_be_array(self, value: ir.Value) -> bool:
        """Whether a user's array can be the slot of `value`: every kernel that accesses it takes it unchanged."""
        if self._is_written_as_array(value) and all(self._is_array_kernel(use.owner) for use in value.uses):
            return True
        is_same = programs.dense_storage_of(value.type) == programs.storage_of(value.type) and self._is_read_as_it_is(
            value
        )
        return is_same and not any(reads_past_end(use.owner) or reads_words(use.owner) for use in value.uses)

    def _is_written_as_array(self, value: ir.Value) -> bool:
        """Whether the kernel that writes `value` takes users' arrays directly; that of an epilogue is a product."""
        owner = value.owner
        return isinstance(owner, ir.Block) or (
            owner.operation not in self._in_epilogues and self._is_array_kernel(owner)
        )

    def _is_array_kernel(self, op: ir.Operation | ir.OpView) -> bool:
        """Whether what computes `op` takes users' arrays directly; products compute some transpositions."""
        return op.operation not in self._row_fusion.viewed and _takes_arrays(op)

    def is_stored(self, value: ir.Value) -> bool:
        """Whether `value` has a slot already."""
        return value in self._slots

    def is_of_rows(self, values: Iterable[ir.Value]) -> bool:
        """Whether a kernel of fused rows computes one of `values`."""
        owners = [value.owner for value in values]
        return any(not isinstance(one, ir.Block) and one.operation in self._row_fusion.computed for one in owners)

    def is_signed(self, value: ir.Value) -> bool:
        """Whether `value` is read from a user's array, where its quantized values are signed."""
        return value in self._slots and self._slots[value].signed

    def _is_read_as_it_is(self, value: ir.Value) -> bool:
        """Whether its quantized values need no shift: they are unsigned, or only ever multiplied as signed ones."""
        if programs.signed_shift(value.type) == 0:
            return True
        is_input = isinstance(value.owner, ir.Block)
        return is_input and self.program.strategy.multiplies_signed and all(map(multiplies_signed, value.uses))

    def _array(self, kind: str, index: int, value: ir.Value) -> programs.BufferSlot:
        storages = self.program.inputs if kind == "input" else self.program.outputs
        return programs.BufferSlot(kind, index, storages[index], signed=programs.signed_shift(value.type) != 0)

    def _storage(self, value: ir.Value) -> programs.Storage:
        """The layout of `value` in the arena."""
        storage = programs.storage_of(
            value.type, self._paddings[value].pads if value in self._paddings else programs.NO_PADS
        )
        owner = value.owner
        # Targets without byte permutations transpose up to four planes into pixels of four bytes.
        permutes = self.program.strategy.gathers_bytes
        is_written_so = isinstance(owner, ir.Block) or (
            storage.pitch <= _NARROW
            and self._is_written_as_array(value)
            and (permutes or owner.name != qnn.TransposeOp.OPERATION_NAME)
        )
        if not is_written_so or not all(isinstance(use.owner, Convolution) for use in value.uses):
            return storage
        # Windows are read at any length: a kernel that writes without padding lanes writes contiguous rows.
        return replace(storage, pitch=storage.shape[3])

    def _stage_input(self, index: int, argument: ir.Value) -> None:
        array = self._array("input", index, argument)
        if 0 in shape_of(argument.type):
            return
        if argument not in self._paddings and self.can_be_array(argument):
            self._slots[argument] = array
            return
        self._copy_in(argument, array, f"input {index}")

    def _copy_in(self, argument: ir.Value, array: programs.BufferSlot, label: str) -> None:
        slot = self._inside_padded(argument) or self.program.buffer(self._storage(argument))
        self.define(argument, slot)
        self.copy(array, slot, shape_of(argument.type), label)

    def _stage_state(self, argument: ir.Value, result: int) -> None:
        """A state stays where it is if an op writes rows of it in place, else is copied before its array is written."""
        array = self._array("output", result, argument)
        if 0 in shape_of(argument.type) or not list(argument.uses):
            return
        written = self._written_rows(argument)
        if written is None or self._seen_from(self._returned[result]) != written.output:
            self._copy_in(argument, array, f"state {result}")
            return
        self._slots[argument] = array
        self._slots[written.output] = replace(array, storage=programs.dense_storage_of(written.output.type))

    def _written_rows(self, argument: ir.Value) -> qnn.DynamicScatterOp | None:
        """The op that writes rows of a state, if nothing else reads it, and its readers take users' arrays."""
        value, reader = argument, only_user(argument)
        while isinstance(reader, qnn.ReshapeOp):
            value, reader = reader.output, only_user(reader.output)
        if not isinstance(reader, qnn.DynamicScatterOp) or reader.data != value or self.is_padded(reader.output):
            return None
        return reader if self.can_be_array(reader.output) and programs.signed_shift(argument.type) == 0 else None

    def _seen_from(self, value: ir.Value) -> ir.Value:
        """The value that `value` is in another shape."""
        while isinstance(value.owner, ir.Operation | ir.OpView) and isinstance(value.owner.opview, qnn.ReshapeOp):
            value = value.owner.opview.input
        return value

    def _constant(self, value: ir.Value, padding: Padding | None) -> programs.BufferSlot:
        """A constant in the layout that kernels read, padding included: no call stores it."""
        array = constant_value(value)
        if array is None:
            raise CompileError(f"value {value.get_name()} has no buffer and is not a constant")
        quantized = (
            (array.astype(np.int16) + programs.signed_shift(value.type)).astype(np.uint8)
            if array.itemsize == 1
            else array
        )
        storage = programs.storage_of(value.type, padding.pads if padding else programs.NO_PADS)
        images, _, _, channels = storage.shape
        top, left, _, _ = storage.pads
        elements = np.full((images, *storage.padded, storage.pitch), padding.fill if padding else 0, quantized.dtype)
        rows, columns = (slice(first, first + n) for first, n in zip((top, left), storage.shape[1:3], strict=True))
        elements[:, rows, columns, :channels] = quantized.reshape(storage.shape)
        return self.program.constant_tensor(elements, storage)

    def _return(self, index: int, value: ir.Value) -> None:
        if 0 in shape_of(value.type):
            return
        slot = self.slot(value)
        if slot.kind == "output" and slot.index == index:
            return
        self.copy(slot, self._array("output", index, value), shape_of(value.type), f"output {index}")

    def _collect_paddings(self) -> dict[ir.Value, Padding]:
        paddings: dict[ir.Value, Padding] = {}
        for op in self._operations:
            padding = padding_of(op.opview)
            if padding is None:
                continue
            data = op.operands[0]
            known = paddings.get(data)
            if known is None:
                paddings[data] = padding
            elif known.fill == padding.fill:
                paddings[data] = known.joined(padding)
        return paddings


def dim_strides(shape: tuple[int, ...], storage: programs.Storage) -> tuple[int, ...]:
    """Elements between neighbours along each logical dimension of a tensor stored as `storage`."""
    if len(shape) == 4:
        return storage.strides
    return row_major((*shape[:-1], storage.pitch)) if shape else ()


def stored_operand(slot: programs.BufferSlot, shape: tuple[int, ...]) -> elementwise.MapOperand:
    """A stored tensor of `shape`, from its first element on."""
    return elementwise.MapOperand(slot, dim_strides(shape, slot.storage), slot.storage.origin)


_NARROW = 4
"""Up to this many lanes, rows are written pixel by pixel unless they are contiguous."""
_COMPUTABLE = TypeConstraint(tuple(programs.STORAGE_ELEMENTS))


def _takes_arrays(op: ir.Operation | ir.OpView) -> bool:
    if op.name not in _TAKES_ARRAYS:
        # Importing the module of its conversion registers whether it does.
        _CONVERSIONS.get(op.name)
    return op.name in _TAKES_ARRAYS and not reads_words(op)


def _refuse_unknown(operations: list[ir.Operation]) -> None:
    problems = {op: problem for op in operations if op.name not in CONSTANT_OPS and (problem := _problem(op))}
    if not problems:
        return
    message = f"{len(problems)} ops cannot be lowered: {', '.join(sorted({op.name for op in problems}))}"
    notes = tuple(note_at(op, problem) for op, problem in problems.items())
    raise error_at(next(iter(problems)).location, message, notes)


_OF_SMALL_FLOATS = ("arith.bitcast", "arith.extf", "arith.select", "arith.truncf")


def _problem(op: ir.Operation) -> str | None:
    if not has_conversion(op.name):
        return "has no lowering"
    types = [value.type for value in (*op.operands, *op.results)]
    unknown = [type_ for type_ in types if _COMPUTABLE.problem(type_)]
    if unknown:
        return f"has a value of type {unknown[0]}, which no kernel computes"
    small = [type_ for type_ in types if element_of(type_) in SMALL_FLOATS]
    if small and op.name.startswith(("arith.", "math.")) and op.name not in _OF_SMALL_FLOATS:
        return f"computes with {element_of(small[0])}: extend operands to f32 by arith.extf, truncate by arith.truncf"
    return None


# Ops that must not read a user's array as they read the arena: past its end, as 32-bit words, or as signed bytes.


def reads_past_end(op: Any) -> bool:
    """Whether a contiguous reduction ends inside a K group: the kernel reads past the data, which needs the arena."""
    if not isinstance(op, Convolution | qnn.DynamicConv2DOp | qnn.I16Conv2DOp):
        return False
    channels, results = shape_of(op.data.type)[3], shape_of(op.operation.results[0].type)[3]
    k_group = 2 if isinstance(op, qnn.I16Conv2DOp) else 4
    return any(block.channels_in % k_group for block in group_blocks(op.groups, channels, results))


def reads_words(op: Any) -> bool:
    """Whether products read the input of `op` through it as 32-bit words, which needs the arena's layout."""
    return isinstance(view := op.opview, qnn.TransposeOp) and is_read_through(view)


def multiplies_signed(use: ir.OpOperand) -> bool:
    """Whether a use is the data of a contraction with constant weights whose channels are all summed up."""
    op = use.owner.opview
    if not isinstance(op, qnn.Conv2DOp | qnn.FusedConv2DOp | qnn.DenseOp | qnn.FusedDenseOp):
        return False
    groups = op.groups if isinstance(op, qnn.Conv2DOp | qnn.FusedConv2DOp) else 1
    return use.operand_number == 0 and groups == 1 and constant_value(op.weight) is not None


# Limits the memory of splat constants, which a module writes down in a few characters.

MAX_REPEATED = 1 << 26
"""Most elements, in all, of splat constants that kernels read from memory.

Other constants are limited by the size of the text or the file that contains them.
"""


def check_repeated_constants(operations: Sequence[ir.Operation]) -> None:
    """Raise `CompileError` at the splat constant that exceeds `MAX_REPEATED` elements in all."""
    total = 0
    for op in operations:
        if op.name not in CONSTANT_OPS or not _is_stored(op):
            continue
        total += math.prod(shape_of(op.results[0].type))
        if total > MAX_REPEATED:
            message = f"constants that repeat one number must have at most {MAX_REPEATED} elements together"
            raise error_at(op.location, f"'{op.name}' op {message} to be compiled, but got {total}")


def _is_stored(op: ir.Operation) -> bool:
    """Whether `op` is a splat that a kernel reads from memory: element-wise kernels take it as a scalar instead."""
    value = op.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return False
    return any(use.owner.operation.name not in MEMBERS for use in op.results[0].uses)
