"""Depthwise convolution by dot products: 64 lanes times four taps of a kernel row.

The tile's lanes are the 64 bytes that lie side by side at a pixel.  Where neighbouring windows are one pixel apart,
several pixels may share them, so that any number of channels fills vectors: 24 channels of 8 pixels are three blocks.

A dot product sums four bytes of a 32-bit lane, so the bytes of four taps are interleaved.  Unpacking does so within
128-bit lanes, and leaves byte 16 l + 4 v + i of the block in vector v, at lane 4 l + i.  The loops over lanes are just
that, (v, l, i), and all constants lie in their order: nothing is put back in order before the packs of the epilogue,
which do it on the way.  An interleaved row of the input serves every output row whose window holds it.

Per 64 outputs of a 3x3 kernel, stride 1, 4 rows a tile: 12 dot products, 6/4 * 8 = 12 unpacks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.kernels.contraction import Contraction
from qdialect.lowering.kernels.epilogue import Stages
from qdialect.lowering.packing import pad_channels, signed_parts
from qdialect.lowering.program import Kernel
from qdialect.lowering.strategy import LANES, LaneBlock, lane_blocks
from qdialect.lowering.views import View

_ORDER = (4, 4, 4)
"""Extents of (v, l, i)."""
_STEPS = (4, 16, 1)
"""Bytes between neighbours along (v, l, i)."""
_LANES = ("cv", "cl", "ci")
_TAPS = ("ky", "kx")
_QUAD = 4
_MOST_QUADS = 16
"""Quads of a kernel whose products are written out; a tile is longer with each."""


@dataclass(frozen=True)
class _Part:
    """Output rows and groups of pixels of one nest, and rows per tile."""

    row: int
    rows: int
    tile: int
    column: int
    groups: int


def blocks_of(op: Contraction) -> list[LaneBlock]:
    """The blocks of 64 lanes; none where the tensor has fewer, or the kernel is large."""
    height, width = op.window.kernel
    if height * -(-width // _QUAD) > _MOST_QUADS:
        return []
    storages = [place.storage for place in op.places]
    pitches = {storage.pitch for storage in storages}
    columns = {_steps(op, operand)[2] for operand in range(len(storages))}
    return lane_blocks(op.output.storage.pitch, op.window.output[1], merge=len(pitches) == 1 and columns == pitches)


class QuadNests:
    """The nests of one block of lanes; its constants are declared once."""

    def __init__(
        self, kernel: Kernel, op: Contraction, stages: Stages, buffers: Sequence[Buffer], block: LaneBlock
    ) -> None:
        self.kernel = kernel
        self.op = op
        self.stages = stages
        self.buffers = buffers
        self.block = block
        self.images = ("n",) if op.window.images > 1 else ()
        self.loops = (*self.images, "h", "ct", "x", *_LANES)
        lanes = np.arange(block.tiles * LANES).reshape(block.tiles, *_ORDER).transpose(0, 2, 1, 3)
        self.channels = (block.start + lanes) % op.output.storage.pitch
        self.weights = self._weights()
        self.bias = self._per_channel("bias", op.bias)
        self.parameters = [self._per_channel(name, values) for name, values in op.epilogue.channel_parameters()]

    def emit(self) -> None:
        """A nest for each part of the output."""
        rows, width = self.op.window.output
        groups = width // self.block.pixels
        done = groups * self.block.pixels
        # What fills no group is computed as one that reaches back.
        columns = [(0, groups), *([(width - self.block.pixels, 1)] if done < width else [])]
        for (row, extent, tile), (column, count) in product(self.kernel.program.strategy.depthwise_rows(rows), columns):
            self._emit(_Part(row, extent, tile, column, count))

    def _emit(self, part: _Part) -> None:
        kernel, buffers = self.kernel, self.buffers
        nest = kernel.next_nest()
        inputs = [Operand(self._accumulate(nest, part), self.loops)]
        inputs += [Operand(parameter, ("ct", *_LANES)) for parameter in self.parameters]
        names = [f"%x{i}" for i in range(1, len(inputs))]
        residual = None
        if len(buffers) > 2:
            residual = f"%x{len(inputs)}"
            inputs.append(Operand(kernel.read(buffers[2], self._view(part, 2)), self.loops))
        destination, where = kernel.write(buffers[1], self._view(part, 1))
        body = kernel.body()
        value = self.stages.emit(body, "%x0", names, residual)
        root = Tag(nest, "root", (*[1 for _ in self.images], part.tile, 1, 1, 0, 0, 0))
        output = Operand(destination, self.loops)
        kernel.store(kernel.generic(Loops(self.loops), inputs, output, body, value, root), where)

    def _accumulate(self, nest: int, part: _Part) -> Tensor:
        """``acc[pixel, c] += data[pixel + tap, c] * weight[tap, c]``, a quad of columns after the other."""
        kernel = self.kernel
        empty = Operand(kernel.empty(self._sizes(part), "i32"), self.loops)
        bias = Operand(self.bias, ("ct", *_LANES))
        acc = kernel.generic(Loops(self.loops), [bias], empty, kernel.body(), "%x0", Tag(nest, "start"))
        quads = range(0, self.op.window.kernel[1], _QUAD)
        for index, (_, column) in enumerate(product(range(self._parts), quads)):
            acc = self._add_quad(nest, part, index, column, acc)
        return acc

    def _add_quad(self, nest: int, part: _Part, index: int, column: int, start: Tensor) -> Tensor:
        kernel = self.kernel
        height, width = self.op.window.kernel
        count = min(_QUAD, width - column)
        rows, columns = self.op.window.tap_strides(self.op.data.storage)
        view = self._view(part, 0)
        edge = len(self.loops) - len(_LANES)
        sizes = (*view.sizes[:edge], height, count, *_ORDER)
        strides = (*view.strides[:edge], rows, columns, *_STEPS)
        data = kernel.read(self.buffers[0], View(sizes, strides, view.offset + column * columns))
        lanes = self.block.tiles * LANES * _QUAD
        packed = View((height, self.block.tiles, *_ORDER, count), (lanes, 256, 64, 16, 4, 1), index * height * lanes)
        weights = kernel.read(self.weights, packed)
        body = kernel.body()
        x = body.cast("arith.extui", "%x0", "i8", "i32")
        w = body.cast("arith.extsi", "%x1", "i8", "i32")
        total = body.binary("arith.addi", "%o", body.binary("arith.muli", x, w, "i32"), "i32")
        operands = [
            Operand(data, (*self.loops[:edge], *_TAPS, *_LANES)),
            Operand(weights, ("ky", "ct", *_LANES, "kx")),
        ]
        loops = Loops(self.loops, _TAPS)
        return kernel.generic(loops, operands, Operand(start, self.loops), body, total, Tag(nest, f"quad{index}"))

    def _sizes(self, part: _Part) -> tuple[int, ...]:
        images = [self.op.window.images for _ in self.images]
        return (*images, part.rows, self.block.tiles, part.groups, *_ORDER)

    def _view(self, part: _Part, operand: int) -> View:
        """The lanes of each pixel: of its first tap, output or residual."""
        image, row, column = _steps(self.op, operand)
        start = self.op.start(operand) + part.row * row + part.column * column + self.block.start
        strides = (*[image for _ in self.images], row, LANES, self.block.pixels * column, *_STEPS)
        return View(self._sizes(part), strides, start)

    @property
    def _parts(self) -> int:
        height, width = self.op.window.kernel
        return self.weights.length // (self.block.tiles * LANES * height * -(-width // _QUAD) * _QUAD)

    def _weights(self) -> Buffer:
        """[part, quad, row, tile, v, l, i, 4]: weights less their zero points, as sums of s8 parts."""
        weights = self.op.weights
        exact = weights.codes[:, :, :, 0].astype(np.int32) - weights.zero_points[:, None, None]
        parts = signed_parts(exact)
        count, channels, height, width = parts.shape
        quads = -(-width // _QUAD)
        padded = np.zeros((count, self.op.output.storage.pitch, height, quads * _QUAD), dtype=np.int8)
        padded[:, :channels, :, :width] = parts
        lanes = padded[:, self.channels].reshape(count, *self.channels.shape, height, quads, _QUAD)
        return self._constant("weights", lanes.transpose(0, 6, 5, 1, 2, 3, 4, 7))

    def _per_channel(self, name: str, values: NDArray[Any]) -> Tensor:
        spread = pad_channels(np.broadcast_to(values, self.op.weights.codes.shape[:1]), self.op.output.storage.pitch)
        sizes = self.channels.shape
        strides = tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))
        return self.kernel.read(self._constant(name, spread[self.channels]), View(sizes, strides))

    def _constant(self, name: str, values: NDArray[Any]) -> Buffer:
        return self.kernel.data(f"{name}_{self.block.start}", np.ascontiguousarray(values))


def _steps(op: Contraction, operand: int) -> tuple[int, int, int]:
    """Elements from one pixel to the next, along N, H and W."""
    storage = op.places[operand].storage
    return op.grid.pixel_strides(storage) if operand else op.window.pixel_strides(storage)
