"""Resized images: rows and columns are known, so a kernel reads them from tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.arithmetic.choices import Interpolation
from qdialect.arithmetic.resize import Taps
from qdialect.dialect import ArgMaxOp, ArgMinOp, ResizeBilinearOp
from qdialect.dialect.type_constraints import element_of
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers
from qdialect.lowering.qnn_to_linalg.kernels import resizing
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

_CHANNELS = 3
# Fraction bits of float32 weights that are exact, and arithmetics that round negative values differently.
_EXACT_BITS = 7
_BELOW_ZERO = (Interpolation.TFLITE_FIXED, Interpolation.ONNX_FLOAT)
# The two weights along a dimension add up to 2 to this power.
_FRACTION_BITS = {Interpolation.TFLITE_FIXED: 10, Interpolation.XNNPACK_FIXED: 11}


@lowers(ResizeBilinearOp)
def _bilinear(lowering: GraphLowering, op: ResizeBilinearOp) -> None:
    if is_computed_by_reader(op):
        return
    data, output = lowering.slot(op.input), lowering.result(op.output)
    kernel, exact = Kernel(lowering.program), exact_bilinear(lowering, op)
    if exact is None:
        emit = _float(op.arithmetic, signed_shift(op.input.type), element_of(op.input.type) == "f32")
        rows, columns = ([(taps.low, taps.low_weight), (taps.high, taps.high_weight)] for taps in op.taps)
        resizing.emit_resampling(kernel, data, output, rows, columns, emit, TILE_LANES)
    else:
        resizing.emit_interpolation(kernel, exact, output)
    lowering.program.call(kernel, op.operation.name)


def is_computed_by_reader(op: ResizeBilinearOp) -> bool:
    """Whether the one reader of `op` looks for the extreme channel of each pixel: it computes the pixels on the way."""
    readers = [use.owner for use in op.output.uses]
    last = [reader for reader in readers if isinstance(reader, ArgMaxOp | ArgMinOp) and reader.axis == _CHANNELS]
    return len(readers) == len(last) == 1 and _exact_axes(op) is not None


def exact_bilinear(lowering: GraphLowering, op: ResizeBilinearOp) -> resizing.Bilinear | None:
    """`op` in integers; None where its arithmetic rounds float32 numbers."""
    blends = _exact_axes(op)
    if blends is None:
        return None
    rounding = _rounding(op.arithmetic, signed_shift(op.input.type))
    return resizing.Bilinear(lowering.slot(op.input), *blends, rounding)


def _exact_axes(op: ResizeBilinearOp) -> tuple[resizing.Blends, resizing.Blends] | None:
    rows, columns = (_blends(op.arithmetic, taps) for taps in op.taps)
    if rows is None or columns is None or element_of(op.input.type) == "f32":
        return None
    return rows, columns


def _blends(arithmetic: Interpolation, taps: Taps) -> resizing.Blends | None:
    """The taps as whole parts of a power of two; None where float32 weights are not.

    With weights of 7 fraction bits along both dimensions no product and no sum of float32 numbers is rounded: 8 bits of
    value, 14 of fraction, and one because weights at the edges are below 2.
    """
    if arithmetic in _FRACTION_BITS:
        return resizing.Blends.of(taps.low, taps.high, taps.high_weight, _FRACTION_BITS[arithmetic])
    low, high = (weights.astype(np.float64) * (1 << _EXACT_BITS) for weights in (taps.low_weight, taps.high_weight))
    is_exact = np.all(np.rint(high) == high) and np.all(low + high == 1 << _EXACT_BITS)
    return resizing.Blends.of(taps.low, taps.high, high.astype(np.int64), _EXACT_BITS) if is_exact else None


def _rounding(arithmetic: Interpolation, shift: int) -> resizing.Rounding:
    """Half up, but for quantized values below zero, which are stored with `shift`.

    There TFLite's integers round half away from zero, down; ONNX Runtime cuts the fraction off everywhere, which is up.
    """
    is_cut = arithmetic is Interpolation.ONNX_FLOAT

    def bias(bits: int) -> int:
        return 0 if is_cut or bits == 0 else 1 << (bits - 1)

    def emit(body: Body, total: Value, bits: int) -> Value:
        if bits == 0:
            return total
        if shift and arithmetic in _BELOW_ZERO:
            own = body.subtract(total, body.constant((shift << bits) + bias(bits), total.type))
            sign = body.binary("arith.shrsi", own, body.constant(own.bits - 1, own.type))
            step = body.binary("arith.andi", sign, body.constant((1 << bits) - 1, total.type)) if is_cut else sign
            total = body.add(total, step)
        return body.binary("arith.shrui", total, body.constant(bits, total.type))

    return resizing.Rounding(bias, emit)


def _float(arithmetic: Interpolation, shift: int, is_float: bool) -> resizing.EmitPixel:
    """The terms of `qdialect.reference.qnn_evaluators.resize_bilinear`, in its order."""
    is_onnx = arithmetic is Interpolation.ONNX_FLOAT
    # Pixels come rows outermost.
    order = (0, 1, 2, 3) if is_onnx else (0, 2, 1, 3)

    def f32(body: Body, value: Value) -> Value:
        if is_float:
            return value
        quantized = body.cast("arith.extui", value, "i32")
        quantized = body.subtract(quantized, body.constant(shift, "i32"))
        return body.cast("arith.sitofp", quantized, "f32")

    def term(body: Body, value: Value, weight: resizing.Weight) -> Value:
        row, column = weight
        if is_onnx:
            return body.multiply(body.multiply(column, row), f32(body, value))
        by_row = body.multiply(f32(body, value), row)
        return body.multiply(by_row, column)

    def emit(body: Body, values: Sequence[Value], weights: Sequence[resizing.Weight]) -> Value:
        terms = [term(body, values[i], weights[i]) for i in order]
        total = terms[0]
        for other in terms[1:]:
            total = body.add(total, other)
        if is_float:
            return total
        if not is_onnx:
            total = body.add(total, body.constant(0.5, "f32"))
        stored = body.add(body.cast("arith.fptosi", total, "i32"), body.constant(shift, "i32"))
        limited = body.clamp(stored, body.constant(0, "i32"), body.constant(255, "i32"))
        return body.narrow(limited)

    return emit
