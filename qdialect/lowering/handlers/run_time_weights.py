"""Convolution and dense with weights that are computed or given at run time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import Conv2DOp, DenseOp, FusedConv2DOp, FusedDenseOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, padding_of
from qdialect.lowering.kernels.contraction import emit_contraction
from qdialect.lowering.kernels.elementwise import MapOperand
from qdialect.lowering.kernels.epilogue import Epilogue
from qdialect.lowering.kernels.stored_convolution import StoredConvolution, emit_taps
from qdialect.lowering.kernels.window import Window
from qdialect.lowering.memory.storage import signed_shift
from qdialect.quant_math import IntArray

AnyOp = Conv2DOp | FusedConv2DOp | DenseOp | FusedDenseOp
_LARGEST_PRODUCT = 255 * 255


def far_range(op: AnyOp, bias: NDArray[np.int32]) -> tuple[IntArray, IntArray]:
    """The range of the accumulators of each channel, whatever the weights are."""
    wide, far = bias.astype(np.int64), _LARGEST_PRODUCT * int(np.prod(shape_of(op.weight.type)[1:]))
    return wide - far, wide + far


def lower_run_time_weights(
    lowering: GraphLowering, op: AnyOp, epilogue: Epilogue, bias: NDArray[np.int32], window: Window
) -> None:
    """Append the kernel calls that pack the weights of `op`, and those of its products."""
    shape = shape_of(op.weight.type)
    slot = lowering.slot(op.weight)
    strides = dim_strides(shape, slot.storage)
    rows, columns = shape[1:-1] or (1, 1)
    four = (shape[0], rows, columns, shape[-1])
    steps = (strides[0], *(strides[1:-1] or (0, 0)), strides[-1])
    points = np.array(op.weight_zero_points, dtype=np.int32) + signed_shift(op.weight.type)
    taps = emit_taps(
        lowering.program,
        MapOperand(slot, steps, slot.storage.origin),
        four,
        op.groups if isinstance(op, Conv2DOp | FusedConv2DOp) else 1,
        epilogue.start(bias),
        op.input_zero_point + signed_shift(op.data.type),
        points,
    )
    data, output = lowering.slot(op.data, padding_of(op)), lowering.result(op.operation.results[0])
    convolution = StoredConvolution(data, output, epilogue, window, taps, points - 128)
    emit_contraction(lowering.program, convolution, op.operation.name)
