"""View analysis: the buffer of a memref or an address, and the offset of a view in it.

Positions are counted in bytes, since a view may have elements of another type than its buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import constant, loop_of

_DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()
_SAME_ELEMENTS = frozenset(
    (
        *("memref.assume_alignment", "memref.cast", "memref.collapse_shape", "memref.expand_shape"),
        *("memref.memory_space_cast", "memref.reinterpret_cast", "memref.subview"),
    )
)
"""Views whose elements are those of their operand, counted from the same start."""
_VIEWS = _SAME_ELEMENTS | {*("memref.view", "memref.transpose", "memref.extract_strided_metadata", "vector.type_cast")}
_ADDRESSES = frozenset(
    (
        *("arith.index_cast", "arith.index_castui", "builtin.unrealized_conversion_cast", "llvm.bitcast"),
        *("llvm.extractvalue", "llvm.getelementptr", "llvm.inttoptr", "memref.extract_aligned_pointer_as_index"),
    )
)
"""Ops whose result points into the memory of their first operand."""
ALLOCATIONS = ("memref.alloc", "memref.alloca")
_GLOBAL = "memref.get_global"
_FUNCTIONS = ("func.func", "llvm.func")
_FARTHEST_SUM = 4
"""Terms of an address in which a pointer is looked for."""

Buffer = ir.Value | str
"""A buffer that does not alias others: an argument of a function, the result of an allocation, a global by name."""


def is_view(op: ir.Operation) -> bool:
    """Whether the first result of `op` is a view of its first operand."""
    return op.name in _VIEWS


def is_memory(value: ir.Value) -> bool:
    """Whether `value` is a memref or a pointer."""
    return isinstance(value.type, ir.MemRefType) or str(value.type).startswith("!llvm.ptr")


def array_of(buffer: ir.Value) -> ir.Value:
    """The memref whose elements `buffer` has, counted from the same start."""
    owner = buffer.owner
    while not isinstance(owner, ir.Block) and owner.name in _SAME_ELEMENTS:
        buffer = owner.operands[0]
        owner = buffer.owner
    return buffer


def behind(value: ir.Value) -> ir.Value:
    """The memref that a memref is a view of, or that an address was taken of, as far as it is known."""
    owner = value.owner
    while not isinstance(owner, ir.Block):
        source = _source(owner.operation)
        if source is None:
            break
        value, owner = source, source.owner
    return value


def buffer_of(value: ir.Value) -> Buffer | None:
    """The buffer of a memref or an address; None if it may be any."""
    found = behind(value)
    owner = found.owner
    if isinstance(owner, ir.Block):
        return found if owner.owner.operation.name in _FUNCTIONS and isinstance(found.type, ir.MemRefType) else None
    if owner.name == _GLOBAL:
        return ir.FlatSymbolRefAttr(owner.attributes["name"]).value
    return found if owner.name in ALLOCATIONS else None


def may_alias(one: ir.Value, other: ir.Value) -> bool:
    """Whether two memrefs or pointers may alias; arguments of a function do not."""
    first, second = buffer_of(one), buffer_of(other)
    return first is None or second is None or first == second


def element_bytes(type_: ir.MemRefType) -> int | None:
    """Bytes of an element in memory; None if they are not known here."""
    element = type_.element_type
    if isinstance(element, ir.IndexType):
        return 8
    return -(-element.width // 8) if isinstance(element, ir.IntegerType | ir.FloatType) else None


def _source(op: ir.Operation) -> ir.Value | None:
    """The operand of which the result of `op` is a view, or an address inside."""
    if op.name in _VIEWS or op.name in _ADDRESSES:
        return op.operands[0]
    return _pointing(op) if op.name == "arith.addi" else None


def _pointing(total: ir.Operation, depth: int = _FARTHEST_SUM) -> ir.Value | None:
    """The one term of a sum that is an address."""
    found: list[ir.Value] = []
    for term in total.operands:
        owner = term.owner
        while not isinstance(owner, ir.Block) and owner.name.startswith("arith.index_cast"):
            owner = owner.operands[0].owner
        if isinstance(owner, ir.Block):
            continue
        if owner.name == "memref.extract_aligned_pointer_as_index":
            found.append(owner.operation.results[0])
        elif owner.name == "arith.addi" and depth and (inner := _pointing(owner.operation, depth - 1)):
            found.append(inner)
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class Linear:
    """A constant plus multiples of loops' indices."""

    constant: int
    factors: dict[ir.Value, int]

    def plus(self, other: Linear) -> Linear:
        keys = (*self.factors, *other.factors)
        factors = {key: self.factors.get(key, 0) + other.factors.get(key, 0) for key in keys}
        return Linear(self.constant + other.constant, factors)

    def times(self, factor: int) -> Linear:
        return Linear(self.constant * factor, {key: old * factor for key, old in self.factors.items()})


def linear(value: ir.Value) -> Linear | None:
    """`value` as a sum of multiples of the indices of loops; None where it is something else."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return Linear(0, {value: 1}) if loop_of(value) else None
    number = constant(value)
    if number is not None:
        return Linear(number, {})
    if owner.name not in ("arith.addi", "arith.muli"):
        return None
    lhs, rhs = (linear(operand) for operand in owner.operands)
    if lhs is None or rhs is None:
        return None
    if owner.name == "arith.addi":
        return lhs.plus(rhs)
    if rhs.factors:
        lhs, rhs = rhs, lhs
    return None if rhs.factors else lhs.times(rhs.constant)


def start_of(buffer: ir.Value) -> Linear | None:
    """The offset in bytes of a view's first element from the start of its buffer; None if unknown."""
    size, offset, start = element_bytes(ir.MemRefType(buffer.type)), _offset(buffer), _aligned_start(buffer)
    return None if size is None or offset is None or start is None else start.plus(offset.times(size))


def _aligned_start(buffer: ir.Value) -> Linear | None:
    """The start in bytes from which the offset of a view counts."""
    owner = buffer.owner
    if isinstance(owner, ir.Block) or owner.name not in _VIEWS:
        return Linear(0, {})
    before = _aligned_start(owner.operands[0])
    shift = linear(owner.operands[1]) if owner.name == "memref.view" else Linear(0, {})
    return None if before is None or shift is None else before.plus(shift)


def _offset(buffer: ir.Value) -> Linear | None:
    """The offset of a view, in its elements."""
    type_ = ir.MemRefType(buffer.type)
    try:
        _, offset = type_.get_strides_and_offset()
    except RuntimeError:
        return None
    if offset != _DYNAMIC:
        return Linear(offset, {})
    owner = buffer.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name == "memref.subview":
        return _offset_of_subview(owner.operation)
    if owner.name == "memref.reinterpret_cast":
        (static,) = ir.DenseI64ArrayAttr(owner.attributes["static_offsets"])
        return linear(owner.operands[1]) if static == _DYNAMIC else Linear(static, {})
    # They have the elements of their operand, from its first one on.
    same = ("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.assume_alignment")
    return _offset(owner.operands[0]) if owner.name in same else None


def _offset_of_subview(op: ir.Operation) -> Linear | None:
    strides = static_strides(ir.MemRefType(op.operands[0].type))
    found, dynamic = _offset(op.operands[0]), list(op.operands)[1:]
    for static, stride in zip(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]), strides or (), strict=False):
        step = linear(dynamic.pop(0)) if static == _DYNAMIC else Linear(static, {})
        if found is None or step is None:
            return None
        found = found.plus(step.times(stride))
    return None if strides is None else found


# Row-major strides, and those of memrefs.


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    """Elements between neighbours along each dimension of an array of these sizes that lies without gaps."""
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


def static_strides(type_: ir.MemRefType) -> tuple[int, ...] | None:
    """The strides of a memref; None where one is known at run time only, or where its layout is not strided."""
    try:
        strides, _ = type_.get_strides_and_offset()
    except RuntimeError:
        return None
    return None if ir.ShapedType.get_dynamic_stride_or_offset() in strides else tuple(strides)


# Strided views: how a kernel sees a flat buffer.
#
# A view is a list of axes, outermost first, each with a size and a stride in elements; strides may overlap.  So a
# convolution needs no im2col: its windows are a view in which the axes of pixels and of taps walk over the same bytes.


@dataclass(frozen=True)
class Axis:
    """One loop of a kernel: its trip count, and how far each operand moves per iteration.

    `strides[i]` belongs to operand i of whatever the axis is used for (input and output, or input alone).
    """

    size: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class View:
    """A strided window on a flat buffer, in elements."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def covered(self) -> int:
        """Elements from the first to the last of the view, or the number of its elements if that is less."""
        pairs = zip(self.sizes, self.strides, strict=True)
        span = 1 + sum((size - 1) * abs(stride) for size, stride in pairs)
        return min(span, math.prod(self.sizes))


def collapse(axes: Sequence[Axis]) -> list[Axis]:
    """Merge neighbouring axes that every operand walks as one; axes of size 1 vanish.

    ``(a, b)`` is one axis of size a*b where ``stride(a) == size(b) * stride(b)`` for every operand.  So the pixels of a
    1x1 convolution become the rows of one matrix, and a filter as wide as its input becomes one dense row.
    """
    merged: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        pairs = zip(merged[-1].strides, axis.strides, strict=True) if merged else ()
        if merged and all(wide == axis.size * narrow for wide, narrow in pairs):
            merged[-1] = Axis(merged[-1].size * axis.size, axis.strides)
        else:
            merged.append(axis)
    return merged
