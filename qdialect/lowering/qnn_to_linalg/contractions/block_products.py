"""Products of rows with weights in blocks, panel by panel of columns; weights are widened in registers.

A tile is a panel of columns of a few rows. Its sums stay in registers along all terms. Words of the panel are loaded
once for all rows; of each, f32 data multiply one term after another, and bytes the four terms of a dot product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.choices import SumOrder
from qdialect.arithmetic.float32.machine import ENTRIES
from qdialect.lowering.cost.strategy import ChannelBlock, rows_for, split
from qdialect.lowering.ir.views import Axis, View, collapse
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import BYTES, Numbers, PackedBlocks
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand
from qdialect.lowering.qnn_to_linalg.kernels.reduction import Finish, as_folded
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

_WIDE = 16
_ROWS, _NARROW_ROWS = 4, 2
"""Of a tile as wide as a panel; with vectors of less than 512 bits there are half as many registers."""
_MANY_ROWS, _NARROW_MANY_ROWS, _APART_ROWS = 12, 5, 6
"""Of a tile of two vectors; the last where sums of blocks take registers in addition to the totals."""
_FRACTION, _BIAS, _FIELDS = 23, 127, 3
"""Of f32 numbers; and fields of the fraction that words are shifted to, each with numbers of its own."""
_AHEAD = 8 << 10
"""Bytes from a word to the one that is prefetched: 16 rows of bytes took 0.7 of the time on Zen 5."""
COLUMNS = ("v", "l")
Rows = Sequence[Sequence[Value]]
"""Where each operand of each row of a tile begins."""


@dataclass(frozen=True)
class StoredPanels:
    """Panels of `count` matrices, those of all matrices for each block of panels, and a bound of rows by column."""

    words: BufferSlot
    bounds: BufferSlot
    count: int
    steps: tuple[int, ...]
    """Matrices from one row to the next, along each dimension of the rows."""


@dataclass(frozen=True)
class BlockProducts:
    """``output[row, c] = finish(sum over k of data[row, k] * weights[c, k])``; see `qnn.block_dense`."""

    weights: PackedBlocks
    rows: tuple[int, ...]
    """Extents of the dimensions before the last."""
    operands: tuple[MapOperand, ...]
    """Data and output, then what else a row has; each with a stride for each of `rows`."""
    channels: Sequence[NDArray[np.float32]]
    """The numbers that `finish` reads, by channel."""
    finish: Finish
    is_rounded: bool = False
    """Whether a product of f32 numbers is rounded before it is added."""
    active: MapOperand | None = None
    """i32 that are 0 where a row has zeros alone: tiles of such rows have sums of zero."""
    picks: MapOperand | None = None
    """Of each row the index of its matrix, where the words are those of `matrices`, one after the other."""
    matrices: int = 1
    stored: StoredPanels | None = None
    """Where words are packed when the network runs."""
    segments: int = 1
    """Equal parts of the terms, such as rows of a window: terms of one lie side by side."""
    segment_steps: tuple[int, ...] = ()
    """From one part to the next, in each of `operands`."""

    @property
    def moving(self) -> tuple[MapOperand, ...]:
        """The operands with an element, or a row of elements, for each row."""
        return (*self.operands, *(one for one in (self.active, self.picks) if one))


@dataclass(frozen=True)
class Panel:
    """Where the words, the numbers by block and the channels of a panel begin."""

    block: ChannelBlock
    width: int
    """Columns of the panel, of which `block` may have fewer vectors."""
    words: Value
    numbers: Value
    channel: Value

    @property
    def sizes(self) -> tuple[int, int]:
        """Vectors, and columns of each."""
        return self.block.vectors, self.block.lanes


class BlockKernel(ABC):
    """Writes the kernel of such products; how a block is summed up is left open."""

    least_rows = _MANY_ROWS
    """Of a block of rows that meets all panels."""
    is_apart: bool
    """Whether each block has sums of its own, which are added to the totals."""

    def __init__(self, kernel: Kernel, op: BlockProducts) -> None:
        self.kernel, self.op, self.weights = kernel, op, op.weights
        self.strategy = kernel.program.strategy
        if op.stored:
            self._packed = self._words = kernel.slot("weights", op.stored.words)
            nbytes = op.stored.words.storage.bytes() // op.stored.count
        else:
            self._packed = kernel.data("weights", op.weights.words.view(np.uint8), is_weight=True)
            self._words = kernel.as_numbers(self._packed, "i32", op.weights.words.size)
            nbytes = op.weights.words.nbytes
        self._scales = kernel.data("scales", op.weights.scales.values, is_weight=True)
        points = op.weights.points
        self._points = kernel.data("points", points.values, is_weight=True) if isinstance(points, Numbers) else None
        self._is_fetched = nbytes > self.strategy.near_bytes
        lanes = sum(block.channels for block in op.weights.panels)
        self._channels = [
            kernel.data(f"channels{i}", np.pad(values, (0, lanes - len(values))))
            for i, values in enumerate(op.channels)
        ]
        self.buffers = [_declared(kernel, f"operand{i}", operand) for i, operand in enumerate(op.operands)]
        self.active = None if op.active is None else _declared(kernel, "active", op.active)
        self._picks = None if op.picks is None else _declared(kernel, "picks", op.picks)

    def emit(self) -> None:
        """Emit all tiles: of each panel, one for some rows after the other."""
        moving, stored = self.op.moving, self.op.stored
        matrices = stored.steps if stored else (0,) * len(self.op.rows)
        steps = [(*(one.strides[i] for one in moving), matrices[i]) for i in range(len(self.op.rows))]
        axes = collapse([Axis(size, step) for size, step in zip(self.op.rows, steps, strict=True)])
        starts = [self.kernel.constant(operand.offset, "index") for operand in moving]
        self._matrices(axes or [Axis(1, (0,) * (len(moving) + 1))], starts, 0)

    def _matrices(self, axes: Sequence[Axis], starts: Sequence[Value], matrix: Value | int) -> None:
        """Emit the tiles of each matrix, whose number is the last stride of `axes`."""
        if any(axis.strides[-1] for axis in axes):
            (axis, *inner), (*steps, step) = axes, axes[0].strides
            with self.kernel.loop(axis.size) as index:
                moved = [self.further(start, index, own) for start, own in zip(starts, steps, strict=True)]
                self._matrices(inner, moved, self.further(matrix, index, step))
            return
        *outer, last = [Axis(axis.size, axis.strides[:-1]) for axis in axes]
        for first, extent, rows in split(last.size, self.near_rows(last.size)):
            with self.kernel.loop(extent // rows) as index:
                moved = [
                    self.further(self.further(start, first * step), index, rows * step)
                    for start, step in zip(starts, last.strides, strict=True)
                ]
                self._panels([*outer, Axis(rows, last.strides)], moved, matrix)

    def _panels(self, axes: Sequence[Axis], starts: Sequence[Value], matrix: Value | int) -> None:
        start, count = 0, self.op.stored.count if self.op.stored else 1
        for block in self.weights.panels:
            words, numbers = (
                self.further(start * length, matrix, block.channels * length) if matrix else start * length
                for length in (self.weights.depth_words, self.weights.blocks.count)
            )
            width, vectors = block.vectors * block.lanes, self._vectors(block, axes[-1].size)
            with self.kernel.loop(block.tiles) as index, self.kernel.loop(block.vectors // vectors) as part:
                lane = self.further(0, part, vectors * block.lanes)
                panel = Panel(
                    replace(block, vectors=vectors),
                    width,
                    self.further(self.further(words, index, width * self.weights.depth_words), lane),
                    self.further(self.further(numbers, index, width * self.weights.blocks.count), lane),
                    self.further(self.further(block.start, index, width), lane),
                )
                self.over(axes, starts, panel)
            start += count * block.channels

    def near_rows(self, rows: int) -> int:
        """Of a block, which stay near while all panels pass."""
        most = self._most_rows(rows)
        near = max(self.least_rows, self.strategy.near_bytes // (self.row_bytes * most) * most)
        even = -(-rows // -(-rows // near))
        return min(rows, -(-even // most) * most)

    def _most_rows(self, rows: int) -> int:
        """Of a tile; where there are many, each is narrow, so that weights are widened for as many as can be."""
        if not self.strategy.forms.multiply_adds or self._picks:
            return 1
        many = _APART_ROWS if self.is_apart else _MANY_ROWS
        few, many = (_ROWS, many) if self.strategy.lanes == _WIDE else (_NARROW_ROWS, _NARROW_MANY_ROWS)
        return few if rows <= few else many

    def _vectors(self, block: ChannelBlock, rows: int) -> int:
        """Of a tile of the columns of a panel."""
        few = _ROWS if self.strategy.lanes == _WIDE else _NARROW_ROWS
        return block.vectors if rows <= few else 2 - block.vectors % 2

    def over(self, axes: Sequence[Axis], starts: Sequence[Value], panel: Panel) -> None:
        """Emit the tiles of all rows along `axes`."""
        axis, *inner = axes
        if inner:
            with self.kernel.loop(axis.size) as index:
                moved = [self.further(start, index, step) for start, step in zip(starts, axis.strides, strict=True)]
                self.over(inner, moved, panel)
            return
        for first, extent, rows in split(axis.size, rows_for(axis.size, self._most_rows(axis.size))):
            with self.kernel.loop(extent // rows) as index:
                pairs = list(zip(starts, axis.strides, strict=True))
                moved = [self.further(start, index, rows * step) for start, step in pairs]
                tile = [
                    [self.further(start, (first + row) * step) for start, (_, step) in zip(moved, pairs, strict=True)]
                    for row in range(rows)
                ]
                self._tile(panel, tile)

    def _tile(self, panel: Panel, rows: Rows) -> None:
        kernel = self.kernel
        if self._picks:
            count, ((*_, pick),) = self.op.matrices, rows
            matrix, length = kernel.row(self._picks, pick, count), self.weights.words.size // count
            panel = replace(panel, words=self.further(panel.words, matrix, length))
        targets = [kernel.write(self.buffers[1], columns_of(panel), kernel.sum(row[1], panel.channel)) for row in rows]
        # Sums stay in registers, but what is stored must have been its destination all along.
        totals: Sequence[Tensor] = [kernel.fill(target, 0) for target, _ in targets]
        if self.active is None:
            totals = self._summed(panel, rows, totals)
        else:
            bits = reduce(partial(kernel.binary, "arith.ori"), [kernel.entry(self.active, row[-1]) for row in rows])
            with kernel.walk(self.is_set(bits), *totals) as walk:
                walk.values = list(self._summed(panel, rows, walk.values))
            totals = walk.values
        for total, (_, where) in zip(totals, targets, strict=True):
            kernel.store(self._finished(panel, total), where)

    def _summed(self, panel: Panel, rows: Rows, totals: Sequence[Tensor]) -> Sequence[Tensor]:
        for first, count, length in self.weights.blocks.parts():
            with self.kernel.walk(count, *totals) as walk:
                walk.values = self.block(panel, rows, self.further(first, walk.index), length, walk.values)
            totals = walk.values
        return totals

    def is_set(self, bits: Value) -> Value:
        """1 if one of these bits is set, else 0."""
        kernel = self.kernel
        one, zero = (kernel.constant(number, "index") for number in (1, 0))
        return kernel.select(kernel.compare("ne", bits, kernel.constant(0, "i32")), one, zero)

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """Of the data."""

    @abstractmethod
    def block(self, panel: Panel, rows: Rows, index: Value, length: int, totals: Sequence[Tensor]) -> list[Tensor]:
        """`totals` with the sums of the block `index`, which has `length` terms."""

    def scaled(self, panel: Panel, total: Tensor) -> Tensor:
        """The sum of a row."""
        return total

    def _finished(self, panel: Panel, total: Tensor) -> Tensor:
        total = self.scaled(panel, total)
        if self.op.finish is as_folded:
            return total
        return self.added(panel, total, self.extras(panel), lambda body: self.op.finish(body, body.output, body.inputs))

    # Shared by the kinds of sums.

    def fetch(self, panel: Panel, start: Value) -> None:
        """Prefetch words far behind those from `start` on, in a stream that comes from beyond the second level."""
        for vector in range(panel.block.vectors if self._is_fetched else 0):
            further = _AHEAD // BYTES + vector * panel.block.lanes
            self.kernel.prefetch(self._words, self.further(start, further))

    def extras(self, panel: Panel) -> list[Operand]:
        """The operands of `finish`."""
        return [self.columns(panel, buffer, panel.channel) for buffer in self._channels]

    def map(self, panel: Panel, element: str, inputs: Sequence[Operand], emit: Callable[[Body], Value]) -> Tensor:
        """A number of a panel's columns each."""
        output = Operand(self.kernel.empty(panel.sizes, element), COLUMNS)
        body = self.kernel.body(inputs)
        return self.kernel.generic(Loops(COLUMNS), inputs, output, body, emit(body))

    def added(
        self, panel: Panel, total: Tensor, inputs: Sequence[Tensor | Operand], emit: Callable[[Body], Value]
    ) -> Tensor:
        """`total` with what `emit` adds to it."""
        operands = [Operand(one, COLUMNS) if isinstance(one, Tensor) else one for one in inputs]
        output = Operand(total, COLUMNS)
        body = self.kernel.body(operands, output)
        return self.kernel.generic(Loops(COLUMNS), operands, output, body, emit(body))

    def word(self, panel: Panel, start: Value) -> Operand:
        """Words of all columns."""
        return self.columns(panel, self._words, start)

    def columns(self, panel: Panel, buffer: Buffer, start: Value) -> Operand:
        """An element of each column."""
        return Operand(self.kernel.read(buffer, columns_of(panel), start), COLUMNS)

    def by_block(self, panel: Panel, index: Value, buffer: Buffer) -> Operand:
        """Stored numbers of a block."""
        return self.columns(panel, buffer, self.further(panel.numbers, index, panel.width))

    def number(self, operand: int, start: Value) -> Operand:
        """One element for all columns."""
        return Operand(self.kernel.read(self.buffers[operand], View((), ()), start), ())

    def scales(self, panel: Panel, index: Value) -> Tensor:
        """The scales of a block."""
        stored = self.by_block(panel, index, self._scales)
        return self.map(
            panel, "f32", [stored], lambda body: self.weights.scales.widened(body, body.inputs[0], self.strategy)
        )

    def points(self, panel: Panel, index: Value) -> Operand | None:
        """The stored zero points of a block; None if they are one number."""
        return self.by_block(panel, index, self._points) if self._points else None

    def further(self, start: Value | int, index: Value | int, factor: int = 1) -> Value:
        """``start + index * factor``."""
        kernel = self.kernel
        if isinstance(index, int):
            index, factor = kernel.constant(index * factor, "index"), 1
        moved = index if factor == 1 else kernel.multiple(index, factor)
        if start == 0:
            return moved
        return kernel.sum(kernel.constant(start, "index") if isinstance(start, int) else start, moved)


def _declared(kernel: Kernel, name: str, operand: MapOperand) -> Buffer:
    assert isinstance(operand.source, BufferSlot), "operands of rows are stored"
    return kernel.slot(name, operand.source)


def columns_of(panel: Panel) -> View:
    """The columns of a tile, side by side."""
    return View(panel.sizes, (panel.block.lanes, 1))


@dataclass(frozen=True)
class Field:
    """How a term of a word becomes an f32 number: the word is shifted, to the left where `shift` is positive.

    Then its bits are those of a fraction from bit `lowest` on, and a constant exponent makes the number; or it is
    converted.
    """

    shift: int
    lowest: int | None


class F32Products(BlockKernel):
    """Products with f32 data, one term after the other."""

    def __init__(self, kernel: Kernel, op: BlockProducts, order: SumOrder) -> None:
        super().__init__(kernel, op)
        self._order, self.is_apart = order, order is SumOrder.BLOCKS
        self._has_fma = self.strategy.forms.multiply_adds
        self._is_scaled = order is SumOrder.TERMS and not op.weights.form
        places = [op.weights.places(term) for term in range(op.weights.terms)]
        # Where an addition of a product takes dozens of instructions, they are written once.
        self._places = None if self._has_fma else kernel.data("places", np.array(places, np.int32))
        is_planned = self._has_fma and not op.weights.form
        self._fields = self._planned(places) if is_planned else dict.fromkeys(places, Field(0, None))
        self._lowest = list(dict.fromkeys(field.lowest for field in self._fields.values()))
        self._table = self._differences() if is_planned else None
        if self._table is not None:
            self._lowest = []

    @property
    def row_bytes(self) -> int:
        return BYTES * self.weights.blocks.depth

    def block(self, panel: Panel, rows: Rows, index: Value, length: int, totals: Sequence[Tensor]) -> list[Tensor]:
        kernel, weights = self.kernel, self.weights
        terms = weights.terms
        numbers = self.numbers(panel, index)
        sums = [kernel.filled(panel.sizes, "f32", 0) for _ in rows] if self.is_apart else list(totals)
        words = self.further(panel.words, index, weights.blocks.size // terms * panel.width)
        data = [self.further(row[0], index, weights.blocks.size) for row in rows]
        whole, rest = divmod(length, terms)
        if whole:
            with kernel.walk(whole, *sums) as walk:
                at = [self.further(start, walk.index, terms) for start in data]
                word = self.further(words, walk.index, panel.width)
                self.fetch(panel, word)
                walk.values = self._terms(panel, word, at, terms, numbers, walk.values)
            sums = walk.values
        if rest:
            word, at = self.further(words, whole * panel.width), [self.further(start, whole * terms) for start in data]
            sums = self._terms(panel, word, at, rest, numbers, sums)
        if not self.is_apart:
            return sums
        scales = self.scales(panel, index)
        pairs = zip(totals, sums, strict=True)
        return [self.added(panel, total, [own, scales], self.add_product) for total, own in pairs]

    def scaled(self, panel: Panel, total: Tensor) -> Tensor:
        if self._order is not SumOrder.SCALE_LAST:
            return total
        scales = self.scales(panel, self.kernel.constant(0, "index"))
        return self.added(panel, total, [scales], lambda body: body.multiply(body.output, body.inputs[0]))

    def _planned(self, places: Sequence[int]) -> dict[int, Field]:
        """How each place of a word becomes an f32 number, with as few shifts as possible."""
        weights = self.weights
        allowed = [low for low in places if 0 < low <= _FRACTION - weights.bits and weights.is_integer]
        allowed = ([low for low in allowed if self._is_fused(low)] or allowed)[-_FIELDS:]
        left, found = set(places), dict[int, Field]()
        while left and allowed:
            shifts = sorted({low - place for low in allowed for place in left}, key=lambda shift: (abs(shift), shift))
            best = max(shifts, key=lambda shift: sum(place + shift in allowed for place in left))
            own = {place for place in left if place + best in allowed}
            found |= {place: Field(best, place + best) for place in sorted(own)}
            left -= own
        return {place: found.get(place, Field(-place, None)) for place in places}

    def _differences(self) -> NDArray[np.float32] | None:
        """Each number less the zero point, by the low four bits of a word; None where other forms take fewer steps.

        A permute of 16 numbers ignores the bits above, and takes the place of a mask and a difference.
        """
        points, bits = self.weights.points, self.weights.bits
        is_fused = any(self._is_fused(field.lowest) for field in self._fields.values())
        if isinstance(points, Numbers) or self.strategy.lanes != ENTRIES or 1 << bits > ENTRIES or is_fused:
            return None
        return (np.arange(ENTRIES) % (1 << bits)).astype(np.float32) - np.float32(points)

    def numbers(self, panel: Panel, index: Value) -> list[Operand]:
        """Operands of the weights other than their words: scales, then the number to subtract in each kind of field."""
        if self.weights.form:
            return []
        points = self.points(panel, index)
        scales = [Operand(self.scales(panel, index), COLUMNS)] if self._is_scaled else []
        given = [*scales, *([points] if points else [])]
        return [
            *scales,
            *(
                Operand(self.map(panel, "f32", given, lambda body, lowest=lowest: self._taken(body, lowest)), COLUMNS)
                for lowest in self._lowest
            ),
        ]

    def _taken(self, body: Body, lowest: int | None) -> Value:
        """A zero point and what the field has more; times the scale, negated, where a multiply-add takes it off."""
        points, stored, is_fused = self.weights.points, body.inputs[self._is_scaled :], self._is_fused(lowest)
        if isinstance(points, Numbers):
            base = body.constant(_base(lowest), "f32")
            taken = points.widened(body, stored[0], self.strategy)
            taken = body.add(taken, base) if lowest is not None else taken
            taken = body.unary("arith.negf", taken) if is_fused else taken
        else:
            taken = body.constant((-1 if is_fused else 1) * (points + _base(lowest)), "f32")
        return body.multiply(taken, body.inputs[0]) if is_fused else taken

    def _is_fused(self, lowest: int | None) -> bool:
        """Whether one multiply-add scales a number and takes off its zero point, without another rounding."""
        return self._has_fma and self._is_scaled and self.weights.is_exact(int(_base(lowest)))

    def _terms(
        self,
        panel: Panel,
        word: Value,
        data: Sequence[Value],
        count: int,
        numbers: Sequence[Operand],
        sums: Sequence[Tensor],
    ) -> list[Tensor]:
        """`sums` with the products of the first `count` terms of the words."""
        words, kernel = self.word(panel, word), self.kernel
        if self._places is None:
            for term in range(count):
                places = self.weights.places(term)
                at = [self.further(start, term) for start in data]
                sums = self._added(panel, [words, *numbers], at, sums, lambda body, places=places: places)
            return list(sums)
        with kernel.walk(count, *sums) as walk:
            at = [self.further(start, walk.index) for start in data]
            places = Operand(kernel.read(self._places, View((), ()), walk.index), ())
            walk.values = self._added(panel, [words, *numbers, places], at, walk.values, lambda body: body.inputs[-1])
        return walk.values

    def _added(
        self,
        panel: Panel,
        given: Sequence[Operand],
        data: Sequence[Value],
        sums: Sequence[Tensor],
        places: Callable[[Body], Value | int],
    ) -> list[Tensor]:
        """`sums` with the products of one term."""
        weights = self.map(panel, "f32", given, lambda body: self.weight(body, places(body)))
        return [
            self.added(panel, total, [self.number(0, start), weights], self.add_product)
            for total, start in zip(sums, data, strict=True)
        ]

    def add_product(self, body: Body) -> Value:
        """The output plus the product of both inputs."""
        left, right = body.inputs
        if self.op.is_rounded:
            return body.add(body.output, body.multiply(left, right))
        return body.multiply_add(left, right, body.output)

    def weight(self, body: Body, places: Value | int) -> Value:
        """A weight of a word: less its zero point, and times its scale unless the sum of the block is."""
        if self.weights.form:
            return self.weights.number(body, places, self.strategy)
        field = self._fields[places] if isinstance(places, int) else Field(0, None)
        if self._table is not None and isinstance(places, int):
            shifted = body.binary("arith.shrui", body.inputs[0], body.constant(places, "i32"))
            low = body.binary("arith.andi", shifted, body.constant(ENTRIES - 1, "i32"))
            value = body.extract(body.table(self._table), body.cast("arith.index_cast", low, "index"))
            return body.multiply(value, body.inputs[1]) if self._is_scaled else value
        word, taken = body.inputs[0], body.inputs[1 + self._is_scaled + self._lowest.index(field.lowest)]
        mask = (1 << self.weights.bits) - 1
        if isinstance(places, Value):
            word = body.binary("arith.shrui", word, places)
        elif field.shift:
            shift = "arith.shli" if field.shift > 0 else "arith.shrui"
            word = body.binary(shift, word, body.constant(abs(field.shift), "i32"))
        if field.lowest is None:
            value = body.cast("arith.sitofp", body.binary("arith.andi", word, body.constant(mask, "i32")), "f32")
        else:
            own = body.binary("arith.andi", word, body.constant(mask << field.lowest, "i32"))
            exponent = _BIAS + _FRACTION - field.lowest << _FRACTION
            value = body.cast("arith.bitcast", body.binary("arith.ori", own, body.constant(exponent, "i32")), "f32")
        if self._is_fused(field.lowest):
            return body.multiply_add(value, body.inputs[1], taken)
        value = body.subtract(value, taken)
        return body.multiply(value, body.inputs[1]) if self._is_scaled else value


def _base(lowest: int | None) -> int:
    """The difference between a number with a field in its fraction, from the bit `lowest` on, and the field."""
    return 0 if lowest is None else 1 << (_FRACTION - lowest)
