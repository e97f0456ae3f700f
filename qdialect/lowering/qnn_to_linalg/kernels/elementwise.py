"""Kernels that compute each element from the elements at the same index of other tensors: copies, tables, sums, ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import TILE_LANES, split
from qdialect.lowering.ir.views import Axis, View, collapse
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value, flipped

VECTOR = 64
"""Elements per vector along the innermost axis."""


@dataclass(frozen=True)
class MapOperand:
    """An operand of a map: a stored tensor or a constant array, and its stride along each logical dimension.

    A stride of 0 means that the operand is the same all along that dimension.
    """

    source: BufferSlot | NDArray[Any] | Buffer
    """A buffer is a parameter that the kernel has already."""
    strides: tuple[int, ...]
    offset: int = 0
    start: Value | None = None
    """An index of the kernel that is added to the offset."""


@dataclass(frozen=True)
class Declared:
    """An operand with its buffer parameter."""

    buffer: Buffer
    offset: int
    start: Value | None = None

    def where(self, kernel: Kernel, offset: int) -> tuple[int, Value | None]:
        """Offset and start of a view `offset` elements further on."""
        offset += self.offset
        if self.start is None or not offset:
            return offset, self.start
        return offset, kernel.sum(self.start, kernel.constant(offset, "index"))


def emit_map(
    kernel: Kernel,
    shape: Sequence[int],
    operands: Sequence[MapOperand],
    output: MapOperand,
    emit: Emit,
    width: int = VECTOR,
    rows: int = 1,
    step: int = 1,
    vectors: int = 1,
) -> None:
    """Emit loop nests that write ``emit(operands...)`` to every element of `shape`; the innermost stride must be 1.

    Operands may go on by up to `step` elements along the innermost axis.

    A tile is `width` elements of the innermost axis, fewer where the arithmetic is wider than the quantized values, and
    `rows` of the axis before it, which they must divide.  With several `vectors` as many of them as there are follow
    each other in a tile.
    """
    declared = [declare_operand(kernel, f"operand{i}", operand) for i, operand in enumerate(operands)]
    target = declare_operand(kernel, "output", output)
    everyone = [*operands, output]
    axes = collapse([Axis(size, tuple(o.strides[i] for o in everyone)) for i, size in enumerate(shape)])
    if not axes or axes[-1].strides[-1] != 1 or not set(axes[-1].strides) <= {*range(step + 1)}:
        axes.append(Axis(1, (1,) * len(everyone)))
    *outer, inner = axes
    done = _emit_vectors(kernel, outer, inner, declared, target, emit, (width, vectors)) if vectors > 1 else 0
    vector = TILE_LANES if target.buffer.element == "f32" else max(width, VECTOR)
    for start, extent, tile in _stretches(inner.size - done, width, vector) if done < inner.size else ():
        part = [*outer, Axis(extent, inner.strides)]
        tiles = ((*(1,) * (len(outer) - 1), rows) if outer else ()) + (tile,)
        _emit_part(kernel, part, done + start, tiles, declared, target, emit)


def _emit_vectors(
    kernel: Kernel,
    outer: Sequence[Axis],
    inner: Axis,
    operands: Sequence[Declared],
    target: Declared,
    emit: Emit,
    tile: tuple[int, int],
) -> int:
    """Emit the tiles of two vectors and more, an axis for the vectors; how many elements of `inner` they have."""
    width, vectors = tile
    done = 0
    for count in (vectors, inner.size // width % vectors):
        extent = (inner.size - done) // (width * max(count, 1)) * width * count
        if count > 1 and extent:
            sizes = (extent // (width * count), width * count), (count, width), (width, 1)
            split_axes = [Axis(size, tuple(step * s for s in inner.strides)) for size, step in sizes]
            tiles = (*(1,) * (len(outer) + 1), count, width)
            _emit_part(kernel, [*outer, *split_axes], done, tiles, operands, target, emit)
            done += extent
    return done


def _stretches(size: int, width: int, vector: int) -> list[tuple[int, int, int]]:
    """(start, extent, tile) of the parts of an axis; a rest after tiles of several vectors has tiles of half that."""
    if width <= vector or (size <= width and size % vector == 0):
        return split(size, min(width, size))
    parts: list[tuple[int, int, int]] = []
    start, tile = 0, width
    while tile > vector:
        if extent := (size - start) // tile * tile:
            parts.append((start, extent, tile))
        start, tile = start + extent, tile // 2
    rest = split(size - start, min(vector, size - start)) if start < size else []
    return parts + [(start + first, extent, tile) for first, extent, tile in rest]


def declare_operand(kernel: Kernel, name: str, operand: MapOperand) -> Declared:
    """Declare the buffer of `operand` as a parameter of `kernel`, unless it is one already."""
    if isinstance(operand.source, Buffer):
        return Declared(operand.source, operand.offset, operand.start)
    if isinstance(operand.source, BufferSlot):
        return Declared(kernel.slot(name, operand.source), operand.offset, operand.start)
    return Declared(kernel.data(name, operand.source), operand.offset, operand.start)


def _emit_part(
    kernel: Kernel,
    axes: Sequence[Axis],
    start: int,
    tiles: tuple[int, ...],
    operands: Sequence[Declared],
    target: Declared,
    emit: Emit,
) -> None:
    loops = tuple(f"d{i}" for i in range(len(axes)))
    inputs = [_operand(kernel, axes, loops, start, i, declared) for i, declared in enumerate(operands)]
    last = len(operands)
    sizes, strides = tuple(a.size for a in axes), tuple(a.strides[last] for a in axes)
    offset, index = target.where(kernel, start)
    destination = kernel.write(target.buffer, View(sizes, strides, offset), index)
    kernel.map(loops, inputs, destination, emit, Tag(kernel.next_micro_kernel(), "root", tiles))


def _operand(
    kernel: Kernel, axes: Sequence[Axis], loops: Sequence[str], start: int, index: int, declared: Declared
) -> Operand:
    """The operand seen along the axes that move it; the others broadcast it."""
    moving = [(axis, loop) for axis, loop in zip(axes, loops, strict=True) if axis.strides[index]]
    offset, where = declared.where(kernel, start * axes[-1].strides[index])
    view = View(tuple(a.size for a, _ in moving), tuple(a.strides[index] for a, _ in moving), offset)
    return Operand(kernel.read(declared.buffer, view, where), tuple(loop for _, loop in moving))


def on_stored(emit: Emit, signed: Sequence[bool], *, is_signed: bool) -> Emit:
    """`emit` where some quantized values, or the result, are those of users' arrays."""

    def emit_flipped(body: Body, values: Sequence[Value]) -> Value:
        stored = [flipped(body, value) if flip else value for value, flip in zip(values, signed, strict=True)]
        quantized = emit(body, stored)
        return flipped(body, quantized) if is_signed else quantized

    return emit_flipped


def as_stored(source: MapOperand, target: MapOperand) -> Emit:
    """An element of the source as the target stores it: bytes of `i8` are signed in a user's array."""
    signed = {side.source.signed for side in (source, target) if isinstance(side.source, BufferSlot)}
    return lambda body, values: flipped(body, values[0]) if len(signed) > 1 else values[0]


def together(body: Body, values: Sequence[Value]) -> Value:
    """Up to four bytes as a 32-bit number, the first one lowest; those that there are not are zero."""
    first, *more = [body.cast("arith.extui", value, "i32") for value in values]
    for position, byte in enumerate(more, start=1):
        first = body.binary("arith.ori", first, body.binary("arith.shli", byte, body.constant(8 * position, "i32")))
    return first


def emit_padding(kernel: Kernel, slot: BufferSlot, value: Value) -> None:
    """Fill the padding of `slot` with the scalar `value`: a range before the image, one after, one between rows."""
    buffer = kernel.slot("image", slot)
    storage = slot.storage
    images, height, width, _ = storage.shape
    image, row, pixel, _ = storage.strides
    _, left, bottom, right = storage.pads
    head = storage.origin
    tail = right * pixel + bottom * row
    gap = (left + right) * pixel
    parts = (
        ((images, head), (image, 1), 0),
        ((images, height - 1, gap), (image, row, 1), head + width * pixel),
        ((images, tail), (image, 1), head + (height - 1) * row + width * pixel),
    )
    for sizes, strides, offset in parts:
        if 0 not in sizes:
            emit_map(kernel, sizes, [], MapOperand(buffer, strides, offset), lambda _, __: value)
