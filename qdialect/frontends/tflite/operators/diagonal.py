"""MATRIX_DIAG and MATRIX_SET_DIAG: elements on the diagonal of matrices."""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import PadOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import Shape, require
from qdialect.frontends.slices import Slice, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands, same_type
from qdialect.frontends.tflite.operators.registry import Emission, imports

_ELEMENTS = ("f32", "i8", "i16", "i32", "i64")


@imports("MATRIX_DIAG")
def _diagonal(operator: Operator) -> Emission:
    """Zeros elsewhere, whatever these stand for."""
    (data,), output = operands(operator, 1), operator.outputs[0]
    _check(operator, data.shape, (*data.shape, *data.shape[-1:]))
    same_type(operator, data)
    return lambda emitter: _spread(emitter, emitter.value(data), output.shape)


@imports("MATRIX_SET_DIAG")
def _set_diagonal(operator: Operator) -> Emission:
    data, diagonal = operands(operator, 2)
    shape = data.shape
    require(len(shape) >= 2, f"input must have at least 2 dimensions, but got {len(shape)}")
    wanted = (*shape[:-2], min(shape[-2:]))
    require(diagonal.shape == wanted, f"diagonal must be {list(wanted)}, but got {list(diagonal.shape)}")
    _check(operator, diagonal.shape, shape)
    same_type(operator, data, diagonal)
    mask = np.eye(*shape[-2:], dtype=np.bool_)

    def emit(emitter: Emitter) -> ir.Value:
        on = _spread(emitter, emitter.value(diagonal), shape)
        chosen = emitter.broadcast(emitter.constant(mask), shape)
        return Arithmetic(emitter).select(chosen, on, emitter.value(data))

    return emit


def _check(operator: Operator, diagonal: Shape, shape: Shape) -> None:
    output = operator.outputs[0]
    require(len(diagonal) >= 1, "diagonal must have at least 1 dimension")
    require(output.element in _ELEMENTS, f"output must be {', '.join(_ELEMENTS)}, but got {output.element}")
    require(output.shape == shape, f"output must be {list(shape)}, but got {list(output.shape)}")


def _spread(emitter: Emitter, value: ir.Value, shape: Shape) -> ir.Value:
    """The elements [..., K] on the diagonals of zeros [..., M, N]: they lie N + 1 apart."""
    *outer, rows, columns = shape
    count, element = shape_of(value.type)[-1], element_of(value.type)
    cells = emitter.reshape(value, (math.prod(outer), count, 1))
    apart = emitter.build(PadOp, cells, element=element, low=(0, 0, 0), high=(0, 0, columns), value=0)
    flat = emitter.reshape(apart, (math.prod(outer), count * (columns + 1)))
    missing = rows * columns - count * (columns + 1)
    if missing > 0:
        flat = emitter.build(PadOp, flat, element=element, low=(0, 0), high=(0, missing), value=0)
    taken = take_slices(emitter, flat, [Slice(0, 1, math.prod(outer)), Slice(0, 1, rows * columns)])
    return emitter.reshape(taken, shape)
