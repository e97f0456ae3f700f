"""Convolution and dense with weights that are computed or given at run time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import Conv2DOp, DenseOp, FusedConv2DOp, FusedDenseOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides
from qdialect.lowering.kernels.contraction import emit_contraction
from qdialect.lowering.kernels.elementwise import MapOperand
from qdialect.lowering.kernels.epilogue import Epilogue
from qdialect.lowering.kernels.stored_convolution import StoredConvolution, emit_taps
from qdialect.lowering.kernels.stored_depthwise import StoredDepthwise, emit_stored_depthwise, emit_stored_taps
from qdialect.lowering.kernels.window import Window
from qdialect.lowering.memory.storage import signed_shift
from qdialect.lowering.paddings import padding_of
from qdialect.quant_math import IntArray

AnyOp = Conv2DOp | FusedConv2DOp | DenseOp | FusedDenseOp
_LARGEST_PRODUCT = 255 * 255


def far_range(op: AnyOp, bias: NDArray[np.int32]) -> tuple[IntArray, IntArray]:
    """The range of the accumulators of each channel, whatever the weights are."""
    wide, far = bias.astype(np.int64), _LARGEST_PRODUCT * int(np.prod(shape_of(op.weight.type)[1:]))
    return wide - far, wide + far


@dataclass(frozen=True)
class _Operands:
    """What both kinds of kernels pack weights from."""

    source: MapOperand
    """The weights, [OC, KH, KW, IC / groups]."""
    shape: tuple[int, int, int, int]
    start: NDArray[np.int32]
    """What accumulators start at, before zero points are folded in."""
    data_zero_point: int
    zero_points: NDArray[np.int32]
    """Of stored quantized values, as that of the data."""


def lower_run_time_weights(
    lowering: GraphLowering, op: AnyOp, epilogue: Epilogue, bias: NDArray[np.int32], window: Window
) -> None:
    """Append the kernel calls that pack the weights of `op`, and those of its products."""
    operands = _operands_of(lowering, op, epilogue.start(bias))
    groups = op.groups if isinstance(op, Conv2DOp | FusedConv2DOp) else 1
    if 1 < groups == shape_of(op.data.type)[-1] == operands.shape[0]:
        _lower_depthwise(lowering, op, epilogue, operands, window)
        return
    points = operands.zero_points
    taps = emit_taps(
        lowering.program, operands.source, operands.shape, groups, operands.start, operands.data_zero_point, points
    )
    data, output = lowering.slot(op.data, padding_of(op)), lowering.result(op.operation.results[0])
    convolution = StoredConvolution(data, output, epilogue, window, taps, points - 128)
    emit_contraction(lowering.program, convolution, op.operation.name)


def _operands_of(lowering: GraphLowering, op: AnyOp, start: NDArray[np.int32]) -> _Operands:
    shape, slot = shape_of(op.weight.type), lowering.slot(op.weight)
    strides = dim_strides(shape, slot.storage)
    rows, columns = shape[1:-1] or (1, 1)
    steps = (strides[0], *(strides[1:-1] or (0, 0)), strides[-1])
    return _Operands(
        MapOperand(slot, steps, slot.storage.origin),
        (shape[0], rows, columns, shape[-1]),
        start,
        op.input_zero_point + signed_shift(op.data.type),
        np.array(op.weight_zero_points, dtype=np.int32) + signed_shift(op.weight.type),
    )


def _lower_depthwise(
    lowering: GraphLowering, op: AnyOp, epilogue: Epilogue, operands: _Operands, window: Window
) -> None:
    planes = replace(operands.source, strides=operands.source.strides[:-1])
    taps = emit_stored_taps(
        lowering.program, planes, operands.shape[:-1], operands.start, operands.data_zero_point, operands.zero_points
    )
    data, output = lowering.slot(op.data, padding_of(op)), lowering.result(op.operation.results[0])
    emit_stored_depthwise(lowering.program, StoredDepthwise(data, output, epilogue, window, taps), op.operation.name)
