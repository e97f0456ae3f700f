"""Rows of a table of weights in blocks: their f32 values, out of the panels that products read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.lowering.ir.strides import View
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import Numbers, PackedBlocks
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

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
