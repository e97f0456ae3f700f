"""Reads and writes of narrow integers: what is asked of them before other instructions access the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.lowering.ir.effects import only_reads
from qdialect.lowering.ir.views import array_of
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.flat_address import FlatAddress, flat_address
from qdialect.passes.pattern import MatchFailure

_BYTE = 8


@dataclass(frozen=True)
class Read:
    """A `vector.transfer_read` of integers: the elements from `indices` on, along the innermost dimensions."""

    op: ir.Operation
    buffer: ir.Value
    indices: list[ir.Value]
    shape: list[int]
    strides: tuple[int, ...]
    """Of all dimensions of the buffer, in elements."""

    @property
    def moving(self) -> tuple[int, ...]:
        """The strides of the dimensions that are read along."""
        return self.strides[len(self.strides) - len(self.shape) :]

    def position(self, steps: Sequence[int]) -> list[ir.Value]:
        """Its indices plus `steps` along the innermost dimensions."""
        return b.shifted(self.indices, [*[0] * (len(self.indices) - len(steps)), *steps])

    def flat(self) -> FlatAddress:
        """Where it begins."""
        return flat_address(self.buffer, self.indices)

    def before(self, user: ir.Operation) -> ir.InsertionPoint:
        """Where loads find what it reads: before `user`, or at itself where memory may be written in between."""
        return ir.InsertionPoint(user if is_unwritten(self.op, user) else self.op)


def integer_read(value: ir.Value, what: str, bits: int) -> Read | MatchFailure:
    """The read of integers of `bits` whose result `value` is; `what` names the value in a reason."""
    op = b.defining(value, "vector.transfer_read")
    if op is None:
        return MatchFailure(f"{what} must be read from memory")
    buffer = op.operands[0]
    problem = buffer_problem(buffer, bits) or transfer_problem(op, buffer, others=2)
    if problem:
        return MatchFailure(f"{what} {problem}")
    type_ = ir.MemRefType(buffer.type)
    strides = static_strides(type_) or ()
    return Read(op, buffer, list(op.operands)[1 : 1 + type_.rank], b.shape_of(op.results[0]), strides)


def buffer_problem(buffer: ir.Value, bits: int = 8) -> str | None:
    """Why `buffer` is no memref of integers of `bits` at known strides in the default memory space."""
    if not isinstance(buffer.type, ir.MemRefType) or not b.is_integer(buffer.type.element_type, bits):
        return f"must be in a memref of {'bytes' if bits == _BYTE else 'words'}, but got {buffer.type}"
    if buffer.type.memory_space is not None or static_strides(buffer.type) is None:
        return f"must be in the default memory space at static strides, but got {buffer.type}"
    return None


def transfer_problem(op: ir.Operation, buffer: ir.Value, others: int) -> str | None:
    """Why a transfer is more than an access to elements that are all there; `others` are its operands but indices."""
    type_ = ir.MemRefType(buffer.type)
    if len(op.operands) != type_.rank + others:
        return "must be accessed without a mask"
    if not all(ir.BoolAttr(one).value for one in ir.ArrayAttr(op.attributes["in_bounds"])):
        return "must be accessed in bounds"
    map_ = ir.AffineMapAttr(op.attributes["permutation_map"]).value
    if map_ != ir.AffineMap.get_minor_identity(type_.rank, len(map_.results), op.context):
        return f"must be accessed in the order of memory, but got {map_}"
    return None


def note_of(buffer: ir.Value, name: str) -> ir.Attribute | None:
    """What an argument of a function says by the attribute `name` of the elements that `buffer` shows."""
    source = array_of(buffer)
    if not isinstance(source.owner, ir.Block):
        return None
    function = source.owner.owner
    if "arg_attrs" not in function.attributes:
        return None
    notes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[ir.BlockArgument(source).arg_number])
    if name not in notes:
        return None
    return notes[name]


def elements_behind(view: ir.Value) -> int | None:
    """Elements of the flat buffer behind the last one that a `memref.reinterpret_cast` shows; None where unknown."""
    owner = b.defining(view, "memref.reinterpret_cast")
    if owner is None or not isinstance(owner.operands[0].type, ir.MemRefType):
        return None
    source, shown = ir.MemRefType(owner.operands[0].type), ir.MemRefType(view.type)
    strides, offset = static_strides(shown), shown.get_strides_and_offset()[1]
    is_known = source.has_static_shape and shown.has_static_shape and static_strides(source) == (1,)
    if strides is None or not is_known or offset == ir.ShapedType.get_dynamic_stride_or_offset():
        return None
    last = offset + sum((size - 1) * stride for size, stride in zip(shown.shape, strides, strict=True))
    return source.shape[0] - 1 - last


def is_unwritten(first: ir.Operation, last: ir.Operation) -> bool:
    """Whether no op between two of one block writes memory, as far as is known; false for ops of different blocks."""
    if first.block != last.block:
        return False
    is_between = False
    for op in first.block.operations:
        if op.operation == last:
            return is_between
        if is_between and not only_reads(op.operation):
            return False
        is_between = is_between or op.operation == first
    return False
