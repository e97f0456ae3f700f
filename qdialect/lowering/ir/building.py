"""Builds and reads vector ops: small builders that the patterns of all phases share."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.ir._mlir import arith, ir, scf, vector
from qdialect.lowering.ir.functions import TRIPS, Contraction
from qdialect.lowering.ir.views import row_major

# Small builders that the x86 patterns share.


def vector_type(lanes: int, bits: int) -> ir.VectorType:
    """A 1-d vector of signless integers."""
    return ir.VectorType.get([lanes], ir.IntegerType.get_signless(bits))


def shape_of(value: ir.Value) -> list[int]:
    """Shape of a vector or memref value."""
    return list(ir.ShapedType(value.type).shape)


def lanes_of(value: ir.Value) -> int:
    """The last extent of a vector; 1 of one without dimensions, and of a number."""
    shape = shape_of(value) if isinstance(value.type, ir.VectorType) else []
    return shape[-1] if shape else 1


def is_integer(type_: ir.Type, bits: int) -> bool:
    """Whether a type is an integer of `bits` bits."""
    return isinstance(type_, ir.IntegerType) and type_.width == bits


def is_vector_of(value: ir.Value, bits: int) -> bool:
    """Whether `value` is a vector of integers of `bits` bits, of at least one dimension."""
    type_ = value.type
    return isinstance(type_, ir.VectorType) and type_.rank > 0 and is_integer(type_.element_type, bits)


def integer_bits(type_: ir.Type) -> int:
    """Bits of an integer or of the integers of a vector; 64 for an index."""
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    return element.width if isinstance(element, ir.IntegerType) else 64


def element_bits(type_: ir.Type) -> int:
    """Bits of an integer or a float; 64 for an index."""
    return type_.width if isinstance(type_, ir.IntegerType | ir.FloatType) else 64


def emit(
    name: str, result: ir.Type, *operands: ir.Value, attributes: Mapping[str, ir.Attribute] = MappingProxyType({})
) -> ir.Value:
    """The result of a new op.

    Kernels have many thousands of ops, and builders that infer types take two to three times as long for each.
    """
    return ir.Operation.create(
        name, results=[result], operands=list(operands), attributes=dict(attributes) if attributes else None
    ).result


def binary(name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """An op on two operands of one type, whose result has this type too."""
    return emit(name, left.type, left, right)


def bitcast(type_: ir.Type, value: ir.Value) -> ir.Value:
    """The bits of a vector as those of another type."""
    return emit("vector.bitcast", type_, value)


def intrinsic(name: str, result: ir.Type, *operands: ir.Value) -> ir.Value:
    """A call of an LLVM intrinsic."""
    attributes = {
        "intrin": ir.StringAttr.get(name),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    return emit("llvm.call_intrinsic", result, *operands, attributes=attributes)


def extract(source: ir.Value, position: Sequence[int]) -> ir.Value:
    """The innermost vector of `source` at the outer `position`."""
    type_ = ir.VectorType(source.type)
    result = ir.VectorType.get(type_.shape[len(position) :], type_.element_type)
    attributes = {"static_position": ir.DenseI64ArrayAttr.get(list(position))}
    return emit("vector.extract", result, source, attributes=attributes)


def insert(value: ir.Value, destination: ir.Value, position: Sequence[int]) -> ir.Value:
    """`destination` with the innermost vector at the outer `position` replaced."""
    attributes = {"static_position": ir.DenseI64ArrayAttr.get(list(position))}
    return emit("vector.insert", destination.type, value, destination, attributes=attributes)


def shuffle(first: ir.Value, second: ir.Value, mask: Sequence[int]) -> ir.Value:
    """Lanes of two vectors in the order of `mask`."""
    result = ir.VectorType.get([len(mask)], ir.VectorType(first.type).element_type)
    attributes = {"mask": ir.DenseI64ArrayAttr.get(list(mask))}
    return emit("vector.shuffle", result, first, second, attributes=attributes)


def widened(row: ir.Value, lanes: int) -> ir.Value:
    """The first `lanes` numbers of a row; those beyond its end are any."""
    known = lanes_of(row)
    return row if known == lanes else shuffle(row, row, [lane if lane < known else -1 for lane in range(lanes)])


def wrapped(indices: ir.Value, count: int) -> ir.Value:
    """Integers modulo `count`, a power of two."""
    return arith.andi(indices, splat(ir.VectorType(indices.type), count - 1))


def picked(source: ir.Value, indices: ir.Value) -> ir.Value:
    """The lanes of `source` at `indices`, one by one."""
    element = ir.VectorType(source.type).element_type
    index = ir.IndexType.get()
    lanes: list[ir.Value] = []
    for lane in range(shape_of(indices)[0]):
        at = arith.index_castui(index, extract_lane(indices, lane))
        dynamic = ir.ShapedType.get_dynamic_size()
        attributes = {"static_position": ir.DenseI64ArrayAttr.get([dynamic])}
        op = ir.Operation.create("vector.extract", results=[element], operands=[source, at], attributes=attributes)
        lanes.append(op.result)
    return vector.from_elements(ir.VectorType.get([len(lanes)], element), lanes)


def extract_lane(source: ir.Value, lane: int) -> ir.Value:
    """One lane of a 1-d vector."""
    attributes = {"static_position": ir.DenseI64ArrayAttr.get([lane])}
    element = ir.VectorType(source.type).element_type
    return ir.Operation.create("vector.extract", results=[element], operands=[source], attributes=attributes).result


def constant(array: NDArray[Any]) -> ir.Value:
    """A constant 1-d integer vector."""
    type_ = vector_type(len(array), array.dtype.itemsize * 8)
    return arith.constant(type_, ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=type_))


def splat(type_: ir.VectorType, value: float) -> ir.Value:
    """A constant vector of one value."""
    element = type_.element_type
    is_float = isinstance(element, ir.FloatType)
    number = ir.FloatAttr.get(element, value) if is_float else ir.IntegerAttr.get(element, int(value))
    return _constant(type_, ir.DenseElementsAttr.get_splat(type_, number))


def _constant(type_: ir.Type, value: ir.Attribute) -> ir.Value:
    return emit("arith.constant", type_, attributes={"value": value})


def splat_value(value: ir.Value) -> int | None:
    """The number that a constant integer vector repeats, if it is one."""
    owner = defining(value, "arith.constant")
    attribute = owner.attributes["value"] if owner else None
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    number = attribute.get_splat_value()
    return number.value if isinstance(number, ir.IntegerAttr) else None


def is_all_true(mask: ir.Value) -> bool:
    """Whether a mask is a constant that is true in every lane."""
    whole = defining(mask, "vector.constant_mask")
    if whole is not None:
        return list(ir.DenseI64ArrayAttr(whole.attributes["mask_dim_sizes"])) == shape_of(mask)
    owner = defining(mask, "arith.constant")
    return owner is not None and bool(np.array(ir.DenseElementsAttr(owner.attributes["value"])).all())


def shifted(indices: Sequence[ir.Value], steps: Sequence[int]) -> list[ir.Value]:
    """Indices plus constant steps."""
    return [
        start if step == 0 else binary("arith.addi", start, index(step))
        for start, step in zip(indices, steps, strict=True)
    ]


def collapse_inner(buffer: ir.Value, *counts: int) -> ir.Value:
    """`buffer` with its innermost dimensions, which lie side by side, as one for each of `counts`."""
    type_ = ir.MemRefType(buffer.type)
    strides, offset = type_.get_strides_and_offset()
    shape = list(type_.shape)
    keep = len(shape) - sum(counts)
    ends = [keep + sum(counts[: i + 1]) for i in range(len(counts))]
    groups = [[d] for d in range(keep)] + [
        list(range(end - count, end)) for end, count in zip(ends, counts, strict=True)
    ]
    flat = [math.prod(shape[d] for d in group) for group in groups]
    inner = row_major(flat)[keep:]
    # MLIR wants the type of a row-major memref without a layout.
    is_plain = isinstance(type_.layout, ir.AffineMapAttr)
    layout = None if is_plain else ir.StridedLayoutAttr.get(offset, [*strides[:keep], *inner])
    result = ir.MemRefType.get(flat, type_.element_type, layout=layout)
    i64 = ir.IntegerType.get_signless(64)
    reassociation = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in g]) for g in groups])
    attributes = {"reassociation": reassociation}
    return ir.Operation.create(
        "memref.collapse_shape", results=[result], operands=[buffer], attributes=attributes
    ).result


def is_innermost_contiguous(buffer: ir.Value, count: int) -> bool:
    """Whether the `count` innermost dimensions of a memref lie side by side."""
    type_ = ir.MemRefType(buffer.type)
    strides, _ = type_.get_strides_and_offset()
    expected = 1
    for size, stride in list(zip(type_.shape, strides, strict=True))[::-1][:count]:
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def load(lanes: int, buffer: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """A 1-d vector of `lanes` elements at `indices`."""
    type_ = ir.VectorType.get([lanes], ir.MemRefType(buffer.type).element_type)
    return emit("vector.load", type_, buffer, *indices)


def order_of(transposition: ir.Operation) -> list[int]:
    """Which dimension of its operand each dimension of a `vector.transpose` is."""
    return list(ir.DenseI64ArrayAttr(transposition.attributes["permutation"]))


def defining(value: ir.Value, name: str) -> ir.Operation | None:
    """The op that defines `value`, if it has this name."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != name:
        return None
    return owner.operation


def looked_through(value: ir.Value, *names: str) -> ir.Value:
    """`value`, or the operand of casts of these names."""
    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.name in names:
        value = owner.operands[0]
        owner = value.owner
    return value


def index(value: int) -> ir.Value:
    """A constant index."""
    type_ = ir.IndexType.get()
    return _constant(type_, ir.IntegerAttr.get(type_, value))


# The factors of products with one term for each element of a tile, spread over the tile.


@contextmanager
def loop(
    first: ir.Value | int, behind: ir.Value | int, step: ir.Value | int = 1, trips: float | None = None
) -> Generator[ir.Value]:
    """A loop around what is emitted inside the `with`, of so many `TRIPS`; gives its index."""
    op = scf.ForOp(*(index(bound) if isinstance(bound, int) else bound for bound in (first, behind, step)))
    with _inside(op, op.body, trips):
        yield op.induction_variable


@contextmanager
def branch(condition: ir.Value, trips: float | None = None) -> Generator[ir.Operation]:
    """A branch around what is emitted inside the `with`, which is taken so often; gives the op at its end."""
    op = scf.IfOp(condition)
    with _inside(op, op.then_block, trips) as end:
        yield end


@contextmanager
def _inside(op: ir.OpView, block: ir.Block, trips: float | None) -> Generator[ir.Operation]:
    if trips is not None:
        op.attributes[TRIPS] = ir.FloatAttr.get_f64(trips)
    with ir.InsertionPoint(block):
        end = scf.YieldOp([]).operation
    with ir.InsertionPoint(end):
        yield end


def spread(value: ir.Value, walked: Sequence[int], loops: Contraction, tile: Sequence[int]) -> ir.Value:
    """A factor whose axes are the loops `walked`, over the tile of the result.

    It is ordered, reshaped to one extent for each loop of the tile, then broadcast.
    """
    element, order = ir.VectorType(value.type).element_type, _order(walked, loops)
    shape = [loops.extents[loop] if loop in walked else 1 for loop in loops.result]
    if order is not None:
        extents = shape_of(value)
        value = vector.transpose(ir.VectorType.get([extents[axis] for axis in order], element), value, order)
    while len(shape) > 1 and shape[0] == 1 and shape != list(tile):
        shape = shape[1:]
    shaped = value if shape_of(value) == shape else vector.shape_cast(ir.VectorType.get(shape, element), value)
    return shaped if shape == list(tile) else vector.broadcast(ir.VectorType.get(list(tile), element), shaped)


def _order(walked: Sequence[int], loops: Contraction) -> list[int] | None:
    """The permutation of the axes that brings them into the order of the result; None where they have it."""
    at = [loops.result.index(loop) if loop in loops.result else 0 for loop in walked]
    long = [position for position, loop in zip(at, walked, strict=True) if loops.extents[loop] > 1]
    # Moving axes of extent 1 does not reorder elements.
    return None if long == sorted(long) else sorted(range(len(at)), key=at.__getitem__)
