"""Resized images: rows and columns are known, so a kernel reads them from tables."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.dialect import ResizeBilinearOp, ResizeNearestOp
from qdialect.dialect.enums import Interpolation
from qdialect.dialect.type_constraints import element_of
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.elementwise import VECTOR
from qdialect.lowering.kernels.resampling import Emit, Line, Weight, emit_resampling
from qdialect.lowering.program import Kernel
from qdialect.lowering.storage import signed_shift
from qdialect.reference.resize import Taps
from qdialect.reference.resize_evaluators import bilinear_axes, nearest_axes

_LANES = 16
# The four weights of a cell add up to 2 to the power of so many.
_FRACTION_BITS = {Interpolation.TFLITE_FIXED: 20, Interpolation.XNNPACK_FIXED: 22}


@lowers(ResizeNearestOp)
def _nearest(lowering: GraphLowering, op: ResizeNearestOp) -> None:
    data, output = lowering.place(op.input), lowering.result(op.output)
    rows, columns = nearest_axes(op)
    kernel = Kernel(lowering.program)
    emit_resampling(kernel, data, output, [Line(rows)], [Line(columns)], lambda _, values, __: values[0], VECTOR)
    lowering.program.call(kernel, op.operation.name)


@lowers(ResizeBilinearOp)
def _bilinear(lowering: GraphLowering, op: ResizeBilinearOp) -> None:
    data, output = lowering.place(op.input), lowering.result(op.output)
    rows, columns = (_lines(taps) for taps in bilinear_axes(op))
    shift, is_float = signed_shift(op.input.type), element_of(op.input.type) == "f32"
    is_fixed = op.arithmetic in _FRACTION_BITS
    emit = _fixed(op.arithmetic, shift) if is_fixed else _float(op.arithmetic, shift, is_float)
    kernel = Kernel(lowering.program)
    emit_resampling(kernel, data, output, rows, columns, emit, _LANES)
    lowering.program.call(kernel, op.operation.name)


def _lines(taps: Taps) -> list[Line]:
    return [Line(taps.low, taps.low_weight), Line(taps.high, taps.high_weight)]


def _fixed(arithmetic: Interpolation, shift: int) -> Emit:
    """Codes are stored shifted: the sum of all weights times the shift is taken off before it is rounded."""
    bits = _FRACTION_BITS[arithmetic]

    def emit(body: Body, values: Sequence[str], weights: Sequence[Weight]) -> str:
        total = body.constant(-(shift << bits), "i32")
        for value, (row, column) in zip(values, weights, strict=True):
            weight = body.binary("arith.muli", row, column, "i32")
            code = body.cast("arith.extui", value, "i8", "i32")
            total = body.binary("arith.addi", total, body.binary("arith.muli", code, weight, "i32"), "i32")
        rounded = body.binary("arith.addi", total, body.constant(1 << (bits - 1), "i32"), "i32")
        if arithmetic is Interpolation.TFLITE_FIXED:
            # Half away from zero: a negative tie goes down.
            sign = body.binary("arith.shrsi", total, body.constant(31, "i32"), "i32")
            rounded = body.binary("arith.addi", rounded, sign, "i32")
        code = body.binary("arith.shrsi", rounded, body.constant(bits, "i32"), "i32")
        return _stored(body, code, shift)

    return emit


def _stored(body: Body, code: str, shift: int) -> str:
    stored = body.binary("arith.addi", code, body.constant(shift, "i32"), "i32")
    limited = body.clamp(stored, body.constant(0, "i32"), body.constant(255, "i32"), "i32")
    return body.cast("arith.trunci", limited, "i32", "i8")


def _float(arithmetic: Interpolation, shift: int, is_float: bool) -> Emit:
    """The terms of `qdialect.reference.resize.resize_bilinear`, in its order."""
    is_onnx = arithmetic is Interpolation.ONNX_FLOAT
    # Cells come rows outermost.
    order = (0, 1, 2, 3) if is_onnx else (0, 2, 1, 3)

    def real(body: Body, value: str) -> str:
        if is_float:
            return value
        code = body.cast("arith.extui", value, "i8", "i32")
        code = body.binary("arith.subi", code, body.constant(shift, "i32"), "i32")
        return body.cast("arith.sitofp", code, "i32", "f32")

    def term(body: Body, value: str, weight: Weight) -> str:
        row, column = weight
        if is_onnx:
            return body.binary("arith.mulf", body.binary("arith.mulf", column, row, "f32"), real(body, value), "f32")
        by_row = body.binary("arith.mulf", real(body, value), row, "f32")
        return body.binary("arith.mulf", by_row, column, "f32")

    def emit(body: Body, values: Sequence[str], weights: Sequence[Weight]) -> str:
        terms = [term(body, values[i], weights[i]) for i in order]
        total = terms[0]
        for other in terms[1:]:
            total = body.binary("arith.addf", total, other, "f32")
        if is_float:
            return total
        if not is_onnx:
            total = body.binary("arith.addf", total, body.constant(0.5, "f32"), "f32")
        return _stored(body, body.cast("arith.fptosi", total, "f32", "i32"), shift)

    return emit
