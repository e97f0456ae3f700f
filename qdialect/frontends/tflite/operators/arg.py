"""ARG_MAX and ARG_MIN: of quantized values as one op, of other numbers by an extreme and what equals it."""

from __future__ import annotations

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import ArgMaxOp, ArgMinOp, F32MaxOp, F32MinOp, IntMaxOp, IntMinOp
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Shape, Tensor
from qdialect.frontends.tflite.operators.checks import EIGHT_BIT, integers, operands
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.slicing import axis_of
from qdialect.frontends.tflite.reader import read_options

_OPS = {"ARG_MAX": ArgMaxOp, "ARG_MIN": ArgMinOp}
_F32_OPS = {"ARG_MAX": F32MaxOp, "ARG_MIN": F32MinOp}
_INTEGER_OPS = {"ARG_MAX": IntMaxOp, "ARG_MIN": IntMinOp}
_KNOWN = (*EIGHT_BIT, "i1", "i16", "i32", "f32")


@imports("ARG_MAX", "ARG_MIN")
def _arg(operator: Operator) -> Emission:
    """The first of equal elements wins; the output's type says how wide an index is."""
    data, axes = operands(operator, 2)
    output = operator.outputs[0]
    require(data.element in _KNOWN, f"input must be {', '.join(_KNOWN)}, but got {data.element}")
    wanted = _output_type(operator)
    require(output.element == wanted, f"output must be {wanted}, but got {output.element}")
    axis = axis_of(integers(axes, "axis"), len(data.shape))
    if data.element not in EIGHT_BIT:
        return lambda emitter: _first_extreme(emitter, operator.kind, data, axis, output)

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(_OPS[operator.kind], emitter.value(data), element=output.element, axis=axis)

    return emit


def _output_type(operator: Operator) -> str:
    """The option decides, whatever the file says of the tensor."""
    if operator.kind == "ARG_MAX":
        kind = read_options(operator, tflite.ArgMaxOptions, lambda options: options.OutputType())
    else:
        kind = read_options(operator, tflite.ArgMinOptions, lambda options: options.OutputType())
    wanted = {tflite.TensorType.INT32: "i32", tflite.TensorType.INT64: "i64"}.get(kind)
    require(wanted is not None, f"output type must be i32 or i64, but got {kind}")
    assert wanted is not None
    return wanted


def _first_extreme(emitter: Emitter, kind: str, data: Tensor, axis: int, output: Tensor) -> ir.Value:
    """The smallest index of an element that equals the extreme; 0 where a NaN is among the elements."""
    s, value, element = Arithmetic(emitter), emitter.value(data), data.element
    if element == "i1":
        value, element = s.resize(value, "i16"), "i16"
    over = {"axes": (axis,), "keep_dims": True}
    op_class = (_F32_OPS if element == "f32" else _INTEGER_OPS)[kind]
    extreme = emitter.broadcast(emitter.build(op_class, value, element=element, **over), data.shape)
    extent = data.shape[axis]
    index = _indices(emitter, data.shape, axis, output.element)
    found = s.select(s.compare("eq", value, extreme), index, extent)
    first = emitter.build(IntMinOp, found, element=output.element, axes=(axis,))
    return s.select(s.compare("lt", first, extent), first, 0)


def _indices(emitter: Emitter, shape: Shape, axis: int, element: str) -> ir.Value:
    """Of each element along an axis."""
    dtype = np.int32 if element == "i32" else np.int64
    along = np.arange(shape[axis], dtype=dtype).reshape(-1, *[1] * (len(shape) - axis - 1))
    return emitter.broadcast(emitter.constant(along), shape)
