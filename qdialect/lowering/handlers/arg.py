"""The index of a row's extreme value: the smallest of keys that hold the value above its index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from qdialect.diagnostics import CompileError
from qdialect.dialect import ArgMaxOp, ArgMinOp, ResizeBilinearOp
from qdialect.dialect.reduction_ops import ArgOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.handlers.axes import OverAxes
from qdialect.lowering.handlers.resize import exact_bilinear, is_computed_by_reader
from qdialect.lowering.kernels.elementwise import MapOperand
from qdialect.lowering.kernels.interpolation import Bilinear, Pixels, emit_pixels
from qdialect.lowering.kernels.reduction import Finish, Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value


@dataclass(frozen=True)
class _Keys:
    """Unsigned keys: an 8-bit value above `position_bits` bits, smaller for the index that wins among equals."""

    element: str
    position_bits: int
    lanes: int


_NARROW, _WIDE = _Keys("i16", 8, 32), _Keys("i32", 24, 16)


@lowers(ArgMaxOp, takes_arrays=True)
def _arg_max(lowering: GraphLowering, op: ArgMaxOp) -> None:
    _lower(lowering, op, is_max=True)


@lowers(ArgMinOp, takes_arrays=True)
def _arg_min(lowering: GraphLowering, op: ArgMinOp) -> None:
    _lower(lowering, op, is_max=False)


def _lower(lowering: GraphLowering, op: ArgOp, is_max: bool) -> None:
    extent = shape_of(op.input.type)[op.axis]
    if extent > 1 << _WIDE.position_bits:
        raise CompileError(f"must have at most 2^{_WIDE.position_bits} elements along axis {op.axis}, but got {extent}")
    keys = _NARROW if extent <= 1 << _NARROW.position_bits else _WIDE
    kernel = Kernel(lowering.program)
    target = element_of(op.output.type)

    def finish(body: Body, acc: Value, _: Sequence[Value]) -> Value:
        mask = body.constant((1 << keys.position_bits) - 1, keys.element)
        position = body.binary("arith.andi", acc, mask)
        if op.last:
            position = body.subtract(mask, position)
        return body.cast("arith.extui", position, target)

    fold, positions = _smallest_key(keys, is_max), _positions(extent, keys, op.last)
    image = _image_to_compute(lowering, op)
    if image is None:
        over = OverAxes(op.input, op.output, (op.axis,), op.keep_dims)
        over.emit(lowering, kernel, fold, finish, keys.lanes, op.operation.name, [MapOperand(positions, (1,))])
        return
    # Whole vectors of channels: the keys of those that there are not become the largest.
    padded = np.pad(positions, (0, -extent % keys.lanes), constant_values=~positions.dtype.type(0))
    _emit_on_image(lowering, kernel, op, image, padded, _OnImage(fold, finish, keys.lanes))
    lowering.program.call(kernel, op.operation.name)


@dataclass(frozen=True)
class _OnImage:
    """What is done with the channels of each pixel."""

    fold: Fold
    finish: Finish
    width: int


def _image_to_compute(lowering: GraphLowering, op: ArgOp) -> Bilinear | None:
    """The resized image whose pixels are computed on the way, never stored."""
    resized = op.input.owner
    if isinstance(resized, ResizeBilinearOp) and is_computed_by_reader(resized):
        return exact_bilinear(lowering, resized)
    return None


def _emit_on_image(
    lowering: GraphLowering,
    kernel: Kernel,
    op: ArgOp,
    image: Bilinear,
    positions: NDArray[np.unsignedinteger],
    how: _OnImage,
) -> None:
    output = lowering.result(op.output)
    image_step, row, column, *_ = dim_strides(shape_of(op.output.type), output.storage)
    target = kernel.slot("target", output)
    array = kernel.data("positions", positions)

    def write(pixels: Pixels) -> None:
        count = len(pixels.operands)

        def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
            return how.fold.emit(body, acc, [pixels.quantized(body, values[:count]), *values[count:]])

        inputs = [Reduced(replace(o, strides=o.strides[:3]), o.strides[3:]) for o in pixels.operands]
        inputs.append(Reduced(MapOperand(array, (0, 0, 0)), (1,)))
        destination = pixels.operand_in(kernel, target, output.storage.origin, (image_step, row, column))
        fold, extents = replace(how.fold, emit=emit), (array.length,)
        emit_reduction(
            kernel, Reduction(pixels.shape, extents, inputs, [], destination, fold, how.finish, how.width, pixels.tile)
        )

    emit_pixels(kernel, image, write)


def _positions(extent: int, keys: _Keys, last: bool) -> NDArray[np.unsignedinteger]:
    order = np.arange(extent)
    dtype = {"i16": np.uint16, "i32": np.uint32}[keys.element]
    return ((1 << keys.position_bits) - 1 - order if last else order).astype(dtype)


def _smallest_key(keys: _Keys, is_max: bool) -> Fold:
    """The smallest key of quantized values and their indices."""

    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        # The largest value has the smallest complement.
        quantized = body.binary("arith.xori", values[0], body.constant(-1, "i8")) if is_max else values[0]
        wide = body.cast("arith.extui", quantized, keys.element)
        high = body.binary("arith.shli", wide, body.constant(keys.position_bits, keys.element))
        key = body.binary("arith.ori", high, values[1])
        return body.binary("arith.minui", acc, key)

    return Fold(keys.element, -1, emit, lambda body, a, b: body.binary("arith.minui", a, b))
