"""Addresses in a buffer seen as one dimension, and reads and writes of narrow integers in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from qdialect.ir._mlir import ir, vector
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.accesses import only_reads
from qdialect.lowering.ir.functions import constant
from qdialect.lowering.ir.views import array_of, static_strides
from qdialect.passes.pattern import MatchFailure, require

# Addresses in a buffer seen as one dimension.
#
# An element at a constant distance from another takes one addition. By indices it would take an addition for each index
# that differs, and all products with strides: in kernels that load hundreds of vectors from a few addresses, more than
# half of the ops were address arithmetic.

_DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"
_FARTHEST = 2**31
"""A constant index is of 32 bits."""
_RUN_TIME = -(2**31)
"""The placeholder of a dynamic index."""


@dataclass(frozen=True)
class FlatAddress:
    """The address at `distance` from an element of a buffer of one dimension."""

    buffer: ir.Value
    start: ir.Value | None
    """The index that is not constant; None for 0."""
    pointer: ir.Value | None
    """To the element at `start`; None if the offset of the buffer is dynamic, or too large."""
    distance: int = 0

    def further(self, distance: int) -> FlatAddress:
        """The element `distance` away."""
        # `dataclasses.replace` takes four times as long.
        return FlatAddress(self.buffer, self.start, self.pointer, self.distance + distance)

    def load(self, lanes: int) -> ir.Value:
        """The 1-d vector of `lanes` elements that begins here.

        It is an op of the LLVM dialect if possible: there are thousands of loads, and converting one to the LLVM
        dialect takes as long as all steps before.
        """
        if self.pointer is None or self.distance >= _FARTHEST:
            return b.load(lanes, self.buffer, self._indices())
        element = ir.MemRefType(self.buffer.type).element_type
        pointer = _further(self.pointer, self.distance, element) if self.distance else self.pointer
        size = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), b.element_bits(element) // 8)
        return b.emit("llvm.load", ir.VectorType.get([lanes], element), pointer, attributes={"alignment": size})

    def store(self, value: ir.Value) -> None:
        """Store a 1-d vector from here on."""
        vector.store(value, self.buffer, self._indices())

    def _indices(self) -> list[ir.Value]:
        return [b.index(self.distance)] if self.start is None else b.shifted([self.start], [self.distance])


def flat_address(
    buffer: ir.Value, indices: Sequence[ir.Value], pointers: dict[ir.Value, ir.Value] | None = None
) -> FlatAddress:
    """The element at `indices` of a memref with static strides that are not negative.

    `pointers` are the existing pointers to the first elements of flat buffers; new ones are added, right after the
    buffers.
    """
    strides = static_strides(ir.MemRefType(buffer.type)) or ()
    flat, offset, pointer = _whole(buffer, {} if pointers is None else pointers)
    numbers = [constant(index) for index in indices]
    distance = offset + sum(number * stride for number, stride in zip(numbers, strides, strict=True) if number)
    if pointer is None or not 0 <= distance < _FARTHEST:
        return FlatAddress(flat, _sum_of_products(indices, strides, offset), None)
    moving = [(index, stride) for index, stride, n in zip(indices, strides, numbers, strict=True) if n is None]
    if not moving:
        return FlatAddress(flat, None, pointer, distance)
    start = _sum_of_products([index for index, _ in moving], [stride for _, stride in moving], 0)
    number = b.emit("arith.index_cast", ir.IntegerType.get_signless(64), start)
    return FlatAddress(
        flat, start, _further(pointer, _RUN_TIME, ir.MemRefType(flat.type).element_type, number), distance
    )


def _whole(buffer: ir.Value, pointers: dict[ir.Value, ir.Value]) -> tuple[ir.Value, int, ir.Value | None]:
    """A buffer of one dimension, the index of the first element of `buffer` in it, and the pointer to its own first.

    It is the memref that `buffer` is a view of, if that is flat: then the view needs no descriptor at run time.
    """
    source, offset = array_of(buffer), ir.MemRefType(buffer.type).get_strides_and_offset()[1]
    array = source.type
    is_flat = isinstance(array, ir.MemRefType) and array.rank == 1 and isinstance(array.layout, ir.AffineMapAttr)
    if is_flat and 0 <= offset < _FARTHEST:
        if source not in pointers:
            with _behind(source):
                pointers[source] = _pointer(source)
        return source, offset, pointers[source]
    flat = _flat(buffer)
    type_ = ir.MemRefType(flat.type)
    first = type_.get_strides_and_offset()[1]
    # It is negative by MLIR where it is dynamic.
    if not 0 <= first < _FARTHEST:
        return flat, 0, None
    return flat, 0, _further(_pointer(flat), first, type_.element_type) if first else _pointer(flat)


def _behind(value: ir.Value) -> ir.InsertionPoint:
    owner = value.owner
    return ir.InsertionPoint.at_block_begin(owner) if isinstance(owner, ir.Block) else ir.InsertionPoint.after(owner)


def _pointer(flat: ir.Value) -> ir.Value:
    """The pointer to the first element of a flat buffer."""
    # Upstream's memref descriptor: the allocated pointer, the aligned one, the offset, sizes, strides.
    descriptor = b.emit("builtin.unrealized_conversion_cast", ir.Type.parse(_DESCRIPTOR), flat)
    attributes = {"position": ir.DenseI64ArrayAttr.get([1])}
    return b.emit("llvm.extractvalue", ir.Type.parse("!llvm.ptr"), descriptor, attributes=attributes)


def _further(pointer: ir.Value, distance: int, element: ir.Type, *number: ir.Value) -> ir.Value:
    attributes = {"rawConstantIndices": ir.DenseI32ArrayAttr.get([distance]), "elem_type": ir.TypeAttr.get(element)}
    return b.emit("llvm.getelementptr", pointer.type, pointer, *number, attributes=attributes)


def _sum_of_products(values: Sequence[ir.Value], factors: Sequence[int], start: int) -> ir.Value:
    """`start` plus the sum of indices, each times its factor."""
    terms = [ir.AffineExpr.get_dim(number) * factor for number, factor in enumerate(factors)]
    total = ir.AffineMap.get(len(factors), 0, [sum(terms, ir.AffineExpr.get_constant(start))])
    attributes = {"map": ir.AffineMapAttr.get(total)}
    operands = list(values)
    return ir.Operation.create(
        "affine.apply", results=[ir.IndexType.get()], operands=operands, attributes=attributes
    ).result


def _flat(buffer: ir.Value) -> ir.Value:
    """`buffer` as one dimension: the elements from its first to its last in the order of memory."""
    type_ = ir.MemRefType(buffer.type)
    offset, strides = type_.get_strides_and_offset()[1], static_strides(type_) or ()
    is_placed, is_sized = offset != ir.ShapedType.get_dynamic_stride_or_offset(), type_.has_static_shape
    # Dynamic operands: the offset, then the sizes.
    found = [] if is_placed and is_sized else list(_metadata(buffer))[1 : 2 + type_.rank]
    offsets = [] if is_placed else found[:1]
    # 1 + sum((size - 1) * stride).
    rest = 1 - sum(strides)
    sizes = [] if is_sized else [_sum_of_products(found[1:], strides, rest)]
    size = rest + sum(map(mul, type_.shape, strides)) if is_sized else ir.ShapedType.get_dynamic_size()
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(offsets), len(sizes), 0]),
        "static_offsets": ir.DenseI64ArrayAttr.get([offset]),
        "static_sizes": ir.DenseI64ArrayAttr.get([size]),
        "static_strides": ir.DenseI64ArrayAttr.get([1]),
    }
    result = ir.MemRefType.get([size], type_.element_type, layout=ir.StridedLayoutAttr.get(offset, [1]))
    return ir.Operation.create(
        "memref.reinterpret_cast", results=[result], operands=[buffer, *offsets, *sizes], attributes=attributes
    ).result


def _metadata(buffer: ir.Value) -> ir.OpResultList:
    """The base, the offset, the sizes and the strides of a memref."""
    type_, index = ir.MemRefType(buffer.type), ir.IndexType.get()
    results = [ir.MemRefType.get([], type_.element_type), *[index] * (1 + 2 * type_.rank)]
    return ir.Operation.create("memref.extract_strided_metadata", results=results, operands=[buffer]).results


# Conditions on reads and writes of narrow integers, so that other instructions may access the same memory.

_BYTE = 8


@dataclass(frozen=True)
class Read:
    """A `vector.transfer_read`: the elements from `indices` on, along the innermost dimensions."""

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
        """The address of its first element."""
        return flat_address(self.buffer, self.indices)

    def before(self, user: ir.Operation) -> ir.InsertionPoint:
        """Where to insert its loads: before `user`, or at itself if memory may be written in between."""
        return ir.InsertionPoint(user if is_unwritten(self.op, user) else self.op)


def integer_read(value: ir.Value, what: str, bits: int) -> Read:
    """The read of integers of `bits` whose result `value` is; `what` names the value in a `MatchFailure`."""
    op = b.defining(value, "vector.transfer_read")
    if op is None:
        raise MatchFailure(f"{what} must be read from memory")
    require_access(op, op.operands[0], what, bits)
    return read_of(op)


def read_of(op: ir.Operation) -> Read:
    """The `vector.transfer_read` of a memref."""
    type_ = ir.MemRefType(op.operands[0].type)
    indices = list(op.operands)[1 : 1 + type_.rank]
    return Read(op, op.operands[0], indices, b.shape_of(op.results[0]), static_strides(type_) or ())


def require_access(op: ir.Operation, buffer: ir.Value, what: str, bits: int = _BYTE) -> None:
    """Raise `MatchFailure` unless `op` is a plain transfer of integers of `bits` in bounds at known strides."""
    problem = _buffer_problem(buffer, bits) or transfer_problem(op, buffer)
    require(problem is None, f"{what} {problem}")


def _buffer_problem(buffer: ir.Value, bits: int) -> str | None:
    """Why `buffer` is no memref of integers of `bits` at known strides in the default memory space."""
    if not isinstance(buffer.type, ir.MemRefType) or not b.is_integer(buffer.type.element_type, bits):
        return f"must be in a memref of {'bytes' if bits == _BYTE else 'words'}, but got {buffer.type}"
    if buffer.type.memory_space is not None or static_strides(buffer.type) is None:
        return f"must be in the default memory space at static strides, but got {buffer.type}"
    return None


def transfer_problem(op: ir.Operation, buffer: ir.Value) -> str | None:
    """Why a transfer of a vector is not a plain access in bounds."""
    type_ = ir.MemRefType(buffer.type)
    # The buffer, its indices, and the vector that is written or what pads the one that is read.
    if len(op.operands) != type_.rank + 2:
        return "must be accessed without a mask"
    if not all(ir.BoolAttr(one).value for one in ir.ArrayAttr(op.attributes["in_bounds"])):
        return "must be accessed in bounds"
    map_ = ir.AffineMapAttr(op.attributes["permutation_map"]).value
    if map_ != ir.AffineMap.get_minor_identity(type_.rank, len(map_.results), op.context):
        return f"must be accessed in the order of memory, but got {map_}"
    return None


def argument_attribute(buffer: ir.Value, name: str) -> ir.Attribute | None:
    """The attribute `name` of the function argument that `buffer` is a view of; None if there is none."""
    source = array_of(buffer)
    if not isinstance(source.owner, ir.Block):
        return None
    function = source.owner.owner
    if "arg_attrs" not in function.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[ir.BlockArgument(source).arg_number])
    if name not in attributes:
        return None
    return attributes[name]


def elements_after(view: ir.Value) -> int | None:
    """Elements of the flat buffer after the last one of a `memref.reinterpret_cast`; None if unknown."""
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
