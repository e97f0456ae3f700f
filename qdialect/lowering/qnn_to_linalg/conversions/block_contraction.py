"""Products with weights in blocks, rows that are quantized for them, and rows of such weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.block_weights import SMALLEST_MAXIMUM, unpack
from qdialect.arithmetic.choices import ActivationScale, BlockActivations, SumOrder
from qdialect.dialect import BlockDenseOp, BlockDynamicDenseOp, BlockGatherOp, DynamicGatherOp, F32Conv2DOp, F32MatmulOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import required_constant
from qdialect.lowering.ir.views import Axis, View, collapse, row_major
from qdialect.lowering.qnn_to_linalg.contractions import block_weights, widened_products
from qdialect.lowering.qnn_to_linalg.contractions.block_products import BlockProducts, F32Products, StoredPanels
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import Blocks, Numbers, PackedBlocks
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Matrices
from qdialect.lowering.qnn_to_linalg.contractions.integer_products import IntegerProducts
from qdialect.lowering.qnn_to_linalg.contractions.stored_weights import emit_packing, pair_word
from qdialect.lowering.qnn_to_linalg.graph.fusion_groups import ResultEpilogue
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels import reduction
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import Emit, MapOperand, as_stored, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.gathering import index_loops
from qdialect.lowering.qnn_to_linalg.kernels.reduction import Finish, Fold, Reduced, Reduction
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value, flipped

_LANES, _TILE_ROWS = 16, 4
_FEW_ROWS, _SETS, _LINE = 8, 1024, 64
"""Rows that are that many bytes apart may meet in few sets of a cache; a line more, and they do not."""
_LARGEST = 127.0
F32Product = BlockDenseOp | F32MatmulOp | F32Conv2DOp
"""A convolution has rows of a window side by side."""


@lowers(BlockDenseOp)
def _dense(lowering: GraphLowering, op: BlockDenseOp) -> None:
    program, weights = lowering.program, _packed(lowering.program, op)
    if op.activations is BlockActivations.F32:
        emit_f32_products(lowering, op, weights, op.order)
        return
    rows, data, result = _operands(lowering, op)
    blocks = Blocks(op.depth, min(op.data_block, op.depth))
    how = blocks, weights.terms, op.activation_scale
    quantized = lowering.once(("quantized", op.data, how), lambda: _quantized(program, rows, data, *how))
    kernel = Kernel(program)
    operands, finish = (quantized[0], result, *quantized[1:]), _finish(lowering.epilogue(op))
    products = BlockProducts(weights, rows, operands, *finish, active=_active(lowering, op, data))
    IntegerProducts(kernel, products, blocks.size).emit()
    program.call(kernel, op.operation.name, prod((*rows, op.depth, weights.channels)))


def emit_f32_products(lowering: GraphLowering, op: F32Product, weights: PackedBlocks, order: SumOrder) -> None:
    """Append the kernel calls of products of f32 rows with packed weights."""
    if weights.form == "bf16" and widened_products.multiplies_pairs(lowering.program.strategy, op):
        _emit_pairs(lowering, op, weights)
        return
    program, depth, (rows, data, result) = lowering.program, weights.blocks.depth, _operands(lowering, op)
    finish = _finish(lowering.epilogue(op))
    source = lowering.once(("spaced", op.data), lambda: _spaced(program, rows, data, depth))
    active = _active(lowering, op, data) if isinstance(op, BlockDenseOp) else None
    products = BlockProducts(weights, rows, (source, result), *finish, op.rounded_products, active)
    kernel, has_fma = Kernel(program), program.strategy.forms.multiply_adds
    is_widened = order is SumOrder.TERMS and prod(rows) >= widened_products.MANY_ROWS and has_fma
    (widened_products.WidenedProducts(kernel, products) if is_widened else F32Products(kernel, products, order)).emit()
    program.call(kernel, op.operation.name, prod((*rows, depth, weights.channels)))


def emit_picked_products(lowering: GraphLowering, op: F32MatmulOp, picked: DynamicGatherOp) -> None:
    """Append the kernel call of products of one row each with the matrix of its index."""
    program, matrices, indices = lowering.program, required_constant("data", picked.data), lowering.slot(picked.indices)
    form, (rows, data, result) = block_weights.small_form(matrices) or "f32", _operands(lowering, op)
    packed = [block_weights.pack_floats(one.T, form, program.strategy) for one in matrices]
    weights = replace(packed[0], words=np.concatenate([one.words for one in packed]))
    picks = MapOperand(indices, (1, *(0 for _ in rows[1:])), indices.storage.origin)
    source, finish, kernel = replace(data, strides=data.strides[:-1]), _finish(lowering.epilogue(op)), Kernel(program)
    how: dict[str, Any] = {"is_rounded": op.rounded_products, "picks": picks, "matrices": len(packed)}
    F32Products(kernel, BlockProducts(weights, rows, (source, result), *finish, **how), SumOrder.TERMS).emit()
    program.call(kernel, op.operation.name, prod((*rows, weights.blocks.depth, weights.channels)))


def _operands(lowering: GraphLowering, op: F32Product) -> tuple[tuple[int, ...], MapOperand, MapOperand]:
    """The extents of the rows of the data, these, and the result."""
    shape, slot, output = shape_of(op.data.type), lowering.slot(op.data), lowering.product(op)
    steps = dim_strides(shape_of(op.output.type), output.storage)[:-1]
    strides = dim_strides(shape, slot.storage)
    if isinstance(op, F32Conv2DOp):
        image, row, column, channel = strides
        strides = image, row * op.strides[0], column * op.strides[1], channel
    data = MapOperand(slot, strides, slot.storage.origin)
    return shape_of(op.output.type)[:-1], data, MapOperand(output, steps, output.storage.origin)


@lowers(BlockDynamicDenseOp)
def _dynamic_dense(lowering: GraphLowering, op: BlockDynamicDenseOp) -> None:
    shape, program, output = shape_of(op.data.type), lowering.program, lowering.product(op)
    (weight, scales, points), epilogue = _parts(op), lowering.epilogue(op)
    rows, is_unsigned = shape[:-1], _is_unsigned(program, op)
    weights, totals = _packed(program, op), None
    if is_unsigned:
        weights = block_weights.pack_signed(weight, scales, op.bits, weights.blocks, program.strategy)
    else:
        totals = block_weights.block_totals(weight, points, weights)
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
        return _padded(program, rows, operands[: 1 if is_unsigned else None], *how)

    quantized = lowering.once(("padded", parts, how, is_unsigned), padded)
    kernel = Kernel(program)
    products = BlockProducts(weights, rows, (quantized[0], result, *quantized[1:]), *further)
    IntegerProducts(kernel, products, weights.blocks.size, totals).emit()
    program.call(kernel, op.operation.name, prod((*rows, op.depth, weights.channels)))


def _is_unsigned(program: Program, op: BlockDynamicDenseOp) -> bool:
    """Whether ``a + 128`` are multiplied, so that no sums of weights are stored, which take as much as scales do.

    Where words are multiplied, or pairs of products summed in 16 bits, unsigned data take more instructions.
    """
    if op.zero_points is not None or program.strategy.multiplies_words:
        return False
    scale, point, scales = (constant_value(value) for value in (op.scale, op.zero_point, op.scales))
    if scale is None or point is None or scales is None or (scale != 1).any() or (point != -128).any():
        return False
    # Small ones would become subnormal.
    shift = 8 - op.bits
    return bool((np.ldexp(np.ldexp(scales, -shift), shift) == scales).all())


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


def _active(lowering: GraphLowering, op: BlockDenseOp, data: MapOperand) -> MapOperand | None:
    """An i32 for each row, 0 where that has zeros alone; None where no `arith.select` may have made it so.

    Of an expert that no token chose the weights are not read: data that are chosen are zeros elsewhere.
    """
    owner = op.data.owner
    chosen = None if isinstance(owner, ir.Block) or owner.name != "arith.select" else list(owner.operands)[1:]
    known = [constant_value(value) for value in chosen or ()]
    if not any(array is not None and not array.any() for array in known):
        return None
    _, scales, points = _parts(op)
    with np.errstate(all="ignore"):
        # Zeros times what is not finite are no zeros.
        largest = (np.abs(points) + np.float32(2**op.bits)) * np.abs(scales)
    if not np.isfinite(largest).all():
        return None
    program, rows, depth = lowering.program, shape_of(op.data.type)[:-1], op.depth

    def emit() -> MapOperand:
        kernel, flags = Kernel(program), _by_block(program, rows, Blocks(depth, depth), "i32")
        target = replace(flags, strides=flags.strides[:-1])
        source = Reduced(replace(data, strides=data.strides[:-1]), data.strides[-1:])
        reduction.emit_reduction(
            kernel, Reduction(rows, (depth,), [source], [], target, _ANY_BIT, reduction.as_folded, _LANES, _TILE_ROWS)
        )
        program.call(kernel, "zeros")
        return target

    return lowering.once(("active", op.data), emit)


def _finish(epilogue: ResultEpilogue | None) -> tuple[list[NDArray[np.float32]], Finish]:
    """The numbers by channel that the kernel of a product reads, and its last step for each value."""
    return (epilogue.arrays(), epilogue.emit) if epilogue else ([], reduction.as_folded)


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
    return block_weights.pack_blocks(*_parts(op), op.bits, blocks, program.strategy)


def _spaced(program: Program, rows: tuple[int, ...], data: MapOperand, depth: int) -> MapOperand:
    """The rows of `data`, perhaps copied: a tile has too many for a set of the first-level cache, if all meet there."""
    found = replace(data, strides=data.strides[:-1])
    if prod(rows) <= _FEW_ROWS or any(block_weights.BYTES * step % _SETS for step in found.strides):
        return found
    pitch, kernel = depth + _LINE // block_weights.BYTES, Kernel(program)
    slot = program.buffer(Storage((1, 1, 1, prod(rows) * pitch), "f32", prod(rows) * pitch))
    target = MapOperand(slot, (*(step * pitch for step in row_major(rows)), 1))
    emit_map(kernel, (*rows, depth), [data], target, lambda _, values: values[0], _LANES)
    program.call(kernel, "rows")
    return replace(target, strides=target.strides[:-1])


# Rows that are quantized in blocks.


def _quantized(
    program: Program, rows: tuple[int, ...], data: MapOperand, blocks: Blocks, terms: int, precision: ActivationScale
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
    """The same of bytes, and of the scale and the zero point of each row, which are repeated for each block.

    Without these, of bytes plus 128 alone.
    """
    kernel, values, (data, *others) = Kernel(program), _bytes(program, rows, blocks, terms), operands
    if not others:
        emit_map(kernel, (*rows, blocks.depth), [data], values, as_stored(data, values), _LANES)
        program.call(kernel, "rows")
        return (replace(values, strides=values.strides[:-1]),)
    scales, sums, points = (_by_block(program, rows, blocks, element) for element in ("f32", "i32", "i32"))
    emit_map(kernel, (*rows, blocks.depth), [data], values, _signed(data), _LANES)
    every, (scale, point) = ((*rows, blocks.count), (replace(one, strides=(*one.strides[:-1], 0)) for one in others))
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
    reduction.emit_reduction(
        kernel, Reduction((*rows, count), (length,), [found], [], output, fold, reduction.as_folded, _LANES, _TILE_ROWS)
    )


def _larger(body: Body, largest: Value, values: Sequence[Value]) -> Value:
    return body.binary("arith.maximumf", largest, body.unary("math.absf", values[0]))


_LARGEST_OF_ALL = Fold("f32", 0.0, _larger, lambda body, a, b: body.binary("arith.maximumf", a, b))


def _any_bit(body: Body, bits: Value, values: Sequence[Value]) -> Value:
    """The bits of numbers without their signs: those of a zero are all 0."""
    own = body.binary("arith.andi", body.cast("arith.bitcast", values[0], "i32"), body.constant(2**31 - 1, "i32"))
    return body.binary("arith.ori", bits, own)


_ANY_BIT = Fold("i32", 0, _any_bit, lambda body, a, b: body.binary("arith.ori", a, b))
_SUM = reduction.folded("i32", 0, "arith.addi", "arith.extsi")


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


# Rows of a table of weights in blocks: their f32 values, out of the panels that products read.

_TERMS = Loops(("t",))


class BlockRows:
    """Writes the code that widens a row; the words of a column lie as far apart as its panel is wide."""

    def __init__(self, kernel: Kernel, weights: PackedBlocks) -> None:
        self._kernel, self._weights = kernel, weights
        packed = kernel.data("weights", weights.words.view(np.uint8), is_weight=True)
        self._words = kernel.as_numbers(packed, "i32", weights.words.size)
        self._scales = kernel.data("scales", weights.scales.values, is_weight=True)
        points = weights.points
        self._points = kernel.data("points", points.values, is_weight=True) if isinstance(points, Numbers) else None
        self._places = kernel.data(
            "places", np.array([weights.places(term) for term in range(weights.terms)], np.int32)
        )

    def emit(self, row: Value, output: Buffer, start: Value) -> None:
        """Write the values of `row` to `output` from `start` on."""
        kernel, weights, terms = self._kernel, self._weights, self._weights.terms
        first, lane, width = self._place(row)
        words = kernel.sum(kernel.multiple(first, weights.depth_words), lane)
        numbers = kernel.sum(kernel.multiple(first, weights.blocks.count), lane)
        for block, count, length in weights.blocks.parts():
            with kernel.loop(count) as index:
                at = kernel.sum(index, kernel.constant(block, "index"))
                place = kernel.sum(numbers, kernel.binary("arith.muli", at, width))
                word = kernel.multiple(at, weights.blocks.size // terms)
                target = kernel.sum(start, kernel.multiple(at, weights.blocks.size))
                for done, repeats, part in ((0, length // terms, terms), (length // terms, 1, length % terms)):
                    if not repeats or not part:
                        continue
                    with kernel.loop(repeats) as step:
                        step = kernel.sum(step, kernel.constant(done, "index"))
                        source = kernel.sum(words, kernel.binary("arith.muli", kernel.sum(word, step), width))
                        self._widen(source, place, (output, kernel.sum(target, kernel.multiple(step, terms))), part)

    def _place(self, row: Value) -> tuple[Value, Value, Value]:
        """The first column of the panel of a row of the table, which is a column there; its lane, and the width."""
        kernel, places = self._kernel, list[tuple[Value, Value, Value]]()
        for block in self._weights.panels:
            width, start = (kernel.constant(value, "index") for value in (block.vectors * block.lanes, block.start))
            lane = kernel.binary("arith.remui", kernel.binary("arith.subi", row, start), width)
            places.append((kernel.binary("arith.subi", row, lane), lane, width))
        (first, lane, width), *others = places
        for block, own in zip(self._weights.panels[1:], others, strict=True):
            is_here = kernel.compare("uge", row, kernel.constant(block.start, "index"))
            first, lane, width = (kernel.select(is_here, *pair) for pair in zip(own, (first, lane, width), strict=True))
        return first, lane, width

    def _widen(self, word: Value, number: Value, target: tuple[Buffer, Value], count: int) -> None:
        kernel, one = self._kernel, View((), ())
        stored = [self._words, self._scales, *([self._points] if self._points else [])]
        starts = word, number, number
        inputs = [Operand(kernel.read(buffer, one, at), ()) for buffer, at in zip(stored, starts, strict=False)]
        inputs.append(Operand(kernel.read(self._places, View((count,), (1,))), _TERMS.parallel))
        destination, where = kernel.write(target[0], View((count,), (1,)), target[1])
        body = kernel.body(inputs)
        value = self._value(body, body.inputs)
        kernel.store(kernel.generic(_TERMS, inputs, Operand(destination, _TERMS.parallel), body, value), where)

    def _value(self, body: Body, values: Sequence[Value]) -> Value:
        """``round((q - z) * s)``."""
        weights, strategy = self._weights, self._kernel.program.strategy
        word, scale, *points, places = values
        mask = body.constant((1 << weights.bits) - 1, "i32")
        stored = body.binary("arith.andi", body.binary("arith.shrui", word, places), mask)
        if isinstance(weights.points, Numbers):
            point = weights.points.widened(body, points[0], strategy)
        else:
            point = body.constant(weights.points, "f32")
        value = body.subtract(body.cast("arith.sitofp", stored, "f32"), point)
        return body.multiply(value, weights.scales.widened(body, scale, strategy))


# Products of rows of bf16 numbers with such weights, two terms at a time.


def _pairs(
    program: Program, rows: tuple[int, ...], data: MapOperand, depth: int, joined: int = 0
) -> tuple[MapOperand, MapOperand]:
    """Append the kernel call that packs rows of bf16 numbers: words of two, and the bits of the least of each row.

    The least but zero, less 1: so zeros are the largest of unsigned numbers. Rows of the last `joined` dimensions lie
    side by side, and have one least number.
    """
    words, kernel, kept = depth // widened_products.PAIR, Kernel(program), rows[: len(rows) - joined]
    pitch = words + (0 if joined or block_weights.BYTES * words % _SETS else _LINE // block_weights.BYTES)
    slot = program.buffer(Storage((1, 1, 1, prod(rows) * pitch), "i32", prod(rows) * pitch))
    target = MapOperand(slot, (*(step * pitch for step in row_major(rows)), 1))
    *outer, step = data.strides
    halves = [replace(data, strides=(*outer, 2 * step), offset=data.offset + half * step) for half in range(2)]
    emit_map(kernel, (*rows, words), halves, target, pair_word, _LANES, step=widened_products.PAIR)
    least = _by_block(program, kept, Blocks(depth, depth), "i32")
    least = replace(least, strides=least.strides[:-1])
    source = Reduced(replace(target, strides=target.strides[: len(kept)]), target.strides[len(kept) :])
    extents = kept, (*rows[len(kept) :], words)
    reduction.emit_reduction(
        kernel, Reduction(*extents, [source], [], least, _LEAST_BITS, reduction.as_folded, _LEAST_LANES, 1)
    )
    program.call(kernel, "pairs")
    return replace(target, strides=target.strides[:-1]), least


def has_dense_windows(lowering: GraphLowering, op: F32Conv2DOp) -> bool:
    """Whether the terms of each row of a window lie side by side, and there are enough pixels in a row."""
    (_, height, width, depth), pixels = shape_of(op.weight.type), shape_of(op.output.type)[2]
    if (height, width) == (1, 1):
        return op.groups == 1
    column = lowering.slot(op.data).storage.strides[2]
    is_dense = column == depth and (width == 1 or op.dilation[1] == 1)
    return op.groups == 1 and is_dense and pixels >= widened_products.PAIRED_ROWS


def emit_stored_pairs(lowering: GraphLowering, op: F32MatmulOp, matrices: Matrices) -> None:
    """Append the kernel calls of products of bf16 numbers with `matrices` of them, which are packed, too."""
    program, depth, panels = (
        lowering.program,
        matrices.depth,
        block_weights.panels_of(matrices.channels, lowering.program.strategy),
    )
    words = emit_packing(program, replace(matrices, k_group=widened_products.PAIR), panels)
    count, lanes, pairs = matrices.count, sum(block.channels for block in panels), depth // widened_products.PAIR
    bounds = program.buffer(Storage((1, 1, 1, count * lanes), "i32", count * lanes))
    kernel = Kernel(program)
    for block in panels:
        width, own = block.vectors * block.lanes, (2 - block.vectors % 2) * block.lanes
        start, extents = count * block.start, (count, block.tiles, width // own)
        source = MapOperand(words, (block.channels * pairs, width * pairs, own), start * pairs)
        target = MapOperand(bounds, (block.channels, width, own), start)
        fold, reduced = replace(_LEAST_BITS, lanes=own), [Reduced(source, (width, 1))]
        how = fold, widened_products.stored_bound, _LANES, 1
        reduction.emit_reduction(kernel, Reduction(extents, (pairs, own), reduced, [], target, *how))
    program.call(kernel, "bounds")
    leading = row_major(shape_of(op.matrix.type)[:-2]) or (0,) * (len(shape_of(op.output.type)) - 2)
    none = np.empty(0, np.int32)
    one = Numbers("f32", np.ones(lanes, np.float32))
    weights = PackedBlocks(16, Blocks(depth, depth), matrices.channels, panels, none, one, 0.0, 0, "bf16")
    _emit_pairs(lowering, op, weights, StoredPanels(words, bounds, count, (*leading, 0)))


def _emit_pairs(
    lowering: GraphLowering, op: F32Product, weights: PackedBlocks, stored: StoredPanels | None = None
) -> None:
    program, shape, (rows, data, result) = lowering.program, shape_of(op.data.type), _operands(lowering, op)
    height, steps, finish = 1, (), _finish(lowering.epilogue(op))
    if isinstance(op, F32Conv2DOp) and weights.blocks.depth > shape[-1]:
        down, across, height = *op.strides, weights.blocks.depth // shape[-1] // shape_of(op.weight.type)[2]
        line, column = data.strides[1] // down, data.strides[2] // across
        image = replace(data, strides=(data.strides[0], line, column, 1))
        pairs, least = lowering.once(("pixels", op.data), lambda: _pairs(program, shape[:-1], image, shape[-1], 1))
        further = op.dilation[0]
        steps = line * further, 0, pairs.strides[1] * further, further
        pairs = replace(pairs, strides=(pairs.strides[0], pairs.strides[1] * down, pairs.strides[2] * across))
        least = replace(least, strides=(least.strides[0], down, 0))
    else:
        pairs, least = lowering.once(("pairs", op.data, data.strides), lambda: _pairs(program, rows, data, shape[-1]))
    kernel, source = Kernel(program), replace(data, strides=data.strides[:-1])
    products = BlockProducts(
        weights, rows, (source, result, pairs, least), *finish, stored=stored, segments=height, segment_steps=steps
    )
    widened_products.PairedProducts(kernel, products).emit()
    program.call(kernel, op.operation.name, prod((*rows, weights.blocks.depth, weights.channels)))


def _smaller(body: Body, least: Value, values: Sequence[Value]) -> Value:
    """The least of both numbers of a word, too."""
    (word,) = values
    sizes = (
        body.binary("arith.andi", bits, body.constant(_SIZE, "i32"))
        for bits in (word, body.binary("arith.shli", word, body.constant(block_weights.HALF, "i32")))
    )
    first, second = (body.subtract(size, body.constant(1, "i32")) for size in sizes)
    return body.binary("arith.minui", least, body.binary("arith.minui", first, second))


_LEAST_LANES, _SIZE = 256, 0x7FFF << block_weights.HALF
_LEAST_BITS = Fold("i32", -1, _smaller, lambda body, a, b: body.binary("arith.minui", a, b))
