"""Transposed convolution: one ordinary convolution for each phase of the result (`lowering.transposed_phases`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import ConvTranspose2DOp, FusedConvTranspose2DOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.contraction import Matrix, bias_of, emit_convolution, epilogue_of, matrix_of, taps_of
from qdialect.lowering.kernels.contraction import Contraction
from qdialect.lowering.kernels.window import Grid, Window
from qdialect.lowering.operands.packing import CenteredWeights
from qdialect.lowering.paddings import padding_of
from qdialect.lowering.transposed_phases import TransposedPhase, transposed_phases


@lowers(ConvTranspose2DOp, FusedConvTranspose2DOp)
def _conv_transpose2d(lowering: GraphLowering, op: ConvTranspose2DOp | FusedConvTranspose2DOp) -> None:
    taps = taps_of(op)
    epilogue = epilogue_of(lowering, op, matrix_of(op, taps).accumulator_range)
    data, output = lowering.slot(op.data, padding_of(op)), lowering.result(op.operation.results[0])
    rows, columns = transposed_phases(op)
    images = shape_of(op.data.type)[0]
    for row in rows:
        for column in columns:
            matrix, window = _convolution(op, taps, images, row, column)
            grid = Grid((row.start, column.start), (op.strides[0], op.strides[1]))
            part = Contraction(
                data, output, epilogue, window, matrix.weights, epilogue.start(matrix.bias), op.groups, grid
            )
            emit_convolution(lowering, part, op.operation.name)


def _convolution(
    op: ConvTranspose2DOp | FusedConvTranspose2DOp,
    taps: NDArray[Any],
    images: int,
    row: TransposedPhase,
    column: TransposedPhase,
) -> tuple[Matrix, Window]:
    """Weights and window of one phase; where no tap meets its elements, a weight of zero looks at the first pixel."""
    size = row.count, column.count
    if not row.taps or not column.taps:
        bias = bias_of(op)
        weights = CenteredWeights(np.zeros_like(taps[:, :1, :1], np.int8), np.zeros_like(bias))
        return Matrix(weights, bias, (bias.astype(np.int64), bias.astype(np.int64))), Window(
            images, size, (1, 1), (0, 0), (1, 1), (0, 0)
        )
    matrix = matrix_of(op, taps[:, row.taps][:, :, column.taps])
    kernel = len(row.taps), len(column.taps)
    dilation, padding = (row.dilation, column.dilation), (-row.first, -column.first)
    return matrix, Window(images, size, kernel, (1, 1), dilation, padding)
