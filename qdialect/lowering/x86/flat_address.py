"""Elements of a buffer that is seen as one dimension.

What is a constant distance from such an element takes one addition. By indices it takes an addition for each that
differs, and all of their products with strides: where kernels load hundreds of vectors from a few addresses, more than
half of the ops were address arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import mul

from qdialect._mlir import ir, vector
from qdialect.late_dataclass import dataclass
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.x86 import building as b

_DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"
_FARTHEST = 2**31
"""A constant index is of 32 bits."""
_RUN_TIME = -(2**31)
"""In the place of an index that is an operand."""


@dataclass(frozen=True)
class FlatAddress:
    """What is `distance` away from an element of a buffer of one dimension."""

    buffer: ir.Value
    start: ir.Value
    pointer: ir.Value | None
    """To the element; None where the offset of the buffer is known at run time only, or is too large."""
    distance: int = 0

    def further(self, distance: int) -> FlatAddress:
        """The element `distance` away."""
        return replace(self, distance=self.distance + distance)

    def load(self, lanes: int) -> ir.Value:
        """The 1-d vector of `lanes` elements that begins here.

        It is one of the LLVM dialect where that is possible: there are thousands, and to convert one takes as long as
        all that is done with it before.
        """
        if self.pointer is None or self.distance >= _FARTHEST:
            return b.load(lanes, self.buffer, self._indices())
        element = ir.MemRefType(self.buffer.type).element_type
        pointer = _further(self.pointer, self.distance, element) if self.distance else self.pointer
        size = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), b.integer_bits(element) // 8)
        return b.emit("llvm.load", ir.VectorType.get([lanes], element), pointer, attributes={"alignment": size})

    def store(self, value: ir.Value) -> None:
        """Store a 1-d vector from here on."""
        vector.store(value, self.buffer, self._indices())

    def _indices(self) -> list[ir.Value]:
        return b.shifted([self.start], [self.distance])


def flat_address(buffer: ir.Value, indices: Sequence[ir.Value]) -> FlatAddress:
    """The element at `indices` of a memref with static strides that are not negative."""
    flat = _flat(buffer)
    start = _sum_of_products(indices, static_strides(ir.MemRefType(buffer.type)) or (), 0)
    return FlatAddress(flat, start, _pointer(flat, start))


def _pointer(flat: ir.Value, start: ir.Value) -> ir.Value | None:
    """To the element `start` of a memref of one dimension, whose offset is negative by MLIR where it is dynamic."""
    type_ = ir.MemRefType(flat.type)
    offset = type_.get_strides_and_offset()[1]
    if not 0 <= offset < _FARTHEST:
        return None
    pointer, i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
    # What upstream's conversion makes of a memref: the allocated pointer, the aligned one, the offset, sizes, strides.
    descriptor = b.emit("builtin.unrealized_conversion_cast", ir.Type.parse(_DESCRIPTOR), flat)
    first = b.emit("llvm.extractvalue", pointer, descriptor, attributes={"position": ir.DenseI64ArrayAttr.get([1])})
    if offset:
        first = _further(first, offset, type_.element_type)
    number = b.emit("arith.index_cast", i64, start)
    attributes = {
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([_RUN_TIME]),
        "elem_type": ir.TypeAttr.get(type_.element_type),
    }
    return b.emit("llvm.getelementptr", pointer, first, number, attributes=attributes)


def _further(pointer: ir.Value, distance: int, element: ir.Type) -> ir.Value:
    attributes = {
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([distance]),
        "elem_type": ir.TypeAttr.get(element),
    }
    return b.emit("llvm.getelementptr", pointer.type, pointer, attributes=attributes)


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
    # What is known at run time only: the offset, then the sizes.
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
