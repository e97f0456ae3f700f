"""Resized images: by tables of input rows and columns, and by bilinear interpolation in integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import rows_for, split
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value

# Resampled images: loops over tables of input rows and columns, vectors along the channels.

Weight = tuple[Value, Value]
"""A row's and a column's weight."""

EmitPixel = Callable[[Body, Sequence[Value], Sequence[Weight]], Value]
"""(body, the input's pixels at every row and column, their weights) -> the result's pixel."""


AxisTap = tuple[NDArray[np.int64], NDArray[Any]]
"""For each row or column of the result, one of the input, and its weight."""


def emit_resampling(
    kernel: Kernel,
    data: BufferSlot,
    output: BufferSlot,
    rows: Sequence[AxisTap],
    columns: Sequence[AxisTap],
    emit: EmitPixel,
    width: int,
) -> None:
    """Write ``emit(...)`` to every pixel of `output`; it gets the input's pixels at every row and column there."""
    source, target = kernel.slot("source", data), kernel.slot("target", output)
    before, after = data.storage, output.storage
    row_tables = _tables(kernel, "row", rows, before.strides[1], before.origin)
    column_tables = _tables(kernel, "column", columns, before.strides[2], 0)
    images, height, columns_out, _ = after.shape
    with kernel.loop(height) as y:
        in_rows = [(kernel.position(places, y), kernel.entry(weights, y)) for places, weights in row_tables]
        row_start = kernel.sum(kernel.multiple(y, after.strides[1]), kernel.constant(after.origin, "index"))
        with kernel.loop(columns_out) as x:
            in_columns = [(kernel.position(places, x), kernel.entry(weights, x)) for places, weights in column_tables]
            pairs = list(product(in_rows, in_columns))
            starts = [kernel.sum(row, column) for (row, _), (column, _) in pairs]
            pixels = [MapOperand(source, (before.strides[0], 1), 0, start) for start in starts]
            start = kernel.sum(row_start, kernel.multiple(x, after.strides[2]))
            weights = [(row, column) for (_, row), (_, column) in pairs]
            emit_map(
                kernel,
                (images, min(before.pitch, after.pitch)),
                pixels,
                MapOperand(target, (after.strides[0], 1), 0, start),
                lambda body, values, weights=weights: emit(body, values, weights),
                width,
            )


def _tables(
    kernel: Kernel, name: str, taps: Sequence[AxisTap], stride: int, origin: int
) -> list[tuple[Buffer, Buffer]]:
    return [
        (kernel.data(f"{name}s{i}", indices * stride + origin), kernel.data(f"{name}_weights{i}", weights))
        for i, (indices, weights) in enumerate(taps)
    ]


# Bilinear interpolation in integers: a row of the result is a blend of two rows, then of neighbouring columns of it.
#
# With weights 1 - r and r of the rows, 1 - c and c of the columns, in whole parts of a power of two,
#
#   sum of four pixels times the product of their weights = (1 - c) V[low] + c V[high],  V = (1 - r) upper + r lower
#
# exactly, so that the blend of the rows is made once for all columns.  Powers of two that all weights of a dimension
# have in common are left out of them: what is left often fits 16 bits.


@dataclass(frozen=True)
class Rounding:
    """From a blend of stored quantized values, with some fraction bits, to a stored value."""

    bias: Callable[[int], int]
    """By the number of fraction bits: the rounding term of the blend."""
    emit: Callable[[Body, Value, int], Value]
    """(body, biased blend, fraction bits) -> stored value of the same type."""


_MAX_REPEATS, _MAX_PIXELS = 4, 8
# With this number of fraction bits, blends of quantized values plus their rounding term are below 2^16: 255 * 2^8 +
# 2^7.
_NARROW_BITS = 8


@dataclass(frozen=True)
class Blends:
    """For each pixel along a dimension of the result: ``(2^bits - part) * x[low] + part * x[low + 1]``."""

    low: NDArray[np.int64]
    part: NDArray[np.int64]
    bits: int

    @classmethod
    def of(cls, low: NDArray[np.int64], high: NDArray[np.int64], part: NDArray[np.integer], bits: int) -> Blends:
        """Of parts of 2^bits, without the powers of two that they have in common."""
        parts = np.where(low == high, 0, part).astype(np.int64)
        common = int(np.bitwise_or.reduce(parts)) | 1 << bits
        spare = (common & -common).bit_length() - 1
        return cls(low, parts >> spare, bits - spare)


@dataclass(frozen=True)
class Bilinear:
    """From what and how; `rows` and `columns` are those of the result."""

    data: BufferSlot
    rows: Blends
    columns: Blends
    rounding: Rounding

    @property
    def bits(self) -> int:
        """Fraction bits of a blend along both dimensions."""
        return self.rows.bits + self.columns.bits

    @property
    def element(self) -> str:
        """Type of the numbers that are computed with."""
        return "i16" if self.bits <= _NARROW_BITS else "i32"

    @property
    def width(self) -> int:
        """How many of them are a vector."""
        return 32 if self.element == "i16" else 16

    def numbers(self, blends: Blends) -> NDArray[np.signedinteger]:
        """The parts of `blends` as such numbers."""
        return blends.part.astype(np.int16 if self.element == "i16" else np.int32)

    def weighted(self, body: Body, values: Sequence[Value], part: Value, bits: int, bias: int = 0) -> Value:
        """``(2^bits - part) * first + part * second + bias``, modulo the width of the type."""
        whole = body.binary("arith.shli", values[0], body.constant(bits, self.element))
        if bias:
            whole = body.add(whole, body.constant(bias, self.element))
        rise = body.subtract(values[1], values[0])
        return body.add(whole, body.multiply(rise, part))

    def quantized(self, body: Body, values: Sequence[Value], part: Value) -> Value:
        """The stored value between two pixels of a blend of rows."""
        bits = self.bits
        total = self.weighted(body, values, part, self.columns.bits, self.rounding.bias(bits))
        return body.cast("arith.trunci", self.rounding.emit(body, total, bits), "i8")


@dataclass(frozen=True)
class Pixels:
    """Some pixels of a row of the result, and the function that computes their quantized values."""

    row: Value
    """An index of the kernel."""
    column: int | Value
    """The first pixel; a single one is an index of the kernel."""
    shape: tuple[int, int, int]
    """Images, repetitions, and pixels of each."""
    step: int
    """Pixels from one repetition to the next."""
    tile: int
    """Pixels of a repetition at a time."""
    operands: Sequence[MapOperand]
    """With strides along these and the channels."""
    quantized: Emit

    def operand_in(self, kernel: Kernel, target: Buffer, origin: int, strides: tuple[int, int, int]) -> MapOperand:
        """These pixels in a result with these strides along images, rows and columns."""
        image, row, column = strides
        start = kernel.multiple(self.row, row)
        if not isinstance(self.column, int):
            start = kernel.sum(start, kernel.multiple(self.column, column))
        offset = self.column * column if isinstance(self.column, int) else 0
        return MapOperand(target, (image, self.step * column, column), origin + offset, start)


@dataclass(frozen=True)
class _Repeat:
    """`count` times the same parts side by side, the first at pixel `start`, each `step` further into the input."""

    start: int
    low: int
    parts: tuple[int, ...]
    step: int
    count: int


def emit_interpolation(kernel: Kernel, op: Bilinear, output: BufferSlot) -> None:
    """Write the quantized values of every pixel to `output`."""
    target, storage = kernel.slot("target", output), output.storage
    lanes = min(op.data.storage.pitch, storage.pitch)

    def write(pixels: Pixels) -> None:
        destination = pixels.operand_in(kernel, target, storage.origin, storage.strides[:3])
        destination = replace(destination, strides=(*destination.strides, 1))
        emit_map(kernel, (*pixels.shape, lanes), pixels.operands, destination, pixels.quantized, op.width, pixels.tile)

    emit_pixels(kernel, op, write)


def emit_pixels(kernel: Kernel, op: Bilinear, write: Callable[[Pixels], None]) -> None:
    """Emit the loop over the rows of the result; `write` emits what becomes of its pixels."""
    before = op.data.storage
    images, height, width, _ = before.shape
    # One column more: the last one's neighbour, which counts nothing.  And a vector: who reads may round channels up.
    columns = width + 1 + -(-op.width // before.pitch)
    storage = Storage((images, 1, columns, before.pitch), op.element, before.pitch)
    source, blend = kernel.slot("source", op.data), kernel.scratch("blend", storage)
    lower = np.minimum(op.rows.low + 1, height - 1)
    pixels = {"upper": op.rows.low, "lower": lower}
    tables = [kernel.data(name, rows * before.strides[1] + before.origin) for name, rows in pixels.items()]
    row_parts = kernel.data("row_parts", op.numbers(op.rows))
    pixels_of = _Columns(kernel, op, MapOperand(blend, (storage.strides[0], 0, 0, 1)))
    with kernel.loop(len(op.rows.low)) as row:
        starts, part = [kernel.position(table, row) for table in tables], kernel.entry(row_parts, row)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            quantized = [body.cast("arith.extui", value, op.element) for value in values]
            return op.weighted(body, quantized, part, op.rows.bits)

        rows = [MapOperand(source, (before.strides[0], 1), 0, start) for start in starts]
        target = MapOperand(blend, (storage.strides[0], 1))
        emit_map(kernel, (images, width * before.pitch), rows, target, emit, op.width)
        pixels_of.emit(row, write)


class _Columns:
    """The pixels of a row from a blend of rows, whose strides are those along images and channels."""

    def __init__(self, kernel: Kernel, op: Bilinear, blend: MapOperand) -> None:
        self._kernel, self._op, self._blend = kernel, op, blend
        self._parts = kernel.data("parts", op.numbers(op.columns))
        self._repeats = _repeats(op.columns)
        self._starts: Buffer | None = None
        if len(self._repeats) > _MAX_REPEATS:
            self._starts = kernel.data("columns", op.columns.low * op.data.storage.pitch)

    def emit(self, row: Value, write: Callable[[Pixels], None]) -> None:
        """Call `write` with all pixels of `row`."""
        if self._starts is None:
            for pixels in (pixels for repeat in self._repeats for pixels in self._of_repeat(row, repeat)):
                write(pixels)
            return
        kernel, op = self._kernel, self._op
        with kernel.loop(len(op.columns.low)) as column:
            low, part = kernel.position(self._starts, column), kernel.entry(self._parts, column)
            pair = [replace(self._blend, start=low, offset=more) for more in (0, op.data.storage.pitch)]
            shape = op.data.storage.shape[0], 1, 1
            write(Pixels(row, column, shape, 1, 1, pair, lambda body, values: op.quantized(body, values, part)))

    def _of_repeat(self, row: Value, repeat: _Repeat) -> Iterator[Pixels]:
        op, pitch, count = self._op, self._op.data.storage.pitch, len(repeat.parts)
        strides = (self._blend.strides[0], repeat.step * pitch, 0, 1)
        pair = [MapOperand(self._blend.source, strides, (repeat.low + more) * pitch) for more in (0, 1)]
        for first, size, tile in split(count, rows_for(count, _MAX_PIXELS)):
            parts = MapOperand(self._parts, (0, 0, 1, 0), repeat.start + first)
            shape = op.data.storage.shape[0], repeat.count, size
            yield Pixels(row, repeat.start + first, shape, count, tile, [*pair, parts], self._between)

    def _between(self, body: Body, values: Sequence[Value]) -> Value:
        """The value between two pixels of the blend; their part is the third value."""
        return self._op.quantized(body, values, values[2])


def _repeats(blends: Blends) -> list[_Repeat]:
    """Neighbouring pixels between the same two of the input, joined where the next ones have the same parts."""
    repeats: list[_Repeat] = []
    for start, end in pairwise([0, *(np.flatnonzero(np.diff(blends.low)) + 1).tolist(), len(blends.low)]):
        low, parts = int(blends.low[start]), tuple(blends.part[start:end].tolist())
        last = repeats[-1] if repeats else None
        if last and last.parts == parts and (last.count == 1 or low == last.low + last.step * last.count):
            repeats[-1] = _Repeat(last.start, last.low, parts, (low - last.low) // last.count, last.count + 1)
        else:
            repeats.append(_Repeat(start, low, parts, 0, 1))
    return repeats
