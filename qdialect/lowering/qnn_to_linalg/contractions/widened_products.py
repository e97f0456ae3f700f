"""Products of many f32 rows with weights in blocks: terms of a panel are widened to memory, then all rows meet them.

Pairs of bf16 numbers of rows meet those of weights as they are packed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.choices import SumOrder
from qdialect.dialect import BlockDenseOp, F32Conv2DOp, F32MatmulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import Strategy, groups_of, rows_for, split
from qdialect.lowering.ir.views import Axis, View
from qdialect.lowering.qnn_to_linalg.contractions.block_products import (
    COLUMNS,
    BlockProducts,
    F32Products,
    Panel,
    columns_of,
)
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import BYTES, HALF, UPPER_HALF, Blocks, PackedBlocks
from qdialect.lowering.qnn_to_linalg.kernels.reduction import as_folded
from qdialect.lowering.qnn_to_linalg.program.kernel_text import NORMAL_SUMS, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.passes.pattern import is_exact

MANY_ROWS = 32
"""From so many on, widening to memory pays."""
_STEP, _BLOCK_ROWS, _VECTORS = 512, 128, 2
PAIRED_ROWS, PAIRED_CHANNELS, PAIR = 5, 64, 2
"""From so many rows and channels on packing pairs pays; and numbers of a pair."""
STORED_ROWS = 16
"""From so many on packing both operands pays."""
_VECTOR_ROWS, _NARROW_VECTOR_ROWS, _WIDE = 12, 6, 16
"""Vectors of less than 512 bits have half as many registers."""


@dataclass(frozen=True)
class Factors:
    """The factors of a step: `count` elements of an operand, from `first` times `size` on, and columns."""

    panel: Panel
    operand: int
    first: Value
    size: int
    count: int
    weights: Callable[[Value], Operand]
    """Those of all columns, by the step's elements."""
    emit: Callable[[Body], Value]
    are_all: bool = False
    """Whether no other step adds to the sums, which then stay in registers."""


class WidenedProducts(F32Products):
    """Such products, one step of terms after the other."""

    least_rows, many_rows = _BLOCK_ROWS, MANY_ROWS

    def __init__(self, kernel: Kernel, op: BlockProducts) -> None:
        super().__init__(kernel, op, SumOrder.TERMS)
        depth = self.weights.blocks.depth // op.segments
        size = min(self.weights.blocks.size, depth)
        own = size if self.weights.blocks.count > 1 else min(size, _STEP)
        self._blocks, self._in_step = Blocks(depth, own), max(1, _STEP // own)
        self._width = _VECTORS * self.strategy.lanes
        terms, rows = own * self._in_step + own, self.near_rows(prod(op.rows))
        self._widened, self._sums = (
            kernel.scratch(name, Storage((1, 1, 1, length), "f32", length))
            for name, length in (("widened", terms * self._width), ("sums", rows * self._width))
        )

    def over(self, axes: Sequence[Axis], starts: Sequence[Value], panel: Panel) -> None:
        axis, *inner = axes
        if inner or axis.size < self.many_rows:
            super().over(axes, starts, panel)
            return
        self.begin(axis, panel)
        with self._unless_zeros(axis, starts, 0, axis.size), self.segment(starts, panel) as (own, part):
            kernel = self.kernel
            steps, left = divmod(self._blocks.depth, in_step := self._in_step * self._blocks.size)
            with kernel.loop(steps) as step:
                self._step(axis, own, part, kernel.multiple(step, self._in_step), in_step)
            if left:
                self._step(axis, own, part, kernel.constant(steps * self._in_step, "index"), left)
        self.end(axis, starts, panel)

    @contextmanager
    def segment(self, starts: Sequence[Value], panel: Panel) -> Generator[tuple[Sequence[Value], Panel]]:
        """A loop around the code inside the `with`, over the segments of terms: where operands and words begin."""
        op, words = self.op, self.weights.depth_words // self.op.segments
        if op.segments == 1:
            yield starts, panel
            return
        with self.kernel.loop(op.segments) as index:
            pairs = zip(starts, op.segment_steps, strict=True)
            moved = [self.further(start, index, step) for start, step in pairs]
            yield moved, replace(panel, words=self.further(panel.words, index, words * panel.width))

    def begin(self, axis: Axis, panel: Panel) -> None:
        """Set the sums of all rows to 0."""
        kernel = self.kernel
        with kernel.loop(axis.size) as row:
            target, where = kernel.write(self._sums, columns_of(panel), kernel.multiple(row, self._width))
            kernel.store(kernel.fill(target, 0), where)

    def end(self, axis: Axis, starts: Sequence[Value], panel: Panel) -> None:
        """Write the results of all rows."""
        kernel = self.kernel
        with kernel.loop(axis.size) as row:
            self._finish(panel, kernel.multiple(row, self._width), self.further(starts[1], row, axis.strides[1]))

    def _unless_zeros(
        self, axis: Axis, starts: Sequence[Value], first: Value | int, rows: int
    ) -> AbstractContextManager[object]:
        """A loop around the code inside the `with`: of one iteration, of none if `rows` from `first` on are zeros."""
        if self.active is None:
            return nullcontext()
        kernel, start = self.kernel, self.further(starts[-1], first, axis.strides[-1])
        with kernel.walk(rows, kernel.constant(0, "i32")) as walk:
            entry = kernel.entry(self.active, self.further(start, walk.index, axis.strides[-1]))
            walk.values = [kernel.binary("arith.ori", walk.values[0], entry)]
        return kernel.loop(self.is_set(walk.values[0]))

    def _step(self, axis: Axis, starts: Sequence[Value], panel: Panel, first: Value, count: int) -> None:
        """All rows meet `count` terms from the `first` block on."""
        kernel, size = self.kernel, self._blocks.size
        for done, blocks, length in groups_of(size, count):
            with kernel.loop(blocks) as block:
                at = self.further(done, block)
                self._widen(panel, kernel.sum(first, at), length, kernel.multiple(at, size * self._width))

        def weights(index: Value) -> Operand:
            return self.columns(panel, self._widened, kernel.multiple(index, self._width))

        self.multiply(axis, starts, Factors(panel, 0, first, size, count, weights, self.add_product))

    def multiply(self, axis: Axis, starts: Sequence[Value], factors: Factors) -> None:
        """Add the products of all rows to their sums, tile by tile."""
        kernel, operand = self.kernel, factors.operand
        start = self.further(starts[operand], factors.first, factors.size)
        most = _VECTOR_ROWS if self.strategy.lanes == _WIDE else _NARROW_VECTOR_ROWS
        for head, extent, rows in split(axis.size, rows_for(axis.size, most)):
            with kernel.loop(extent // rows) as index:
                places = [self.further(head + row, index, rows) for row in range(rows)]
                data = [self.further(start, place, axis.strides[operand]) for place in places]
                outputs = [self.further(starts[1], place, axis.strides[1]) for place in places if factors.are_all]
                with self._unless_zeros(axis, starts, places[0], rows):
                    self._multiply(factors, data, places, outputs)

    def _widen(self, panel: Panel, index: Value, length: int, target: Value) -> None:
        """Write the weights of a block."""
        kernel, terms = self.kernel, self.weights.terms
        numbers = self.numbers(panel, index if self.weights.blocks.count > 1 else kernel.constant(0, "index"))
        words = self.further(panel.words, index, self._blocks.size // terms * panel.width)
        for done, count, part in groups_of(terms, length):
            with kernel.loop(count) as group:
                at = self.further(done, group)
                word = self.word(panel, self.further(words, at, panel.width))
                start = self.further(target, at, terms * self._width)
                for term in range(part):
                    place, places = self.further(start, term * self._width), self.weights.places(term)
                    to = kernel.write(self._widened, columns_of(panel), place)
                    kernel.map(COLUMNS, [word, *numbers], to, lambda body, _, at=places: self.weight(body, at))

    def _multiply(
        self, factors: Factors, data: Sequence[Value], places: Sequence[Value], outputs: Sequence[Value]
    ) -> None:
        """Add the products of a tile of rows to their sums, or write these as `outputs`."""
        kernel, panel = self.kernel, factors.panel
        view, starts = columns_of(panel), [kernel.multiple(place, self._width) for place in places if not outputs]
        targets = [kernel.write(self._sums, view, start) for start in starts]
        targets += [kernel.write(self.buffers[1], view, kernel.sum(start, panel.channel)) for start in outputs]
        begun = [kernel.fill(target, 0) if outputs else target for target, _ in targets]
        with kernel.walk(factors.count, *begun) as walk:
            weights = factors.weights(walk.index)
            walk.values = [
                self.added(
                    panel, total, [self.number(factors.operand, kernel.sum(start, walk.index)), weights], factors.emit
                )
                for total, start in zip(walk.values, data, strict=True)
            ]
        for total, (_, where) in zip(walk.values, targets, strict=True):
            kernel.store(total, where)

    def _finish(self, panel: Panel, sums: Value, output: Value) -> None:
        """Write the results of a row."""
        kernel = self.kernel
        total = Operand(kernel.read(self._sums, View(panel.sizes, (panel.block.lanes, 1)), sums), COLUMNS)
        target = kernel.write(self.buffers[1], columns_of(panel), kernel.sum(output, panel.channel))
        inputs, tag = [total, *self.extras(panel)], Tag(kernel.next_micro_kernel(), "root", (1, 0))
        kernel.map(COLUMNS, inputs, target, lambda body, values: self.op.finish(body, values[0], values[1:]), tag)


_EXPONENT, _BIAS, _SIGNIFICAND, _FRACTION = 7, 127, 14, 23
"""Where the exponent of bf16 begins, and its bias; bits behind that of a product, and of f32."""
_LEAST, _LARGEST_LEAST, _NEVER = -126, -24, 2**31 - 1
"""Exponents: of the smallest normal number, and of the largest bound of rows; and what no number's bits reach."""


def pair_bounds(weights: PackedBlocks) -> NDArray[np.int32]:
    """By column: the bits, less 1, that rows' numbers but zeros must not be below; so no sum of a panel is subnormal.

    Numbers from 2^a on and weights from 2^b on have products, and sums of these that are rounded, that are multiples
    of 2^(a + b - 14).
    """
    # Zeros become the largest of unsigned numbers.
    halves = (weights.words.view(np.uint16) & 0x7FFF) - np.uint16(1)
    found, done = list[NDArray[np.int64]](), 0
    for block in weights.panels:
        end = done + PAIR * block.channels * weights.depth_words
        least = halves[done:end].reshape(block.tiles, -1).min(axis=1).astype(np.int64) + 1 >> _EXPONENT
        exponents = np.maximum(_LEAST, _LEAST + _SIGNIFICAND + _BIAS - least)
        bounds = np.where((least == 0) | (exponents > _LARGEST_LEAST), _NEVER, exponents + _BIAS << _FRACTION)
        found.append(np.repeat(bounds - 1, block.channels // block.tiles))
        done = end
    return np.concatenate(found).astype(np.int32)


def stored_bound(body: Body, least: Value, _: Sequence[Value]) -> Value:
    """As `pair_bounds`, of the bits of the least weight less 1, perhaps twice as large."""
    exponent = body.binary("arith.shrui", least, body.constant(_FRACTION, "i32"))
    smallest = body.constant(_LEAST + _SIGNIFICAND + 2 * _BIAS, "i32")
    bound = body.binary("arith.maxsi", body.subtract(smallest, exponent), body.constant(1, "i32"))
    is_subnormal = body.compare("eq", exponent, body.constant(0, "i32"))
    bound = body.select(is_subnormal, body.constant(2 * _BIAS + 2, "i32"), bound)
    bits = body.binary("arith.shli", bound, body.constant(_FRACTION, "i32"))
    return body.subtract(bits, body.constant(1, "i32"))


def multiplies_pairs(strategy: Strategy, op: BlockDenseOp | F32MatmulOp | F32Conv2DOp) -> bool:
    """Whether rows are of bf16 numbers that the target multiplies two at a time, and packing these pays."""
    if not strategy.multiplies_pairs or op.rounded_products:
        return False
    depth, (*rows, channels) = shape_of(op.data.type)[-1], shape_of(op.output.type)
    pays = depth % PAIR == 0 and prod(rows) >= PAIRED_ROWS and channels >= PAIRED_CHANNELS
    return pays and is_exact(op.data, "bf16")


def multiplies_stored_pairs(strategy: Strategy, op: ir.Operation | ir.OpView) -> bool:
    """Whether `op` is a product of two matrices of bf16 numbers, or several, and packing both pays."""
    product = op.opview if isinstance(op, ir.Operation) else op
    if not isinstance(product, F32MatmulOp):
        return False
    (*rows, _), result = shape_of(product.data.type), shape_of(product.output.type)
    pays = len(rows) > 0 and rows[-1] >= STORED_ROWS and tuple(rows) == result[:-1]
    return pays and multiplies_pairs(strategy, product) and is_exact(product.matrix, "bf16")


class PairedProducts(WidenedProducts):
    """Products of rows whose operands go on with pairs and the bits of the least number.

    Rows that have a number below a panel's bound meet widened weights.
    """

    many_rows = PAIRED_ROWS

    def __init__(self, kernel: Kernel, op: BlockProducts) -> None:
        super().__init__(kernel, op)
        self._bounds = (
            kernel.slot("bounds", op.stored.bounds) if op.stored else kernel.data("bounds", pair_bounds(op.weights))
        )

    @property
    def row_bytes(self) -> int:
        return BYTES // 2 * self.weights.blocks.depth

    def over(self, axes: Sequence[Axis], starts: Sequence[Value], panel: Panel) -> None:
        (axis, *inner), kernel, operand = axes, self.kernel, len(self.buffers) - 1
        if inner or axis.size < self.many_rows:
            super().over(axes, starts, panel)
            return
        # All rows of an image's row have one entry, and as many segments as a window has rows.
        count, step = axis.size, axis.strides[operand]
        if self.op.segments > 1:
            count, step = self.op.segments, self.op.segment_steps[operand]
        with kernel.walk(count, kernel.constant(-1, "i32")) as walk:
            entry = kernel.entry(self.buffers[operand], self.further(starts[operand], walk.index, step))
            walk.values = [kernel.binary("arith.minui", walk.value, entry)]
        is_small = kernel.compare("ult", walk.value, kernel.entry(self._bounds, panel.numbers))
        zero, one = (kernel.constant(number, "index") for number in (0, 1))
        with kernel.loop(kernel.select(is_small, zero, one)):
            self._paired(axis, starts, panel)
        with kernel.loop(kernel.select(is_small, one, zero)):
            super().over(axes, starts, panel)

    def _paired(self, axis: Axis, starts: Sequence[Value], panel: Panel) -> None:
        kernel, size = self.kernel, _STEP // PAIR
        are_all = self.op.finish is as_folded and self.weights.depth_words <= size and self.op.segments == 1
        if not are_all:
            self.begin(axis, panel)
        with self.segment(starts, panel) as (own, part):
            for done, count, length in groups_of(size, self.weights.depth_words // self.op.segments):
                with kernel.loop(count) as index:
                    first = self.further(done, index)
                    words = self.further(part.words, first, size * panel.width)

                    def weights(index: Value, words: Value = words) -> Operand:
                        start = self.further(words, index, panel.width)
                        self.fetch(panel, start)
                        return self.word(panel, start)

                    self.multiply(axis, own, Factors(panel, 2, first, size, length, weights, _add_pair, are_all))
        if not are_all:
            self.end(axis, starts, panel)


def _add_pair(body: Body) -> Value:
    """The sum of the output and two products, the one of the upper halves first."""
    total = body.output
    for op, constant, attribute in (("arith.andi", UPPER_HALF, ""), ("arith.shli", HALF, NORMAL_SUMS)):
        halves = (body.binary(op, word, body.constant(constant, "i32")) for word in body.inputs)
        left, right = (body.cast("arith.bitcast", half, "f32") for half in halves)
        total = body.multiply_add(left, right, total, attribute=attribute)
    return total
