"""Contractions of 16-bit activations: by dot products, else as reductions that run along vectors of results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import AnyI16Contraction, I16Conv2DOp, I16DenseOp, I16MatmulOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.handlers.i16_sums import PartialSums, sums_inside, window_of
from qdialect.lowering.handlers.maps import Stored, map_stored
from qdialect.lowering.kernels.elementwise import MapOperand, flipped
from qdialect.lowering.kernels.reduction import Finish, Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.kernels.word_contraction import fits_words
from qdialect.lowering.memory.strides import row_major
from qdialect.lowering.operands.constant_operands import required_constant
from qdialect.lowering.paddings import padding_of
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES

_ROWS = 8


def _products(element: str, is_stored_weight: bool = False) -> Fold:
    """Sums of `element`; a product of two 16-bit integers fits i32. A stored i8 has its sign flipped."""

    def emit(body: Body, total: Value, values: Sequence[Value]) -> Value:
        weight, data = values
        if is_stored_weight and weight.type == "i8":
            weight = flipped(body, weight)
        product = body.multiply(*(body.cast("arith.extsi", value, "i32") for value in (weight, data)))
        return body.add(total, body.cast("arith.extsi", product, element))

    return Fold(element, 0, emit, lambda body, a, b: body.add(a, b))


def _finish(element: str) -> Finish:
    """Sums as `element`, and the bias on top where there is one."""

    def finish(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        wide = body.cast("arith.extsi", total, element)
        return body.add(wide, extras[0]) if extras else wide

    return finish


def _bias_of(op: AnyI16Contraction, first: int, count: int, axes: int) -> list[MapOperand]:
    """The bias of `count` channels from `first` on, for results with so many axes."""
    if op.bias is None:
        return []
    bias = required_constant("bias", op.bias)[first : first + count]
    return [MapOperand(np.ascontiguousarray(bias), (*(0,) * (axes - 1), 1))]


def _accumulator(op: AnyI16Contraction, weight: NDArray[Any]) -> str:
    """The type of the sums over all of `weight`, [OC, ...]."""
    return "i32" if fits_words(weight) else element_of(op.output.type)


@lowers(I16DenseOp)
def _dense(lowering: GraphLowering, op: I16DenseOp) -> None:
    if not _lower_sums(lowering, op):
        _reduce_dense(lowering, op)


@lowers(I16Conv2DOp)
def _conv2d(lowering: GraphLowering, op: I16Conv2DOp) -> None:
    if not _lower_sums(lowering, op):
        _reduce_conv2d(lowering, op)


def _lower_sums(lowering: GraphLowering, op: AnyI16Contraction) -> bool:
    """Compute `op` by dot products where that is exact; a requantization after it may do so itself."""
    if sums_inside(op.output) is not None:
        return True
    sums = PartialSums.of(op)
    if sums is None:
        return False
    sources = sums.emit(lowering)
    target = Stored(lowering.result(op.output), shape_of(op.output.type))
    map_stored(lowering, target, sources, lambda _: sums.total, op.operation.name, TILE_LANES)
    return True


def _reduce_dense(lowering: GraphLowering, op: I16DenseOp) -> None:
    weight = required_constant("weight", op.weight)
    shape, (channels, depth) = shape_of(op.output.type), weight.shape
    data, output = _operand(lowering, op.data), _result(lowering, op.output)
    extras, finish = _bias_of(op, 0, channels, len(shape)), _finish(element_of(op.output.type))
    columns = MapOperand(np.ascontiguousarray(weight.T), (*(0,) * (len(shape) - 1), 1))
    rows = MapOperand(data.source, (*data.strides[:-1], 0), data.offset)
    inputs = [Reduced(columns, (channels,)), Reduced(rows, (1,))]
    fold = _products(_accumulator(op, weight))
    _emit(lowering, op, Reduction(shape, (depth,), inputs, extras, output, fold, finish, TILE_LANES, _ROWS))


def _reduce_conv2d(lowering: GraphLowering, op: I16Conv2DOp) -> None:
    """Groups are reductions of their own; those of one channel are one, along the channels."""
    weight = required_constant("weight", op.weight)
    data, output = lowering.slot(op.data, padding_of(op)), _result(lowering, op.output)
    channels, rows, columns, depth = weight.shape
    is_depthwise = depth == 1 and channels == op.groups
    groups = 1 if is_depthwise else op.groups
    across = channels // groups
    window = window_of(op, data)
    kept = (*window.pixels, across)
    fold, finish = _products(_accumulator(op, weight)), _finish(element_of(op.output.type))
    for group in range(groups):
        first = group * across
        taps = np.ascontiguousarray(weight[first : first + across].transpose(1, 2, 3, 0))
        steps = (*window.pixel_strides(data.storage), int(is_depthwise))
        source = MapOperand(data, steps, window.start(data.storage) + group * depth)
        inputs = [
            Reduced(MapOperand(taps, (0, 0, 0, 1)), (columns * depth * across, depth * across, across)),
            Reduced(source, (*window.tap_strides(data.storage), 1)),
        ]
        extras = _bias_of(op, first, across, 4)
        target = MapOperand(output.source, output.strides, output.offset + first)
        reduced = (rows, columns, depth)
        _emit(lowering, op, Reduction(kept, reduced, inputs, extras, target, fold, finish, TILE_LANES, _ROWS))


@lowers(I16MatmulOp)
def _matmul(lowering: GraphLowering, op: I16MatmulOp) -> None:
    shape = shape_of(op.output.type)
    before, depth = shape[:-2], shape_of(op.data.type)[-1]
    data, matrix = (_spread(_operand(lowering, value), value, before) for value in (op.data, op.weight))
    inputs = [
        Reduced(MapOperand(matrix.source, (*matrix.strides[:-2], 0, 1), matrix.offset), matrix.strides[-2:-1]),
        Reduced(MapOperand(data.source, (*data.strides[:-1], 0), data.offset), (1,)),
    ]
    element = element_of(op.output.type)
    fold, finish = _products(element, is_stored_weight=constant_value(op.weight) is None), _finish(element)
    output = _result(lowering, op.output)
    _emit(lowering, op, Reduction(shape, (depth,), inputs, [], output, fold, finish, TILE_LANES, _ROWS))


def _emit(lowering: GraphLowering, op: AnyI16Contraction | I16MatmulOp, reduction: Reduction) -> None:
    kernel = Kernel(lowering.program)
    emit_reduction(kernel, reduction)
    lowering.program.call(kernel, op.operation.name, math.prod((*reduction.kept, *reduction.reduced)))


def _operand(lowering: GraphLowering, value: ir.Value) -> MapOperand:
    """A tensor where it is stored, a constant where it lies."""
    shape, array = shape_of(value.type), constant_value(value)
    if array is not None:
        return MapOperand(np.ascontiguousarray(array), row_major(shape))
    slot = lowering.slot(value)
    return MapOperand(slot, dim_strides(shape, slot.storage), slot.storage.origin)


def _spread(operand: MapOperand, value: ir.Value, leading: Sequence[int]) -> MapOperand:
    """Matrices whose leading dimensions broadcast to `leading`."""
    own = shape_of(value.type)[:-2]
    missing = len(leading) - len(own)
    steps = [0 if extent == 1 else step for extent, step in zip(own, operand.strides[: len(own)], strict=True)]
    return MapOperand(operand.source, (*(0,) * missing, *steps, *operand.strides[-2:]), operand.offset)


def _result(lowering: GraphLowering, value: ir.Value) -> MapOperand:
    slot = lowering.result(value)
    return MapOperand(slot, dim_strides(shape_of(value.type), slot.storage), slot.storage.origin)
