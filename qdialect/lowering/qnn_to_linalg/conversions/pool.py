"""Windows over images: the largest quantized value, and the mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Division
from qdialect.dialect import AvgPool2DOp, MaxPool2DOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers
from qdialect.lowering.qnn_to_linalg.graph.padding import padding_of
from qdialect.lowering.qnn_to_linalg.kernels import reduction
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Window
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

_Pool = MaxPool2DOp | AvgPool2DOp

# Accumulators of a tile: values of 8 or 16 bits for maxima, 32-bit sums else.
_MAX_LANES, _WIDE_MAX_LANES, _SUM_LANES, _PIXELS = 64, 32, 16, 8


@lowers(MaxPool2DOp)
def _max_pool2d(lowering: GraphLowering, op: MaxPool2DOp) -> None:
    kernel = Kernel(lowering.program)
    if _is_wide(op):
        _lower_pool(lowering, op, kernel, reduction.I16_MAX, _clamp(kernel, _bounds(op)), [], _WIDE_MAX_LANES)
        return
    low, high = kernel.limits(_bounds(op), "i8", "ab")

    def finish(body: Body, acc: Value, _: Sequence[Value]) -> Value:
        return body.binary("arith.minui", body.binary("arith.maxui", acc, low), high)

    _lower_pool(lowering, op, kernel, reduction.MAX, finish, [], _MAX_LANES)


def _is_wide(op: _Pool) -> bool:
    """Whether values are stored in 16 bits, signed."""
    return element_of(op.data.type) == "i16"


def _clamp(kernel: Kernel, bounds: tuple[int, int]) -> reduction.Finish:
    low, high = kernel.limits(bounds, "i16", "ab")
    return lambda body, acc, _: body.clamp(acc, low, high)


@lowers(AvgPool2DOp)
def _avg_pool2d(lowering: GraphLowering, op: AvgPool2DOp) -> None:
    kernel = Kernel(lowering.program)
    counts = window_counts(op)
    same = int(counts.flat[0]) if np.all(counts == counts.flat[0]) else None
    count = None if same is None else kernel.number("count", same, "i32")
    extras = [] if same is not None else [MapOperand(counts, (0, counts.shape[1], 1, 0))]
    finish = _mean_finish(kernel, op, count, int(counts.max()))
    _lower_pool(lowering, op, kernel, reduction.I16_SUM if _is_wide(op) else reduction.SUM, finish, extras, _SUM_LANES)


def window_counts(op: AvgPool2DOp) -> NDArray[np.int32]:
    """How many elements each window averages, int32[OH, OW]."""
    data, output = shape_of(op.data.type), shape_of(op.output.type)
    rows, columns = (
        _along(data[1 + i], output[1 + i], op.kernel[i], op.strides[i], op.padding[i], op.count_include_pad)
        for i in range(2)
    )
    return np.outer(rows, columns).astype(np.int32)


def _along(extent: int, windows: int, kernel: int, stride: int, before: int, with_padding: bool) -> NDArray[np.int64]:
    start = np.arange(windows) * stride - before
    if with_padding:
        return np.full(windows, kernel)
    return np.minimum(start + kernel, extent) - np.maximum(start, 0)


def _mean_finish(kernel: Kernel, op: AvgPool2DOp, count: Value | None, maximum: int) -> reduction.Finish:
    """The mean is rounded about zero or about the zero point, which is subtracted from stored values before."""
    shift, division = signed_shift(op.data.type), Division(op.division)
    center = op.zero_point if division is Division.HALF_AWAY_CENTERED else 0
    low, high = kernel.limits(_bounds(op), "i32")
    offset = kernel.number("offset", shift + center, "i32")
    float_ = reduction.quotient_float(2**16 if _is_wide(op) else 255, maximum)

    def finish(body: Body, acc: Value, extras: Sequence[Value]) -> Value:
        elements = count or extras[0]
        total = body.subtract(acc, body.multiply(elements, offset))
        mean = reduction.emit_quotient(body, total, elements, division, float_)
        quantized = body.clamp(body.add(mean, offset), low, high)
        return body.cast("arith.trunci", quantized, "i16") if _is_wide(op) else body.narrow(quantized)

    return finish


def _bounds(op: _Pool) -> tuple[int, int]:
    shift = signed_shift(op.output.type)
    return op.output_min + shift, op.output_max + shift


def _lower_pool(
    lowering: GraphLowering,
    op: _Pool,
    kernel: Kernel,
    fold: reduction.Fold,
    finish: reduction.Finish,
    extras: Sequence[MapOperand],
    width: int,
) -> None:
    data, output = lowering.slot(op.data, padding_of(op)), lowering.result(op.output)
    images, height, width_, _ = shape_of(op.output.type)
    strides = (op.strides[0], op.strides[1])
    size = (op.kernel[0], op.kernel[1])
    window = Window(images, (height, width_), size, strides, (1, 1), (op.padding[0], op.padding[1]))
    source = MapOperand(data, (*window.pixel_strides(data.storage), 1), window.start(data.storage))
    target = MapOperand(output, output.storage.strides, output.storage.origin)
    lanes = min(data.storage.pitch, output.storage.pitch)
    reduction.emit_reduction(
        kernel,
        reduction.Reduction(
            (*window.pixels, lanes),
            window.kernel,
            [reduction.Reduced(source, window.tap_strides(data.storage))],
            extras,
            target,
            fold,
            finish,
            width,
            _PIXELS,
        ),
    )
    lowering.program.call(kernel, op.operation.name)
