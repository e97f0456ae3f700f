"""Products with weights in blocks, rows that are quantized for them, and rows of such weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.block_weights import SMALLEST_MAXIMUM, unpack
from qdialect.arithmetic.choices import ActivationScale, BlockActivations, SumOrder
from qdialect.dialect import BlockDenseOp, BlockDynamicDenseOp, BlockGatherOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.ir.strides import Axis, collapse, row_major
from qdialect.lowering.qnn_to_linalg.contractions.block_products import BlockProducts, F32Products, IntegerProducts
from qdialect.lowering.qnn_to_linalg.contractions.block_rows import BlockRows
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import (
    BYTES,
    Blocks,
    PackedBlocks,
    block_totals,
    pack_blocks,
)
from qdialect.lowering.qnn_to_linalg.contractions.widened_products import MANY_ROWS, WidenedProducts
from qdialect.lowering.qnn_to_linalg.graph.fusion_groups import ResultEpilogue
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import Emit, MapOperand, emit_map, flipped
from qdialect.lowering.qnn_to_linalg.kernels.gathering import index_loops
from qdialect.lowering.qnn_to_linalg.kernels.reduction import (
    Finish,
    Fold,
    Reduced,
    Reduction,
    as_folded,
    emit_reduction,
    folded,
)
from qdialect.lowering.qnn_to_linalg.program.operands import required_constant
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.program.storage import Storage

_LANES, _TILE_ROWS = 16, 4
_FEW_ROWS, _SETS, _LINE = 8, 1024, 64
"""Rows that are that many bytes apart may meet in few sets of a cache; a line more, and they do not."""
_LARGEST = 127.0


@lowers(BlockDenseOp)
def _dense(lowering: GraphLowering, op: BlockDenseOp) -> None:
    shape, program, output = shape_of(op.data.type), lowering.program, lowering.product(op)
    weights, rows, epilogue = _packed(program, op), shape[:-1], lowering.epilogue(op)
    slot = lowering.slot(op.data)
    data = MapOperand(slot, dim_strides(shape, slot.storage), slot.storage.origin)
    result = MapOperand(output, dim_strides(shape_of(op.output.type), output.storage)[:-1], output.storage.origin)
    further = _finish(epilogue)
    if op.activations is BlockActivations.F32:
        source = lowering.once(("spaced", op.data), lambda: _spaced(program, rows, data, op.depth))
        products = BlockProducts(weights, rows, (source, result), *further, op.rounded_products)
        kernel = Kernel(program)
        has_fma = program.strategy.requantizer_forms.multiply_adds
        is_widened = op.order is SumOrder.TERMS and prod(rows) >= MANY_ROWS and has_fma
        (WidenedProducts(kernel, products) if is_widened else F32Products(kernel, products, op.order)).emit()
    else:
        blocks = Blocks(op.depth, min(op.data_block, op.depth))
        how = blocks, weights.terms, op.activation_scale
        quantized = lowering.once(("quantized", op.data, how), lambda: _quantized(program, rows, data, *how))
        kernel = Kernel(program)
        operands = quantized[0], result, *quantized[1:]
        IntegerProducts(kernel, BlockProducts(weights, rows, operands, *further), blocks.size).emit()
    program.call(kernel, op.operation.name, prod((*rows, op.depth, weights.channels)))


@lowers(BlockDynamicDenseOp)
def _dynamic_dense(lowering: GraphLowering, op: BlockDynamicDenseOp) -> None:
    shape, program, output = shape_of(op.data.type), lowering.program, lowering.product(op)
    (weight, _, points), epilogue = _parts(op), lowering.epilogue(op)
    weights, rows = _packed(program, op), shape[:-1]
    result = MapOperand(output, dim_strides(shape_of(op.output.type), output.storage)[:-1], output.storage.origin)
    further = _finish(epilogue)
    parts = op.data, op.scale, op.zero_point
    how = weights.blocks, weights.terms

    def padded() -> tuple[MapOperand, ...]:
        operands: list[MapOperand] = []
        for part in parts:
            slot, extents = lowering.slot(part), shape_of(part.type)
            strides = dim_strides(extents, slot.storage) if prod(extents) > 1 else (0,) * len(shape)
            operands.append(MapOperand(slot, strides, slot.storage.origin))
        return _padded(program, rows, operands, *how)

    quantized = lowering.once(("padded", parts, how), padded)
    kernel = Kernel(program)
    products = BlockProducts(weights, rows, (quantized[0], result, *quantized[1:]), *further)
    IntegerProducts(kernel, products, weights.blocks.size, block_totals(weight, points, weights)).emit()
    program.call(kernel, op.operation.name, prod((*rows, op.depth, weights.channels)))


@lowers(BlockGatherOp)
def _gather(lowering: GraphLowering, op: BlockGatherOp) -> None:
    indices, output = lowering.slot(op.indices), lowering.result(op.output)
    shape, kernel = shape_of(op.indices.type), Kernel(lowering.program)
    weights = _packed(lowering.program, op)
    steps = dim_strides(shape, indices.storage), dim_strides(shape_of(op.output.type), output.storage)
    axes = collapse([Axis(size, (steps[0][i], steps[1][i])) for i, size in enumerate(shape)])
    table, target = kernel.slot("indices", indices), kernel.slot("output", output)
    rows = BlockRows(kernel, weights)
    with index_loops(kernel, axes) as (read_at, write_at):
        at = kernel.sum(read_at, kernel.constant(indices.storage.origin, "index"))
        start = kernel.sum(write_at, kernel.constant(output.storage.origin, "index"))
        rows.emit(kernel.row(table, at, weights.channels), target, start)
    lowering.program.call(kernel, op.operation.name)


def _finish(epilogue: ResultEpilogue | None) -> tuple[list[NDArray[np.float32]], Finish]:
    """What the kernel of a product does to its values, and the numbers by channel that it reads."""
    return (epilogue.arrays(), epilogue.emit) if epilogue else ([], as_folded)


def _parts(
    op: BlockDenseOp | BlockDynamicDenseOp | BlockGatherOp,
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    """The packed weights of `op`, their scales and their zero points, by block or one for all."""
    weight, scales = (required_constant(name, value) for name, value in (("weight", op.weight), ("scales", op.scales)))
    points = np.full((1, 1), 1 << (op.bits - 1), np.float32)
    if op.zero_points is not None:
        given = required_constant("zero_points", op.zero_points)
        is_packed = given.dtype == np.uint8
        points = unpack(given, op.bits, scales.shape[1]).astype(np.float32) if is_packed else given
    return weight, scales, points


def _packed(program: Program, op: BlockDenseOp | BlockDynamicDenseOp | BlockGatherOp) -> PackedBlocks:
    """The weights of `op` as kernels read them."""
    blocks = Blocks(op.depth, min(op.block, op.depth))
    return pack_blocks(*_parts(op), op.bits, blocks, program.strategy)


def _spaced(program: Program, rows: tuple[int, ...], data: MapOperand, depth: int) -> MapOperand:
    """The rows of `data`, perhaps copied: a tile has too many for a set of the first-level cache, if all meet there."""
    found = replace(data, strides=data.strides[:-1])
    if prod(rows) <= _FEW_ROWS or any(BYTES * step % _SETS for step in found.strides):
        return found
    pitch, kernel = depth + _LINE // BYTES, Kernel(program)
    slot = program.buffer(Storage((1, 1, 1, prod(rows) * pitch), "f32", prod(rows) * pitch))
    target = MapOperand(slot, (*(step * pitch for step in row_major(rows)), 1))
    emit_map(kernel, (*rows, depth), [data], target, lambda _, values: values[0], _LANES)
    program.call(kernel, "rows")
    return replace(target, strides=target.strides[:-1])


# Rows that are quantized in blocks.


def _quantized(
    program: Program,
    rows: tuple[int, ...],
    data: MapOperand,
    blocks: Blocks,
    terms: int,
    precision: ActivationScale,
) -> tuple[MapOperand, ...]:
    """Append the kernel call that quantizes `data`: bytes, scales, and the sums of the bytes of a block."""
    kernel, values = Kernel(program), _bytes(program, rows, blocks, terms)
    largest, factors, scales = (_by_block(program, rows, blocks, "f32") for _ in range(3))
    sums = _by_block(program, rows, blocks, "i32")
    for part in blocks.parts():
        _reduce(kernel, rows, blocks, part, data, largest, _LARGEST_OF_ALL)
    every = (*rows, blocks.count)
    emit_map(kernel, every, [largest], factors, lambda body, found: _factor(body, found[0]), _LANES)
    is_half = precision is ActivationScale.F16
    emit_map(kernel, every, [largest], scales, lambda body, found: _scale(body, found[0], is_half=is_half), _LANES)
    for first, number, length in blocks.parts():
        source, target = (_block_rows(one, first, blocks.size) for one in (data, values))
        own = replace(factors, strides=(*factors.strides, 0), offset=first)
        emit_map(kernel, (*rows, number, length), [source, own], target, _byte, _LANES)
        _reduce(kernel, rows, blocks, (first, number, length), values, sums, _SUM)
    program.call(kernel, "quantize")
    return tuple(replace(one, strides=one.strides[:-1]) for one in (values, scales, sums))


def _padded(
    program: Program, rows: tuple[int, ...], operands: Sequence[MapOperand], blocks: Blocks, terms: int
) -> tuple[MapOperand, ...]:
    """The same of bytes, and of the scale and the zero point of each row, which are repeated for each block."""
    kernel, values, (data, scale, point) = Kernel(program), _bytes(program, rows, blocks, terms), operands
    scales, sums, points = (_by_block(program, rows, blocks, element) for element in ("f32", "i32", "i32"))
    emit_map(kernel, (*rows, blocks.depth), [data], values, _signed(data), _LANES)
    every, (scale, point) = (
        (*rows, blocks.count),
        (replace(one, strides=(*one.strides[:-1], 0)) for one in operands[1:]),
    )
    emit_map(kernel, every, [scale], scales, lambda _, found: found[0], _LANES)
    signed = _signed(point)
    emit_map(kernel, every, [point], points, lambda body, found: _wide(body, signed(body, found)), _LANES)
    for part in blocks.parts():
        _reduce(kernel, rows, blocks, part, values, sums, _SUM)
    program.call(kernel, "rows")
    return tuple(replace(one, strides=one.strides[:-1]) for one in (values, scales, sums, points))


def _signed(operand: MapOperand) -> Emit:
    """Signed bytes of an operand, which are stored unsigned but in users' arrays."""
    is_signed = isinstance(operand.source, BufferSlot) and operand.source.signed
    return lambda body, found: found[0] if is_signed else flipped(body, found[0])


def _wide(body: Body, value: Value) -> Value:
    return body.cast("arith.extsi", value, "i32")


def _bytes(program: Program, rows: tuple[int, ...], blocks: Blocks, terms: int) -> MapOperand:
    """A buffer of rows of bytes."""
    pitch = -(-blocks.depth // terms) * terms
    pitch += 0 if pitch % _SETS else _LINE
    # Terms beyond the last meet weights of 0.
    slot = program.buffer(Storage((1, 1, 1, prod(rows) * pitch), "i8", prod(rows) * pitch))
    return MapOperand(slot, (*(step * pitch for step in row_major(rows)), 1))


def _by_block(program: Program, rows: tuple[int, ...], blocks: Blocks, element: str) -> MapOperand:
    length = prod(rows) * blocks.count
    slot = program.buffer(Storage((1, 1, 1, length), element, length))
    return MapOperand(slot, row_major((*rows, blocks.count)))


def _block_rows(operand: MapOperand, first: int, size: int) -> MapOperand:
    """Rows as [..., block, term], from block `first` on."""
    *rows, term = operand.strides
    return replace(operand, strides=(*rows, size, term), offset=operand.offset + first * size)


def _reduce(
    kernel: Kernel,
    rows: tuple[int, ...],
    blocks: Blocks,
    part: tuple[int, int, int],
    source: MapOperand,
    target: MapOperand,
    fold: Fold,
) -> None:
    first, count, length = part
    of_blocks = _block_rows(source, first, blocks.size)
    found = Reduced(replace(of_blocks, strides=of_blocks.strides[:-1]), (1,))
    output = replace(target, offset=first)
    emit_reduction(
        kernel, Reduction((*rows, count), (length,), [found], [], output, fold, as_folded, _LANES, _TILE_ROWS)
    )


def _larger(body: Body, largest: Value, values: Sequence[Value]) -> Value:
    return body.binary("arith.maximumf", largest, body.unary("math.absf", values[0]))


_LARGEST_OF_ALL = Fold("f32", 0.0, _larger, lambda body, a, b: body.binary("arith.maximumf", a, b))
_SUM = folded("i32", 0, "arith.addi", "arith.extsi")


def _factor(body: Body, largest: Value) -> Value:
    is_large = body.compare("oge", largest, body.constant(float(SMALLEST_MAXIMUM), "f32"))
    factor = body.divide(body.constant(_LARGEST, "f32"), largest)
    return body.select(is_large, factor, body.constant(0.0, "f32"))


def _scale(body: Body, largest: Value, *, is_half: bool) -> Value:
    scale = body.add(body.divide(largest, body.constant(_LARGEST, "f32")), body.subtract(largest, largest))
    return _as_half(body, scale) if is_half else scale


def _as_half(body: Body, value: Value) -> Value:
    """A number that is not negative, or NaN, rounded to float16."""
    # Below 2^-14 multiples of 2^-24; the sum with 1/2 has no bits below.
    half = body.constant(0.5, "f32")
    small = body.subtract(body.add(value, half), half)
    bits = body.cast("arith.bitcast", value, "i32")
    odd = body.binary("arith.andi", body.binary("arith.shrui", bits, body.constant(13, "i32")), body.constant(1, "i32"))
    rounded = body.add(body.add(bits, body.constant(0xFFF, "i32")), odd)
    wide = body.cast("arith.bitcast", body.binary("arith.andi", rounded, body.constant(-0x2000, "i32")), "f32")
    is_finite = body.compare("olt", wide, body.constant(65536.0, "f32"))
    wide = body.select(is_finite, wide, body.constant(float("inf"), "f32"))
    found = body.select(body.compare("olt", value, body.constant(2.0**-14, "f32")), small, wide)
    return body.select(body.compare("ord", value, value), found, value)


def _byte(body: Body, values: Sequence[Value]) -> Value:
    number, factor = values
    scaled = body.unary("math.roundeven", body.multiply(number, factor))
    is_finite = body.compare("olt", body.unary("math.absf", scaled), body.constant(float("inf"), "f32"))
    finite = body.select(is_finite, scaled, body.constant(0.0, "f32"))
    return body.cast("arith.trunci", body.cast("arith.fptosi", finite, "i32"), "i8")
