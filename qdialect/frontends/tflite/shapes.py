"""Shapes that a file leaves out, from the operators that compute the tensors (as LiteRT's `Prepare` finds all of them).

A converter may give a computed tensor no extents at all; its shape is then what its operator makes of its inputs.  Most
operators say so when their ops are built, and are built for that; those below want to know the shape beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from qdialect.dialect import ConstraintError
from qdialect.dialect.op_base import BuildError
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Budget, Interface, Shape, UnsupportedError, converting, require
from qdialect.frontends.tflite.flatbuffer.model import Operator
from qdialect.frontends.tflite.operators import checks, plan
from qdialect.frontends.tflite.operators.registry import Emitter
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import ImportModelError

Rule = Callable[[Operator], Sequence[Shape]]
"""The shapes of an operator's outputs; raises `UnsupportedError` where its inputs do not give them."""


def with_shapes(operator: Operator, context: ir.Context) -> Operator:
    """`operator` with the shapes of its outputs, where those are open and the operator's inputs give them.

    Ops that are built to see their shapes are of `context`.
    """
    if not any(tensor.is_open for tensor in operator.outputs):
        return operator
    rule = _RULES.get(operator.kind)
    try:
        with converting():
            shapes = rule(operator) if rule else _built(operator, context)
            require(all(extent >= 0 for shape in shapes for extent in shape), "extents must be at least 0")
    except (UnsupportedError, ConstraintError, BuildError, ImportModelError):
        # The node is refused with the others, or by the type of what it computes.
        return operator
    pairs = zip(operator.outputs, shapes, strict=False)
    outputs = tuple(replace(tensor, shape=tuple(shape)) if tensor.is_open else tensor for tensor, shape in pairs)
    return replace(operator, outputs=(*outputs, *operator.outputs[len(outputs) :]))


def _built(operator: Operator, context: ir.Context) -> Sequence[Shape]:
    inputs = list({tensor.index: tensor for tensor in operator.inputs if tensor and tensor.data is None}.values())
    with context, ir.Location.unknown():
        module, emitter = ir.Module.create(), Emitter("shapes", Budget())
        interfaces = [Interface(tensor.name, tensor.shape, tensor.element) for tensor in inputs]
        block = emitter.function(module, interfaces, ())
        for tensor, argument in zip(inputs, block.arguments, strict=True):
            emitter.define(tensor, argument)
        with ir.InsertionPoint(block):
            given = plan(operator)(emitter)
        return [shape_of(value.type) for value in ([given] if isinstance(given, ir.Value) else given)]


def _reshape(operator: Operator) -> Sequence[Shape]:
    data, *shape = checks.operands(operator, 1, 2)
    wanted: Shape = checks.integers(shape[0], "shape") if shape else operator.option("NewShape")
    known = math.prod(extent for extent in wanted if extent != -1)
    require(wanted.count(-1) <= 1 and known >= 1, f"shape must have at most one unknown extent, but got {list(wanted)}")
    return [tuple(math.prod(data.shape) // known if extent == -1 else extent for extent in wanted)]


def _squeeze(operator: Operator) -> Sequence[Shape]:
    (data,) = checks.operands(operator, 1)
    removed = {axis % len(data.shape) for axis in operator.option("SqueezeDims")}
    if not removed:
        return [tuple(extent for extent in data.shape if extent != 1)]
    return [tuple(extent for axis, extent in enumerate(data.shape) if axis not in removed)]


def _expand_dims(operator: Operator) -> Sequence[Shape]:
    data, axes = checks.operands(operator, 2)
    axis_index = checks.axis_of(checks.integers(axes, "axis"), len(data.shape) + 1)
    return [(*data.shape[:axis_index], 1, *data.shape[axis_index:])]


def _fully_connected(operator: Operator) -> Sequence[Shape]:
    keeps = operator.option("KeepNumDims")
    data, weight, *_ = checks.operands(operator, 2, 3)
    channels, depth = weight.shape
    rows = data.shape[:-1] if keeps else (math.prod(data.shape) // max(depth, 1),)
    return [(*rows, channels)]


def _batch_matmul(operator: Operator) -> Sequence[Shape]:
    adjoint = operator.options("AdjX", "AdjY")
    lhs, rhs = (tensor.shape for tensor in checks.operands(operator, 2))
    require(min(len(lhs), len(rhs)) >= 2, "operands must have at least 2 dimensions")
    rows, columns = lhs[-1 if adjoint[0] else -2], rhs[-2 if adjoint[1] else -1]
    return [(*np.broadcast_shapes(lhs[:-2], rhs[:-2]), rows, columns)]


def _convolution(operator: Operator) -> Sequence[Shape]:
    options, channel_axis = checks.window_options(operator), 3 if operator.kind == "DEPTHWISE_CONV_2D" else 0
    data, weight, *_ = checks.operands(operator, 2, 3)
    require(len(data.shape) == len(weight.shape) == 4, "input and weight must have 4 dimensions")
    size, kernel = data.shape[1:3], weight.shape[1:3]
    padding = options.explicit(size, kernel)
    grown = [extent + padding[i] + padding[2 + i] for i, extent in enumerate(size)]
    rests = [grown[i] - (kernel[i] - 1) * options.dilation[i] - 1 for i in range(2)]
    return [(data.shape[0], *(rests[i] // options.strides[i] + 1 for i in range(2)), weight.shape[channel_axis])]


def _broadcast(operator: Operator) -> Sequence[Shape]:
    return [np.broadcast_shapes(*(tensor.shape for tensor in operator.inputs if tensor is not None))]


_ELEMENTWISE = (
    *("ABS", "ADD", "CAST", "CEIL", "DEQUANTIZE", "DIV", "ELU", "EXP", "FLOOR", "FLOOR_DIV", "GELU", "HARD_SWISH"),
    *("L2_NORMALIZATION", "LEAKY_RELU", "LOG", "LOGISTIC", "LOG_SOFTMAX", "MAXIMUM", "MINIMUM", "MUL", "NEG", "PRELU"),
    *("QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SOFTMAX", "SQRT", "SQUARE"),
    *("SQUARED_DIFFERENCE", "SUB", "TANH"),
)
"""Of which the shape is known where the node is refused, too."""
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _broadcast),
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "EXPAND_DIMS": _expand_dims,
    "FULLY_CONNECTED": _fully_connected,
    "RESHAPE": _reshape,
    "SHAPE": lambda operator: [(len(checks.operands(operator, 1)[0].shape),)],
    "SQUEEZE": _squeeze,
    "TRANSPOSE_CONV": lambda operator: [checks.integers(checks.operands(operator, 3, 4)[0], "output shape")],
}
