"""Products of rows of bytes with weights in blocks: sums of integers, each block's added to the totals by scales."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.ir.views import View
from qdialect.lowering.qnn_to_linalg.contractions.block_products import COLUMNS, BlockKernel, BlockProducts, Panel, Rows
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import BYTES, Blocks
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Loops, Operand, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

_SUM = 3
"""The operand that has the sums of rows of bytes; zero points follow."""


class IntegerProducts(BlockKernel):
    """Products with rows of bytes, which have a scale and the sum of their numbers for each of their own blocks.

    Behind these operands they may have a zero point for each block, too.  Rows of unsigned bytes have none of these:
    weights are signed, each in the upper bits of a byte, 2^(8 - bits) times as large.
    """

    is_apart = True

    def __init__(
        self, kernel: Kernel, op: BlockProducts, size: int, totals: NDArray[np.int16 | np.int32] | None = None
    ) -> None:
        """`size` is that of the data's blocks; `totals` are those of the weights, where the data have zero points."""
        super().__init__(kernel, op)
        self._size = size
        self._totals = None if totals is None else kernel.data("totals", totals, is_weight=True)
        self._totals_are_wide = totals is not None and totals.dtype == np.int32

    @property
    def row_bytes(self) -> int:
        return self.weights.blocks.depth

    def block(self, panel: Panel, rows: Rows, index: Value, length: int, totals: Sequence[Tensor]) -> list[Tensor]:
        weights, own = self.weights, Blocks(length, min(self._size, length))
        scales, points = self.scales(panel, index), self.points(panel, index)
        words = self.further(panel.words, index, weights.blocks.size // weights.terms * panel.width)
        data = [self.further(row[0], index, weights.blocks.size) for row in rows]
        numbers = [self.further(0, index, -(-weights.blocks.size // self._size))] * len(rows)
        found = list(totals)
        for first, count, part in own.parts():
            with self.kernel.walk(count, *found) as walk:
                at = self.further(first, walk.index)
                word = self.further(words, at, self._size // weights.terms * panel.width)
                starts = [self.further(start, at, self._size) for start in data]
                places = [self.further(start, at) for start in numbers]
                counts = self._sums(
                    panel,
                    word,
                    starts,
                    -(-part // weights.terms),
                    points,
                    [
                        [self.number(i, self.kernel.sum(row[i], place)) for i in range(_SUM, len(self.buffers))]
                        for row, place in zip(rows, places, strict=True)
                    ],
                    self.by_block(panel, index, self._totals) if self._totals else None,
                )
                factors = [
                    [self.number(i, self.kernel.sum(row[i], place)) for i in range(2, min(_SUM, len(self.buffers)))]
                    for row, place in zip(rows, places, strict=True)
                ]
                walk.values = [
                    self.added(panel, total, [found_count, scales, *own_factors], _scaled)
                    for total, found_count, own_factors in zip(walk.values, counts, factors, strict=True)
                ]
            found = walk.values
        return found

    def _sums(
        self,
        panel: Panel,
        words: Value,
        data: Sequence[Value],
        count: int,
        points: Operand | None,
        sums: Sequence[Sequence[Operand]],
        totals: Operand | None,
    ) -> list[Tensor]:
        """The exact sums of the products of `count` words."""
        given = [one for one in (totals, points) if one]
        if self.weights.is_signed:
            starts = [self.kernel.filled(panel.sizes, "i32", 0) for _ in data]
        else:
            starts = [self.map(panel, "i32", [*own, *given], self._start) for own in sums]
        fields = 8 // self.weights.bits
        with self.kernel.walk(count, *starts) as walk:
            start, found = self.further(words, walk.index, panel.width), walk.values
            view = View((*panel.sizes, BYTES), (panel.block.lanes * BYTES, BYTES, 1))
            bytes_ = Operand(self.kernel.read(self._packed, view, self.kernel.multiple(start, BYTES)), (*COLUMNS, "k"))
            self.fetch(panel, start)
            for j in range(fields):
                at = [self.further(self.further(one, walk.index, fields * BYTES), BYTES * j) for one in data]
                found = [
                    self._dot(
                        total, Operand(self.kernel.read(self.buffers[0], View((BYTES,), (1,)), own), ("k",)), bytes_, j
                    )
                    for total, own in zip(found, at, strict=True)
                ]
            walk.values = found
        return walk.values

    def _dot(self, total: Tensor, data: Operand, weights: Operand, field: int) -> Tensor:
        """`total` with the products of four bytes and a field of bits of each byte of the weights."""
        output, bits, is_signed = Operand(total, COLUMNS), self.weights.bits, self.weights.is_signed
        body = self.kernel.body([data, weights], output)
        byte, taken = body.inputs
        rest, of_data, of_weights = 8 - bits, "arith.extsi", "arith.extui"
        shift, places, mask = "arith.shrui", bits * field, (1 << bits) - 1
        if is_signed:
            of_data, of_weights = of_weights, of_data
            shift, places, mask = "arith.shli", rest - places, -1 << rest
        if places:
            taken = body.binary(shift, taken, body.constant(places, "i8"))
        if places != rest:
            taken = body.binary("arith.andi", taken, body.constant(mask, "i8"))
        product = body.multiply(body.cast(of_weights, taken, "i32"), body.cast(of_data, byte, "i32"))
        loops = Loops(COLUMNS, ("k",))
        return self.kernel.generic(loops, [data, weights], output, body, body.add(body.output, product))

    def _start(self, body: Body) -> Value:
        """The addend of the products for the weights' zero points, then for the data's."""
        (total, *others), points = body.inputs, self.weights.points
        if isinstance(points, float):
            taken = body.constant(-int(points), "i32")
        else:
            taken = body.subtract(body.constant(0, "i32"), body.cast("arith.extui", others.pop(), "i32"))
        start = body.multiply(total, taken)
        if not others:
            return start
        point, weights = others
        weights = weights if self._totals_are_wide else body.cast("arith.extsi", weights, "i32")
        return body.subtract(start, body.multiply(point, weights))


def _scaled(body: Body) -> Value:
    count, scale, *row = body.inputs
    for one in row:
        scale = body.multiply(one, scale)
    return body.multiply_add(body.cast("arith.sitofp", count, "f32"), scale, body.output)
