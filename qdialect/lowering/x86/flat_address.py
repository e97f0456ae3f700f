"""Elements of a buffer that is seen as one dimension.

What is a constant distance from such an element takes one addition. By indices it takes an addition for each that
differs, and all of their products with strides: where kernels load hundreds of vectors from a few addresses, more than
half of the ops were address arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from qdialect._mlir import ir, vector
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.x86 import building as b


@dataclass(frozen=True)
class FlatAddress:
    """What is `distance` away from an element of a buffer of one dimension."""

    buffer: ir.Value
    start: ir.Value
    distance: int = 0

    def further(self, distance: int) -> FlatAddress:
        """The element `distance` away."""
        return FlatAddress(self.buffer, self.start, self.distance + distance)

    def load(self, lanes: int) -> ir.Value:
        """The 1-d vector of `lanes` elements that begins here."""
        return b.load(lanes, self.buffer, self._indices())

    def store(self, value: ir.Value) -> None:
        """Store a 1-d vector from here on."""
        vector.store(value, self.buffer, self._indices())

    def _indices(self) -> list[ir.Value]:
        return b.shifted([self.start], [self.distance])


def flat_address(buffer: ir.Value, indices: Sequence[ir.Value]) -> FlatAddress:
    """The element at `indices` of a memref with static strides that are not negative."""
    return FlatAddress(_flat(buffer), _sum_of_products(indices, static_strides(ir.MemRefType(buffer.type)) or (), 0))


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
