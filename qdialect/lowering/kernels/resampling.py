"""Resampled images: loops over tables of input rows and columns, vectors along the channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.memory.storage import Storage
from qdialect.lowering.memory.views import Axis, View, collapse
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.text.kernel_text import Buffer, Loops, Operand, Tag
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.strategy import split

Weight = tuple[Value, Value]
"""A row's and a column's weight."""

Emit = Callable[[Body, Sequence[Value], Sequence[Weight]], Value]
"""(body, the input's pixels at every row and column, their weights) -> the result's pixel."""


@dataclass(frozen=True)
class AxisTap:
    """For each row or column of the result, one of the input, and its weight."""

    indices: NDArray[np.int64]
    weights: NDArray[Any] | None = None


@dataclass(frozen=True)
class _Entry:
    """A tap in one iteration of a loop: where it starts, and its weight."""

    start: Value
    weight: Value | None


def emit_resampling(
    kernel: Kernel,
    data: BufferSlot,
    output: BufferSlot,
    rows: Sequence[AxisTap],
    columns: Sequence[AxisTap],
    emit: Emit,
    width: int,
) -> None:
    """Write ``emit(...)`` to every pixel of `output`; it gets the input's pixels at every row and column there."""
    source, target = kernel.slot("source", data), kernel.slot("target", output)
    before, after = data.storage, output.storage
    row_tables = _tables(kernel, "row", rows, before.strides[1], before.origin)
    column_tables = _tables(kernel, "column", columns, before.strides[2], 0)
    _, height, columns_out, _ = after.shape
    with kernel.loop(height) as y:
        in_rows = [_at(kernel, table, y) for table in row_tables]
        row_start = kernel.sum(kernel.multiple(y, after.strides[1]), kernel.constant(after.origin, "index"))
        with kernel.loop(columns_out) as x:
            in_columns = [_at(kernel, table, x) for table in column_tables]
            pairs = [(row, column) for row in in_rows for column in in_columns]
            starts = [kernel.sum(row.start, column.start) for row, column in pairs]
            weights = [(row.weight, column.weight) for row, column in pairs if row.weight and column.weight]
            start = kernel.sum(row_start, kernel.multiple(x, after.strides[2]))
            pixel = _Pixel(kernel, source, target, starts, start)
            pixel.emit(before, after, lambda body, values: emit(body, values, weights), width)


def _tables(
    kernel: Kernel, name: str, taps: Sequence[AxisTap], stride: int, origin: int
) -> list[tuple[Buffer, Buffer | None]]:
    tables: list[tuple[Buffer, Buffer | None]] = []
    for i, tap in enumerate(taps):
        indices = kernel.data(f"{name}s{i}", tap.indices * stride + origin)
        tables.append((indices, None if tap.weights is None else kernel.data(f"{name}_weights{i}", tap.weights)))
    return tables


def _at(kernel: Kernel, table: tuple[Buffer, Buffer | None], index: Value) -> _Entry:
    indices, weights = table
    return _Entry(kernel.position(indices, index), None if weights is None else kernel.entry(weights, index))


@dataclass(frozen=True)
class _Pixel:
    """The channels of one pixel, in all images: where each input and the result starts."""

    kernel: Kernel
    source: Buffer
    target: Buffer
    starts: Sequence[Value]
    start: Value

    def emit(self, before: Storage, after: Storage, emit: Callable[[Body, Sequence[Value]], Value], width: int) -> None:
        """Micro-kernels over whole vectors of channels."""
        kernel, lanes = self.kernel, min(before.pitch, after.pitch)
        images = collapse([Axis(after.shape[0], (before.strides[0], after.strides[0]))])
        loops = (*(f"n{i}" for i in range(len(images))), "c")
        for first, extent, tile in split(lanes, min(width, lanes)):
            sizes = (*(axis.size for axis in images), extent)
            froms, tos = ((*(axis.strides[i] for axis in images), 1) for i in range(2))
            shift = kernel.constant(first, "index")
            inputs = [
                Operand(kernel.read(self.source, View(sizes, froms), kernel.sum(start, shift)), loops)
                for start in self.starts
            ]
            destination, where = kernel.write(self.target, View(sizes, tos), kernel.sum(self.start, shift))
            body = kernel.body(inputs)
            value = emit(body, body.inputs)
            tag = Tag(kernel.next_micro_kernel(), "root", (1,) * len(images) + (tile,))
            kernel.store(kernel.generic(Loops(loops), inputs, Operand(destination, loops), body, value, tag), where)
