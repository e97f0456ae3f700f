"""Element-wise ops as maps over stored tensors: operands broadcast, per-axis parameters are operands too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.ir.views import row_major
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import VECTOR, MapOperand, emit_map, on_stored
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value
from qdialect.support.diagnostics import CompileError

Declare = Callable[[Kernel], Emit]
"""Declares scalars and tables as parameters of a kernel; returns what computes an element."""


@dataclass(frozen=True)
class AxisArray:
    """An array of one entry for each index of a dimension, or of one entry for all."""

    values: NDArray[Any]
    axis: int


@dataclass(frozen=True)
class Known:
    """A constant tensor that is read where it lies; its elements are in no stored form."""

    values: NDArray[Any]


@dataclass(frozen=True)
class Stored:
    """A tensor as it is stored, and its logical shape."""

    slot: BufferSlot
    shape: tuple[int, ...]


Source = Stored | Known | AxisArray


def stored_points(zero_points: Sequence[int], type_: ir.Type) -> NDArray[np.int32]:
    """Zero points of a tensor type as those of its stored values; raises `CompileError` beyond 32 bits."""
    points = np.array(zero_points, dtype=np.int64) + signed_shift(type_)
    for point in (int(points.min()), int(points.max())):
        if not -(2**31) <= point < 2**31:
            raise CompileError(f"zero points must fit 32 bits to be compiled, but got {point - signed_shift(type_)}")
    return points.astype(np.int32)


def map_values(
    lowering: GraphLowering,
    result: ir.Value,
    operands: Sequence[ir.Value | AxisArray],
    declare: Declare,
    label: str,
    width: int = VECTOR,
) -> None:
    """Append the kernel that computes each element of `result` from those of `operands` at the same index."""
    sources = [
        operand if isinstance(operand, AxisArray) else Stored(lowering.slot(operand), shape_of(operand.type))
        for operand in operands
    ]
    target = Stored(lowering.result(result), shape_of(result.type))
    map_stored(lowering, target, sources, declare, label, width)


def map_stored(
    lowering: GraphLowering,
    target: Stored,
    sources: Sequence[Source],
    declare: Declare,
    label: str,
    width: int = VECTOR,
    vectors: int = 1,
) -> None:
    """`map_values` on tensors that have a slot already, by tiles of up to `vectors` rows of `width` elements."""
    shape = target.shape or (1,)
    # With padding lanes if all operands have them, so that rows join.
    tensors = [target, *(source for source in sources if isinstance(source, Stored))]
    lanes = min(t.slot.storage.pitch for t in tensors if (t.shape or (1,))[-1] == shape[-1])
    kernel = Kernel(lowering.program)
    signed = [isinstance(source, Stored) and source.slot.signed for source in sources]
    emit = on_stored(declare(kernel), signed, is_signed=target.slot.signed)
    operands = [_operand_of(source, shape, lanes) for source in sources]
    # Shorter rows are part of longer vectors, which are not the same for each row.
    if max(TILE_LANES, shape[-1] + 1) <= lanes and any(_has_spare_lanes(source, shape[-1]) for source in sources):
        emit, operands = _on_zeroed_lanes(emit, sources, shape[-1]), [*operands, _mask(shape, lanes)]
    emit_map(kernel, (*shape[:-1], lanes), operands, _operand(target, shape), emit, width, vectors=vectors)
    lowering.program.call(kernel, label)


def _has_spare_lanes(source: Source, count: int) -> bool:
    """Whether its rows are `count` f32 numbers and lanes that nobody has written."""
    return isinstance(source, Stored) and source.slot.storage.element == "f32" and source.shape[-1:] == (count,)


def _on_zeroed_lanes(emit: Emit, sources: Sequence[Source], count: int) -> Emit:
    """`emit` on zeros in spare lanes: a subnormal number there takes some Intel cores a hundred cycles."""
    found = [_has_spare_lanes(source, count) for source in sources]

    def emit_zeroed(body: Body, values: Sequence[Value]) -> Value:
        *rest, mask = values
        return emit(
            body, [_masked(body, value, mask) if has else value for value, has in zip(rest, found, strict=True)]
        )

    return emit_zeroed


def _masked(body: Body, value: Value, mask: Value) -> Value:
    bits = body.binary("arith.andi", body.cast("arith.bitcast", value, "i32"), mask)
    return body.cast("arith.bitcast", bits, "f32")


def _mask(shape: tuple[int, ...], lanes: int) -> MapOperand:
    """All bits of the elements of a row, and none of its spare lanes."""
    return MapOperand(
        np.repeat(np.array([-1, 0], dtype=np.int32), [shape[-1], lanes - shape[-1]]), (*(0,) * (len(shape) - 1), 1)
    )


def _operand_of(source: Source, shape: tuple[int, ...], lanes: int) -> MapOperand:
    if isinstance(source, AxisArray):
        values, is_last = source.values, source.axis == len(shape) - 1
        if len(values) == 1:
            return MapOperand(values, (0,) * len(shape))
        strides = tuple(int(axis == source.axis) for axis in range(len(shape)))
        return MapOperand(np.pad(values, (0, lanes - len(values))) if is_last else values, strides)
    return _operand(source, shape) if isinstance(source, Stored) else _known_operand(source.values, shape, lanes)


def _operand(tensor: Stored, shape: tuple[int, ...]) -> MapOperand:
    """`tensor` broadcast to `shape`."""
    own = tensor.shape or (1,)
    strides = broadcast_strides(own, dim_strides(own, tensor.slot.storage), shape)
    return MapOperand(tensor.slot, strides, tensor.slot.storage.origin)


def _known_operand(values: NDArray[Any], shape: tuple[int, ...], lanes: int) -> MapOperand:
    values = np.atleast_1d(values)
    if values.shape[-1] == shape[-1]:
        values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, lanes - shape[-1])])
    own = (*values.shape[:-1], shape[-1] if values.shape[-1] > 1 else 1)
    return MapOperand(values, broadcast_strides(own, row_major(values.shape), shape))


def broadcast_strides(own: tuple[int, ...], steps: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor of shape `own`, seen as one of `shape`."""
    missing = len(shape) - len(own)
    triples = zip(own, shape[missing:], steps, strict=True)
    moving = tuple(0 if extent == 1 and wanted != 1 else step for extent, wanted, step in triples)
    return (0,) * missing + moving
