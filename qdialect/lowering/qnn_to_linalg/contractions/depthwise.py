"""Depthwise convolution: every channel with its own taps, vectors along the channels.

Where the target has dot products they sum four taps of a row at a time.  Elsewhere, and for what fills no vector, one
tap follows the other: it multiplies a vector of channels by a vector of weights, element by element, so weights keep
their zero points folded in exactly (9 bits and sign) and no sum of the window is needed. Weights that are known at run
time only are read in the same way, see `stored_weights`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.register_tiles import LARGEST_PAIR, Layout, parts_that_fit
from qdialect.lowering.cost.strategy import ChannelBlock, LaneBlock, Strategy, depthwise_blocks, lane_blocks
from qdialect.lowering.ir.views import View, row_major
from qdialect.lowering.qnn_to_linalg.contractions import contraction
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction, Stages, StoredTaps
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import ConstantWeights, pad_channels, signed_parts
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Segment, segments
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program

_TAPS = ("kh", "kw")


def emit_depthwise(program: Program, op: Contraction, label: str) -> None:
    """Append the kernel calls of a convolution with one input and one output channel per group."""
    is_known = isinstance(op.weights, ConstantWeights)
    calls = calls_of(op, program.strategy) if is_known and program.strategy.depthwise.interleaved_rows else []
    for index, pixel_blocks in enumerate(calls or [None]):
        kernel = Kernel(program)
        buffers = op.declare(kernel)
        stages = contraction.declare_stages(kernel, op.epilogue)
        if pixel_blocks:
            for pixel_block in pixel_blocks:
                _InterleavedMicroKernel(kernel, op, stages, buffers, pixel_block).emit()
        else:
            _emit_taps(kernel, op, stages, buffers)
        # Products that are computed again count once.
        program.call(kernel, label, 0 if index else op.macs)


def _emit_taps(kernel: Kernel, op: Contraction, stages: Stages, buffers: Sequence[Buffer]) -> None:
    """Write the micro-kernels that add up one tap after the other."""
    lanes, channels = op.output.storage.pitch, op.channels

    def by_lane(name: str, values: NDArray[Any]) -> Buffer:
        return kernel.data(name, pad_channels(np.broadcast_to(values, (channels,)), lanes))

    constants = [*_declare_weights(kernel, op, lanes)]
    constants += [by_lane(*parameter) for parameter in op.epilogue.channel_parameters()]
    weights, bias, *parameters = constants
    parts = segments(op.pixels, kernel.program.strategy.depthwise.segments)
    for block, segment in product(depthwise_blocks(lanes), parts):
        micro_kernel, loops = kernel.next_micro_kernel(), (*segment.loops, "c")
        channel = View((block.channels,), (1,), block.start)
        first = Operand(kernel.read(bias, channel), ("c",))
        empty = Operand(kernel.empty((*segment.sizes, block.channels), "i32"), loops)
        start = kernel.copy(Loops(loops), first, empty, Tag(micro_kernel, "contraction_fill"))
        stages.store(
            kernel,
            Loops(loops),
            Operand(_accumulate(kernel, op, buffers[0], weights, block, segment, start, micro_kernel), loops),
            [Operand(kernel.read(buffer, channel), ("c",)) for buffer in parameters],
            (),
            Operand(kernel.read(buffers[2], _pixel_view(op, segment, 2, block)), loops) if buffers[2:] else None,
            stages.segment_operands(kernel, segment, len(buffers)),
            kernel.write(buffers[1], _pixel_view(op, segment, 1, block)),
            Tag(micro_kernel, "root", (1,) * (len(segment.pixels) - 1) + (segment.tiles[-1], block.lanes)),
        )


def _declare_weights(kernel: Kernel, op: Contraction, lanes: int) -> tuple[Buffer, Buffer]:
    """Weights less their zero points, [taps, lanes], and what the accumulators start at, [lanes]."""
    weights = op.weights
    if isinstance(weights, StoredTaps):
        start = weights.start
        known = kernel.slot("start", start) if isinstance(start, BufferSlot) else kernel.data("bias", start)
        return kernel.slot("weights", weights.slot), known
    assert isinstance(weights, ConstantWeights), "matrices are not of single channels"
    taps = weights.exact.reshape(op.channels, -1)
    planes = np.stack([pad_channels(plane, lanes) for plane in taps.T])
    # Nine bits and a sign: where words are multiplied, a product is one instruction on words that are known to be.
    planes = planes.astype(np.int16) if kernel.program.strategy.depthwise.has_words else planes
    bias = pad_channels(np.broadcast_to(weights.bias, (op.channels,)), lanes)
    return kernel.data("weights", planes, is_weight=True), kernel.data("bias", bias)


def _pixel_view(op: Contraction, segment: Segment, operand: int, block: ChannelBlock) -> View:
    offset = op.accesses[operand].start + segment.offsets[operand] + block.start
    return View((*segment.sizes, block.channels), (*segment.strides(operand), 1), offset)


def _accumulate(
    kernel: Kernel,
    op: Contraction,
    data: Buffer,
    weights: Buffer,
    block: ChannelBlock,
    segment: Segment,
    start: Tensor,
    micro_kernel: int,
) -> Tensor:
    """``acc[pixel, c] += data[pixel + tap, c] * weight[tap, c]`` over the taps."""
    loops, kernel_size, lanes = segment.loops, op.window, op.output.storage.pitch
    offset = op.accesses[0].start + segment.offsets[0] + block.start
    steps = (*segment.strides(0), *op.accesses[0].taps, 1)
    source = kernel.read(data, View((*segment.sizes, *kernel_size, block.channels), steps, offset))
    taps = View((*kernel_size, block.channels), (kernel_size[1] * lanes, lanes, 1), block.start)
    weight = kernel.read(weights, taps)
    operands, acc = (
        [Operand(source, (*loops, *_TAPS, "c")), Operand(weight, (*_TAPS, "c"))],
        Operand(start, (*loops, "c")),
    )
    body = kernel.body(operands, acc)
    x, tap = body.inputs
    tap = tap if tap.type == "i32" else body.cast("arith.extsi", tap, "i32")
    total = body.add(body.output, body.multiply(body.cast("arith.extui", x, "i32"), tap))
    tag = Tag(micro_kernel, "contraction", (0,) * (len(loops) + 1) + (1, 1))
    return kernel.generic(Loops((*loops, "c"), _TAPS), operands, acc, body, total, tag)


# Four taps of a row at a time, by dot products: the lanes of a vector times four taps of a kernel row.
#
# The tile's lanes are the 64 bytes of a vector, or its 32 or 16, that lie side by side at a pixel.  Where neighbouring
# windows are one pixel apart, several pixels may share them, so that any number of channels fills vectors: 24 channels
# of 8 pixels are three blocks.  Else what is left of several pixels is put together: 16 channels of 4 pixels.
#
# A dot product sums four bytes of a 32-bit lane, so the bytes of four taps are interleaved.  Unpacking does so within
# 128-bit lanes, and leaves byte 16 l + 4 v + i of the block in vector v, at lane 4 l + i.  The loops over lanes are
# just that, (v, l, i), with v and l as bits, two each of 64 bytes, of which the higher ones may be pixels.  All
# constants lie in their order: nothing is put back in order before the packs of the epilogue, which do it on the way.
# An interleaved row of the input serves every output row whose window holds it.
#
# Bound.  A kernel of KH rows and Q K groups of columns costs 4 KH Q dot products per 64 outputs.  R output rows at
# stride s need s (R - 1) + KH rows of the input, each 8 unpacks a K group of three or four columns, so (s (R - 1) + KH)
# / R * 8 Q. A core that does one dot product of 64 bytes a cycle, and two such instructions of any kind, takes at least
# 12.7 cycles for 3x3 at stride 1 by R = 3, which is 12 dot products and 40/3 unpacks; the instructions of the epilogue
# are half a cycle more each.  More rows want more registers than there are: parts of four are put aside and fetched
# again.

_PART = 16
"""Bytes that are unpacked by themselves."""
_COLUMNS = ("kx", "kz")
_MAX_K_GROUPS = 16
"""K groups of a kernel whose products are written out; a tile is longer with each."""


@dataclass(frozen=True)
class _Lanes:
    """The loops over the lanes of a vector of `size` bytes: two bits of v, those of l, and i."""

    size: int

    @property
    def parts(self) -> int:
        """Extent of l."""
        return self.size // _PART

    @property
    def names(self) -> tuple[str, ...]:
        """The loops."""
        return ("v1", "v0", *(f"l{bit}" for bit in reversed(range(self._bits))), "i")

    @property
    def order(self) -> tuple[int, ...]:
        """Their extents."""
        return (2, 2, *[2] * self._bits, 4)

    @property
    def weights(self) -> tuple[int, ...]:
        """Bytes between neighbours along them where a block lies in a row."""
        return (8, 4, *(_PART << bit for bit in reversed(range(self._bits))), 1)

    @property
    def _bits(self) -> int:
        return self.parts.bit_length() - 1


_Rows = tuple[int, int, int]
"""Of one micro-kernel: the first output row, how many, and rows per tile."""


@dataclass(frozen=True)
class PixelBlock:
    """`groups` groups of pixels of a block of lanes, from pixel `column` of each row on."""

    block: LaneBlock
    column: int
    groups: int


def calls_of(op: Contraction, strategy: Strategy) -> list[list[PixelBlock]]:
    """The pixel blocks of each call; none for too few lanes, a single tap, a large kernel, or if taps alone are faster.

    What fills no vector, or no group of pixels, reaches back and is computed again, in a call of its own: within one
    call nothing is written twice, so that all of it may run at once.
    """
    height, width = op.window
    if height * width == 1 or height * -(-width // contraction.K_GROUP) > _MAX_K_GROUPS or _is_slower(op, strategy):
        return []
    pitches = {access.slot.storage.pitch for access in op.accesses}
    merge = len(pitches) == 1 and {access.pixels[2] for access in op.accesses} == pitches
    extent = op.extents[2]
    first: list[PixelBlock] = []
    again: list[PixelBlock] = []
    done = 0
    for block in lane_blocks(op.output.storage.pitch, extent, merge=merge, vector=4 * strategy.lanes):
        groups, rest = divmod(extent, block.pixels)
        (again if block.start < done else first).append(PixelBlock(block, 0, groups))
        if rest:
            again.append(PixelBlock(block, extent - block.pixels, 1))
        done = block.start + block.lanes
    return [pixel_blocks for pixel_blocks in (first, again) if pixel_blocks]


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
        self.images = ("n",) if op.extents[0] > 1 else ()
        self.lanes = lanes = _Lanes(4 * kernel.program.strategy.lanes)
        self.loops = (*self.images, "h", "ct", "x", *lanes.names)
        # Byte 16 l + 4 v + i, as (v, l, i).
        order = np.arange(block.tiles * lanes.size).reshape(block.tiles, lanes.parts, 4, 4).transpose(0, 2, 1, 3)
        self.channels = block.start + order.reshape(block.tiles, *lanes.order) % block.lanes
        self.k_groups = _k_groups(op, kernel.program.strategy)
        weights = np.concatenate([self._pack(k_groups.taps).reshape(-1) for k_groups in self.k_groups])
        self.weights = self._constant("weights", weights, is_weight=True)
        self.bias = self._per_channel("bias", _known(op).bias)
        self.parameters = [self._per_channel(name, values) for name, values in op.epilogue.channel_parameters()]

    def emit(self) -> None:
        """A micro-kernel for whole tiles of rows, and one for the rest."""
        kernel, buffers = self.kernel, self.buffers
        for rows in kernel.program.strategy.depthwise.rows(self.op.extents[1]):
            micro_kernel = kernel.next_micro_kernel()
            self.stages.store(
                kernel,
                Loops(self.loops),
                Operand(self._accumulate(micro_kernel, rows), self.loops),
                [Operand(parameter, ("ct", *self.lanes.names)) for parameter in self.parameters],
                (),
                Operand(kernel.read(buffers[2], self._view(rows, 2)), self.loops) if buffers[2:] else None,
                self.stages.row_operands(kernel),
                kernel.write(buffers[1], self._view(rows, 1)),
                Tag(micro_kernel, "root", (*[1 for _ in self.images], rows[2], 1, 1, *[0 for _ in self.lanes.names])),
            )

    def _accumulate(self, micro_kernel: int, rows: _Rows) -> Tensor:
        """``acc[pixel, c] += data[pixel + tap, c] * weight[tap, c]``, some K groups after the other."""
        kernel = self.kernel
        empty = Operand(kernel.empty(self._sizes(rows), "i32"), self.loops)
        bias = Operand(self.bias, ("ct", *self.lanes.names))
        acc = kernel.copy(Loops(self.loops), bias, empty, Tag(micro_kernel, "start"))
        offset = 0
        for index, k_groups in enumerate(self.k_groups):
            acc = self._add(rows, k_groups, offset, acc, Tag(micro_kernel, f"k_groups{index}"))
            offset += k_groups.taps.shape[1] * self.channels.size * contraction.K_GROUP
        return acc

    def _add(self, rows: _Rows, k_groups: KGroups, offset: int, start: Tensor, tag: Tag) -> Tensor:
        kernel = self.kernel
        row, column = self.op.accesses[0].taps
        view = self._view(rows, 0)
        edge = len(self.loops) - len(self.lanes.names)
        count, steps = k_groups.taps.shape[1], k_groups.steps
        sizes = (*view.sizes[:edge], count, *steps, *self.lanes.order)
        first = view.offset + k_groups.row * row + k_groups.column * column
        onward = row if k_groups.is_vertical else column
        strides = (*view.strides[:edge], row, *[onward for _ in steps], *view.strides[edge:])
        data = kernel.read(self.buffers[0], View(sizes, strides, first))
        packed = (count, *self.channels.shape, contraction.K_GROUP)
        sizes, strides = (*packed[:-1], *steps), (*row_major(packed)[:-1], *row_major(steps))
        weights = kernel.read(self.weights, View(sizes, strides, offset))
        taps = _COLUMNS[: len(steps)]
        operands = [
            Operand(data, (*self.loops[:edge], "ky", *taps, *self.lanes.names)),
            Operand(weights, ("ky", "ct", *self.lanes.names, *taps)),
        ]
        acc = Operand(start, self.loops)
        body = kernel.body(operands, acc)
        x = body.cast("arith.extui", body.inputs[0], "i32")
        w = body.cast("arith.extsi", body.inputs[1], "i32")
        total = body.add(body.output, body.multiply(x, w))
        return kernel.generic(Loops(self.loops, ("ky", *taps)), operands, acc, body, total, tag)

    def _sizes(self, rows: _Rows) -> tuple[int, ...]:
        images = [self.op.extents[0] for _ in self.images]
        return (*images, rows[1], self.block.tiles, self.pixel_block.groups, *self.lanes.order)

    def _view(self, rows: _Rows, operand: int) -> View:
        """The lanes of each pixel: of its first tap, output or residual."""
        access = self.op.accesses[operand]
        image, row, column = access.pixels
        start = access.start + rows[0] * row + self.pixel_block.column * column + self.block.start
        strides = (
            *[image for _ in self.images],
            row,
            self.lanes.size,
            self.block.pixels * column,
            *self._steps(column),
        )
        return View(self._sizes(rows), strides, start)

    def _steps(self, column: int) -> tuple[int, ...]:
        """Strides of the loops over lanes, where the next pixel is `column` elements away."""
        lanes, weights = self.block.lanes, self.lanes.weights
        if column == lanes:
            return weights
        return tuple(weight if weight < lanes else weight // lanes * column for weight in weights)

    def _pack(self, taps: NDArray[np.int8]) -> NDArray[np.int8]:
        """Taps [channels, rows, columns] as [rows, tiles, lanes..., 4]."""
        channels, rows, columns = taps.shape
        padded = np.zeros((self.op.output.storage.pitch, rows, contraction.K_GROUP), dtype=np.int8)
        padded[:channels, :, :columns] = taps
        return np.moveaxis(padded[self.channels], -2, 0)

    def _per_channel(self, name: str, values: NDArray[Any]) -> Tensor:
        spread = pad_channels(np.broadcast_to(values, (self.op.channels,)), self.op.output.storage.pitch)
        sizes = self.channels.shape
        return self.kernel.read(self._constant(name, spread[self.channels]), View(sizes, row_major(sizes)))

    def _constant(self, name: str, values: NDArray[Any], *, is_weight: bool = False) -> Buffer:
        in_pairs = is_weight and _sums_pairs(self.kernel.program.strategy)
        name, values = f"{name}_{self.block.start}", np.ascontiguousarray(values)
        return self.kernel.data(name, values, is_weight=is_weight, in_pairs=in_pairs)


def _sums_pairs(strategy: Strategy) -> bool:
    return Layout.PAIRS in strategy.others


def _k_groups(op: Contraction, strategy: Strategy) -> list[KGroups]:
    """The weights less their zero points."""
    return k_groups_of(_known(op).exact, in_pairs=_sums_pairs(strategy))


def _known(op: Contraction) -> ConstantWeights:
    assert isinstance(op.weights, ConstantWeights), "interleaved weights are known"
    return op.weights


def _is_slower(op: Contraction, strategy: Strategy) -> bool:
    """Whether products in pairs, or of words, take more instructions than one tap after the other.

    In pairs, each K group is four unpacks for each of two stages and four times a product of bytes, one of words and an
    addition; each tap is four times an extension, a product and an addition.  By words without extending instructions,
    each K group is those unpacks, and four times two instructions that make words of the data, three that make words of
    the weights, two products and two additions; each tap is six unpacks of the data and four times two of the weights,
    a product and an addition.
    """
    height, width = op.window
    if not strategy.multiplies_words:
        return False
    k_group, tap = (8 + 12, 12) if _sums_pairs(strategy) else (8 + 36, 6 + 16)
    return sum(one.taps.shape[1] for one in _k_groups(op, strategy)) * k_group > height * width * tap


# The weights of a depthwise kernel as K groups of four taps, in as few products as hold them.
#
# Weights less their zero points need nine bits; what is more than a signed byte holds is multiplied once more.  Where
# products are summed in pairs, every pair keeps the bound of `qdialect.lowering.cost.register_tiles`, which three large
# weights of a row break.  Three columns leave a byte of each K group free: the middle tap stands in both pairs, each
# with a part of its weight.  What neither pair holds of it, of all three rows, is one K group more that walks down the
# middle column.

_SHARED = (2, 2)
"""Two loops that both go on by one tap walk three taps, the middle one twice."""
_LARGEST_BYTE = 127


@dataclass(frozen=True)
class KGroups:
    """Up to four taps of some rows of the kernel, as one product."""

    row: int
    column: int
    steps: tuple[int, ...]
    """Extents of the loops over the taps, each of which goes on by one tap."""
    taps: NDArray[np.int8]
    """[channels, rows, taps]."""
    is_vertical: bool = False
    """Whether the taps follow each other down a column."""


def k_groups_of(weights: NDArray[np.int32], *, in_pairs: bool) -> list[KGroups]:
    """K groups that add up to `weights`, [channels, height, width]; `in_pairs` states how their products are summed."""
    if in_pairs:
        return list(_pairs(weights))
    whole, *remainder = signed_parts(weights)
    if weights.shape[2] == contraction.K_GROUP - 1 and len(remainder) == 1 and not remainder[0][:, :, ::2].any():
        both = np.stack([whole[:, :, 0], whole[:, :, 1], remainder[0][:, :, 1], whole[:, :, 2]], axis=2)
        return [KGroups(0, 0, _SHARED, both)]
    return list(_by_rows([whole, *remainder]))


def _pairs(weights: NDArray[np.int32]) -> Iterator[KGroups]:
    """K groups of which every pair keeps the bound."""
    _, height, width = weights.shape
    if width != contraction.K_GROUP - 1:
        yield from _by_rows(parts_that_fit(weights.astype(np.int16)), in_pairs=True)
        return
    taps, spare = _middle_twice(weights)
    if height != contraction.K_GROUP - 1:
        taps[:, :, 1] += spare
        spare = np.zeros_like(spare)
    yield from _by_rows(parts_that_fit(taps.astype(np.int16)), is_shared=True)
    if spare.any():
        down, beyond = _middle_twice(spare[:, None])
        down[:, :, 1] += beyond
        yield from (KGroups(0, 1, _SHARED, part, True) for part in parts_that_fit(down.astype(np.int16)))


def _by_rows(parts: list[NDArray[np.int8]], *, is_shared: bool = False, in_pairs: bool = False) -> Iterator[KGroups]:
    """The first part as it is, and of the others the rows that are not zero, or all where a row is one tap."""
    whole, *remainder = parts
    _, height, width = whole.shape
    step = height if width == 1 else 1
    rows = [(whole, 0, height), *((rest, row, row + step) for rest, row in product(remainder, range(0, height, step)))]
    for part, row, end in rows:
        for column, last in pairwise(_columns(width, is_single=end - row == 1 and not in_pairs)):
            taps = part[:, row:end, column:last]
            if part is whole or taps.any():
                yield KGroups(row, column, _SHARED if is_shared else taps.shape[2:], taps)


def _columns(width: int, *, is_single: bool) -> list[int]:
    """Where the K groups of some rows begin, and their end.

    One tap of a single row is no product that is summed: the last two K groups share their five.
    """
    starts = list(range(0, width, contraction.K_GROUP))
    if is_single and width % contraction.K_GROUP == 1 and width > 1:
        starts[-1] -= 1
    return [*starts, width]


def _middle_twice(taps: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Three taps [..., 3] as the pairs (first, middle) and (middle, last), [..., 4], and what neither pair holds."""
    first, middle, last = np.moveaxis(taps, -1, 0)
    own = _within_bound(middle, first)
    other = _within_bound(middle - own, last)
    return np.stack([first, own, other, last], axis=-1), middle - own - other


def _within_bound(tap: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
    """As much of `tap` as keeps the bound with `other`, the other tap of its pair."""
    high = (LARGEST_PAIR - other.clip(min=0)).clip(0, _LARGEST_BYTE)
    low = (-LARGEST_PAIR - other.clip(max=0)).clip(max=0)
    return tap.clip(low, high)
