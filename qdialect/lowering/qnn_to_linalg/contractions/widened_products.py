"""Products of many f32 rows with weights in blocks: terms of a panel are widened to memory, then all rows meet them.

What is widened stays in the second-level cache. Sums lie in memory between two steps, so that they are those of one
step, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from qdialect.arithmetic.choices import SumOrder
from qdialect.lowering.cost.strategy import rows_for, split
from qdialect.lowering.ir.strides import Axis, View
from qdialect.lowering.qnn_to_linalg.contractions.block_products import (
    COLUMNS,
    BlockProducts,
    F32Products,
    Panel,
    columns_of,
)
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import Blocks
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Loops, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Value
from qdialect.lowering.qnn_to_linalg.program.storage import Storage

MANY_ROWS = 32
"""From so many on, widening to memory pays."""
_STEP, _BLOCK_ROWS, _VECTORS = 512, 64, 2
_TILE_ROWS, _NARROW_TILE_ROWS, _WIDE = 12, 6, 16
"""Vectors of less than 512 bits have half as many registers."""


class WidenedProducts(F32Products):
    """Such products, one step of terms after the other."""

    least_rows = _BLOCK_ROWS

    def __init__(self, kernel: Kernel, op: BlockProducts) -> None:
        super().__init__(kernel, op, SumOrder.TERMS)
        depth, size = self.weights.blocks.depth, self.weights.blocks.size
        own = size if self.weights.blocks.count > 1 else min(size, _STEP)
        self._blocks, self._in_step = Blocks(depth, own), max(1, _STEP // own)
        self._width = _VECTORS * self.strategy.lanes
        terms, rows = own * self._in_step + own, self.near_rows(prod(op.rows))
        self._widened, self._sums = (
            kernel.scratch(name, Storage((1, 1, 1, length), "f32", length))
            for name, length in (("widened", terms * self._width), ("sums", rows * self._width))
        )

    def over(self, axes: Sequence[Axis], starts: Sequence[Value], panel: Panel) -> None:
        (axis, *inner), kernel = axes, self.kernel
        if inner or axis.size < MANY_ROWS:
            super().over(axes, starts, panel)
            return
        with kernel.loop(axis.size) as row:
            target, where = kernel.write(self._sums, columns_of(panel), kernel.multiple(row, self._width))
            kernel.store(kernel.fill(target, 0), where)
        whole, rest = divmod(self._blocks.depth, self._blocks.size)
        steps, left = divmod(whole, self._in_step)
        with kernel.loop(steps) as step:
            self._step(axis, starts, panel, kernel.multiple(step, self._in_step), self._in_step, 0)
        if left or rest:
            self._step(axis, starts, panel, kernel.constant(steps * self._in_step, "index"), left, rest)
        with kernel.loop(axis.size) as row:
            self._finish(panel, kernel.multiple(row, self._width), self.further(starts[1], row, axis.strides[1]))

    def _step(self, axis: Axis, starts: Sequence[Value], panel: Panel, first: Value, count: int, rest: int) -> None:
        """All rows meet `count` blocks from the `first` on, and `rest` terms behind them."""
        kernel, size = self.kernel, self._blocks.size
        for done, blocks, length in ((0, count, size), (count, 1, rest)):
            if blocks and length:
                with kernel.loop(blocks) as block:
                    at = self.further(done, block)
                    self._widen(panel, kernel.sum(first, at), length, kernel.multiple(at, size * self._width))
        start = self.further(starts[0], first, size)
        most = _TILE_ROWS if self.strategy.lanes == _WIDE else _NARROW_TILE_ROWS
        for head, extent, rows in split(axis.size, rows_for(axis.size, most)):
            with kernel.loop(extent // rows) as index:
                places = [self.further(head + row, index, rows) for row in range(rows)]
                self._multiply(
                    panel,
                    [self.further(start, place, axis.strides[0]) for place in places],
                    places,
                    count * size + rest,
                )

    def _widen(self, panel: Panel, index: Value, length: int, target: Value) -> None:
        """Write the weights of a block."""
        kernel, terms = self.kernel, self.weights.terms
        numbers = self.numbers(panel, index if self.weights.blocks.count > 1 else kernel.constant(0, "index"))
        words = self.further(panel.words, index, self._blocks.size // terms * panel.width)
        for done, count, part in ((0, length // terms, terms), (length // terms, 1, length % terms)):
            if not count or not part:
                continue
            with kernel.loop(count) as group:
                at = self.further(done, group)
                word = self.word(panel, self.further(words, at, panel.width))
                start = self.further(target, at, terms * self._width)
                for term in range(part):
                    destination, where = kernel.write(
                        self._widened, columns_of(panel), self.further(start, term * self._width)
                    )
                    inputs = [word, *numbers]
                    body = kernel.body(inputs)
                    value = self.weight(body, self.weights.places(term))
                    found = kernel.generic(Loops(COLUMNS), inputs, Operand(destination, COLUMNS), body, value)
                    kernel.store(found, where)

    def _multiply(self, panel: Panel, data: Sequence[Value], places: Sequence[Value], terms: int) -> None:
        """Add the products of a tile of rows to their sums."""
        kernel = self.kernel
        targets = [kernel.write(self._sums, columns_of(panel), kernel.multiple(place, self._width)) for place in places]
        with kernel.walk(terms, *(target for target, _ in targets)) as walk:
            weights = self.columns(panel, self._widened, kernel.multiple(walk.index, self._width))
            walk.values = [
                self.added(
                    panel,
                    total,
                    [self.number(0, kernel.sum(start, walk.index)), weights],
                    self.add_product,
                )
                for total, start in zip(walk.values, data, strict=True)
            ]
        for total, (_, where) in zip(walk.values, targets, strict=True):
            kernel.store(total, where)

    def _finish(self, panel: Panel, sums: Value, output: Value) -> None:
        """Write the results of a row."""
        kernel = self.kernel
        total = Operand(kernel.read(self._sums, View(panel.sizes, (panel.block.lanes, 1)), sums), COLUMNS)
        target, where = kernel.write(self.buffers[1], columns_of(panel), kernel.sum(output, panel.channel))
        inputs = [total, *self.extras(panel)]
        body = kernel.body(inputs)
        value = self.op.finish(body, body.inputs[0], body.inputs[1:])
        tag = Tag(kernel.next_micro_kernel(), "root", (1, 0))
        kernel.store(kernel.generic(Loops(COLUMNS), inputs, Operand(target, COLUMNS), body, value, tag), where)
