"""Depthwise convolution by dot products: 64 lanes times four taps of a kernel row.

The tile's lanes are 64 bytes that lie side by side at a pixel.  Where neighbouring windows are one pixel apart, several
pixels may share them, so that any number of channels fills vectors: 24 channels of 8 pixels are three blocks.  Else
what is left of several pixels is put together: 16 channels of 4 pixels.

A dot product sums four bytes of a 32-bit lane, so the bytes of four taps are interleaved.  Unpacking does so within
128-bit lanes, and leaves byte 16 l + 4 v + i of the block in vector v, at lane 4 l + i.  The loops over lanes are just
that, (v, l, i), with v and l as two bits each, of which the higher ones may be pixels.  All constants lie in their
order: nothing is put back in order before the packs of the epilogue, which do it on the way.  An interleaved row of the
input serves every output row whose window holds it.

Bound.  A kernel of KH rows and Q K groups of columns costs 4 KH Q dot products per 64 outputs.  R output rows at stride
s need s (R - 1) + KH rows of the input, each 8 unpacks a K group of three or four columns, so (s (R - 1) + KH) / R * 8
Q. A core that does one dot product of 64 bytes a cycle, and two such instructions of any kind, takes at least 12.7
cycles for 3x3 at stride 1 by R = 3, which is 12 dot products and 40/3 unpacks; the instructions of the epilogue are
half a cycle more each.  More rows want more registers than there are: parts of four are put aside and fetched again.
"""

from __future__ import annotations

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
from qdialect.lowering.strides import row_major
from qdialect.lowering.views import View

_ORDER = (2, 2, 2, 2, 4)
"""Extents of the loops over lanes: two bits of v, two of l, and i."""
_WEIGHTS = (8, 4, 32, 16, 1)
"""Bytes between neighbours along them where a block is 64 bytes in a row."""
_LANES = ("v1", "v0", "l1", "l0", "i")
_COLUMNS = ("kx", "kz")
_K_GROUP = 4
_MAX_K_GROUPS = 16
"""K groups of a kernel whose products are written out; a tile is longer with each."""


@dataclass(frozen=True)
class _Rows:
    """Output rows of one micro-kernel, and rows per tile."""

    start: int
    count: int
    tile: int


@dataclass(frozen=True)
class _KGroups:
    """Up to four columns of some rows of the kernel, as one product.

    Each loop of `columns` goes on by one column: two of two steps walk three columns, and the middle one twice.
    """

    row: int
    rows: int
    column: int
    columns: tuple[int, ...]
    packed: NDArray[np.int8]
    """[rows, tiles, lanes..., 4]."""


@dataclass(frozen=True)
class PixelBlock:
    """`groups` groups of pixels of a block of lanes, from pixel `column` of each row on."""

    block: LaneBlock
    column: int
    groups: int


def calls_of(op: Contraction) -> list[list[PixelBlock]]:
    """What each call computes; nothing where the tensor has too few lanes, or the kernel is large.

    What fills no vector, or no group of pixels, reaches back and is computed again, in a call of its own: within one
    call nothing is written twice, so that all of it may run at once.
    """
    height, width = op.window.kernel
    if height * -(-width // _K_GROUP) > _MAX_K_GROUPS:
        return []
    storages = [slot.storage for slot in op.slots]
    pitches = {storage.pitch for storage in storages}
    merge = len(pitches) == 1 and {_steps(op, operand)[2] for operand in range(len(storages))} == pitches
    extent = op.window.output[1]
    first: list[PixelBlock] = []
    again: list[PixelBlock] = []
    done = 0
    for block in lane_blocks(op.output.storage.pitch, extent, merge=merge):
        groups, rest = divmod(extent, block.pixels)
        (again if block.start < done else first).append(PixelBlock(block, 0, groups))
        if rest:
            again.append(PixelBlock(block, extent - block.pixels, 1))
        done = block.start + block.lanes
    return [pixel_blocks for pixel_blocks in (first, again) if pixel_blocks]


def emit_pixel_blocks(
    pixel_blocks: Sequence[PixelBlock], kernel: Kernel, op: Contraction, stages: Stages, buffers: Sequence[Buffer]
) -> None:
    """The micro-kernels of each block of pixels."""
    for pixel_block in pixel_blocks:
        _InterleavedMicroKernel(kernel, op, stages, buffers, pixel_block).emit()


class _InterleavedMicroKernel:
    """The micro-kernels of one block of pixels; its constants are declared once."""

    def __init__(
        self, kernel: Kernel, op: Contraction, stages: Stages, buffers: Sequence[Buffer], pixel_block: PixelBlock
    ) -> None:
        self.kernel = kernel
        self.op = op
        self.stages = stages
        self.buffers = buffers
        self.pixel_block = pixel_block
        self.block = block = pixel_block.block
        self.images = ("n",) if op.window.images > 1 else ()
        self.loops = (*self.images, "h", "ct", "x", *_LANES)
        lanes = np.arange(block.tiles * LANES).reshape(block.tiles, 2, 2, 2, 2, 4).transpose(0, 3, 4, 1, 2, 5)
        self.channels = block.start + lanes % block.lanes
        self.k_groups = self._k_groups()
        weights = np.concatenate([k_groups.packed.reshape(-1) for k_groups in self.k_groups])
        self.weights = self._constant("weights", weights, is_weight=True)
        self.bias = self._per_channel("bias", op.bias)
        self.parameters = [self._per_channel(name, values) for name, values in op.epilogue.channel_parameters()]

    def emit(self) -> None:
        """A micro-kernel for whole tiles of rows, and one for the rest."""
        for rows in self.kernel.program.strategy.depthwise_rows(self.op.window.output[0]):
            self._emit(_Rows(*rows))

    def _emit(self, rows: _Rows) -> None:
        kernel, buffers = self.kernel, self.buffers
        micro_kernel = kernel.next_micro_kernel()
        inputs = [Operand(self._accumulate(micro_kernel, rows), self.loops)]
        inputs += [Operand(parameter, ("ct", *_LANES)) for parameter in self.parameters]
        if len(buffers) > 2:
            inputs.append(Operand(kernel.read(buffers[2], self._view(rows, 2)), self.loops))
        destination, where = kernel.write(buffers[1], self._view(rows, 1))
        body = kernel.body(inputs)
        acc, *rest = body.inputs
        parameters = rest[: len(self.parameters)]
        value = self.stages.emit(body, acc, parameters, rest[-1] if len(buffers) > 2 else None)
        root = Tag(micro_kernel, "root", (*[1 for _ in self.images], rows.tile, 1, 1, *[0 for _ in _LANES]))
        output = Operand(destination, self.loops)
        kernel.store(kernel.generic(Loops(self.loops), inputs, output, body, value, root), where)

    def _accumulate(self, micro_kernel: int, rows: _Rows) -> Tensor:
        """``acc[pixel, c] += data[pixel + tap, c] * weight[tap, c]``, some K groups after the other."""
        kernel = self.kernel
        empty = Operand(kernel.empty(self._sizes(rows), "i32"), self.loops)
        bias = Operand(self.bias, ("ct", *_LANES))
        acc = kernel.copy(Loops(self.loops), bias, empty, Tag(micro_kernel, "start"))
        offset = 0
        for index, k_groups in enumerate(self.k_groups):
            acc = self._add(rows, k_groups, offset, acc, Tag(micro_kernel, f"k_groups{index}"))
            offset += k_groups.packed.size
        return acc

    def _add(self, rows: _Rows, k_groups: _KGroups, offset: int, start: Tensor, tag: Tag) -> Tensor:
        kernel = self.kernel
        row, column = self.op.window.tap_strides(self.op.data.storage)
        view = self._view(rows, 0)
        edge = len(self.loops) - len(_LANES)
        sizes = (*view.sizes[:edge], k_groups.rows, *k_groups.columns, *_ORDER)
        first = view.offset + k_groups.row * row + k_groups.column * column
        strides = (*view.strides[:edge], row, *[column for _ in k_groups.columns], *view.strides[edge:])
        data = kernel.read(self.buffers[0], View(sizes, strides, first))
        sizes = (*k_groups.packed.shape[:-1], *k_groups.columns)
        strides = (*row_major(k_groups.packed.shape)[:-1], *row_major(k_groups.columns))
        weights = kernel.read(self.weights, View(sizes, strides, offset))
        taps = _COLUMNS[: len(k_groups.columns)]
        operands = [
            Operand(data, (*self.loops[:edge], "ky", *taps, *_LANES)),
            Operand(weights, ("ky", "ct", *_LANES, *taps)),
        ]
        acc = Operand(start, self.loops)
        body = kernel.body(operands, acc)
        x = body.cast("arith.extui", body.inputs[0], "i32")
        w = body.cast("arith.extsi", body.inputs[1], "i32")
        total = body.add(body.output, body.multiply(x, w))
        return kernel.generic(Loops(self.loops, ("ky", *taps)), operands, acc, body, total, tag)

    def _sizes(self, rows: _Rows) -> tuple[int, ...]:
        images = [self.op.window.images for _ in self.images]
        return (*images, rows.count, self.block.tiles, self.pixel_block.groups, *_ORDER)

    def _view(self, rows: _Rows, operand: int) -> View:
        """The lanes of each pixel: of its first tap, output or residual."""
        image, row, column = _steps(self.op, operand)
        start = self.op.start(operand) + rows.start * row + self.pixel_block.column * column + self.block.start
        strides = (*[image for _ in self.images], row, LANES, self.block.pixels * column, *self._lanes(column))
        return View(self._sizes(rows), strides, start)

    def _lanes(self, column: int) -> tuple[int, ...]:
        """Strides of the loops over lanes, where the next pixel is `column` elements away."""
        lanes = self.block.lanes
        if column == lanes:
            return _WEIGHTS
        return tuple(weight if weight < lanes else weight // lanes * column for weight in _WEIGHTS)

    def _k_groups(self) -> list[_KGroups]:
        """The weights less their zero points; what is more than s8 holds is multiplied once more, row by row.

        Three columns leave a byte of each K group free, which takes what is too much for the middle one.
        """
        weights = self.op.weights
        exact = weights.values[:, :, :, 0].astype(np.int32) - weights.zero_points[:, None, None]
        whole, *remainder = signed_parts(exact)
        height, width = self.op.window.kernel
        if width == _K_GROUP - 1 and len(remainder) == 1 and not remainder[0][:, :, ::2].any():
            both = np.stack([whole[:, :, 0], whole[:, :, 1], remainder[0][:, :, 1], whole[:, :, 2]], axis=2)
            return [_KGroups(0, height, 0, (2, 2), self._pack(both))]
        columns = range(0, width, _K_GROUP)
        found = [self._some(whole, range(height), column) for column in columns]
        for rest, row, column in product(remainder, range(height), columns):
            if rest[:, row, column : column + _K_GROUP].any():
                found.append(self._some(rest, range(row, row + 1), column))
        return found

    def _some(self, weights: NDArray[np.int8], rows: range, column: int) -> _KGroups:
        taps = weights[:, rows.start : rows.stop, column : column + _K_GROUP]
        return _KGroups(rows.start, len(rows), column, taps.shape[2:], self._pack(taps))

    def _pack(self, taps: NDArray[np.int8]) -> NDArray[np.int8]:
        """Taps [channels, rows, columns] as [rows, tiles, lanes..., 4]."""
        channels, rows, columns = taps.shape
        padded = np.zeros((self.op.output.storage.pitch, rows, _K_GROUP), dtype=np.int8)
        padded[:channels, :, :columns] = taps
        return np.moveaxis(padded[self.channels], -2, 0)

    def _per_channel(self, name: str, values: NDArray[Any]) -> Tensor:
        spread = pad_channels(np.broadcast_to(values, self.op.weights.values.shape[:1]), self.op.output.storage.pitch)
        sizes = self.channels.shape
        return self.kernel.read(self._constant(name, spread[self.channels]), View(sizes, row_major(sizes)))

    def _constant(self, name: str, values: NDArray[Any], *, is_weight: bool = False) -> Buffer:
        return self.kernel.data(f"{name}_{self.block.start}", np.ascontiguousarray(values), is_weight=is_weight)


def _steps(op: Contraction, operand: int) -> tuple[int, int, int]:
    """Elements from one pixel to the next, along N, H and W."""
    storage = op.slots[operand].storage
    return op.grid.pixel_strides(storage) if operand else op.window.pixel_strides(storage)
