"""The element-wise cases of CMSIS-NN as `qnn` modules."""

from typing import Any

import numpy as np
from cmsis_nn_cases import Case, Source, result
from graphs import graph

from qdialect.arithmetic import AddArithmetic, Rounding
from qdialect.arithmetic.choices import SoftmaxArithmetic
from qdialect.dialect import AddOp, MaximumOp, MinimumOp, MulOp, PadOp, SoftmaxOp
from qdialect.ir._mlir import ir

_DIMENSIONS = "NHWC"
_SPELLED = ("BATCH", "HEIGHT", "WIDTH", "CHANNEL")
# Integer bits of the fixed-point differences that gemmlowp's exponential takes.
_SOFTMAX_INTEGER_BITS = 5


def _parameters(source: Source) -> dict[str, Any]:
    low, high = source.bounds()
    return {
        "lhs_zero_point": -source.number("INPUT1_OFFSET"),
        "rhs_zero_point": -source.number("INPUT2_OFFSET"),
        "output_scale": 1.0,
        "output_zero_point": source.number("OUTPUT_OFFSET"),
        "output_min": low,
        "output_max": high,
    }


def _pair(source: Source, op: Any, **attributes: Any) -> Case:
    lhs, rhs = source.array("input1"), source.array("input2")
    types = [f"tensor<{array.size}xi8>" for array in (lhs, rhs)]

    def body(left: ir.Value, right: ir.Value) -> ir.Value:
        return result(op, left, right, element="i8", **_parameters(source), **attributes)

    return Case(graph(types, body), (lhs, rhs), source.array("output_ref"))


def addition() -> Case:
    """Both inputs are multiplied by 1/2 and the sum by 2^-20: their scale is half of the output's."""
    arithmetic = {"arithmetic": AddArithmetic.SHIFTED_FIXED, "rounding": Rounding.FIXED32_DOUBLE}
    return _pair(Source("add"), AddOp, lhs_scale=0.5, rhs_scale=0.5, **arithmetic)


def product() -> Case:
    source = Source("mul")
    scale = float(np.ldexp(source.number("OUTPUT_MULT"), source.number("OUTPUT_SHIFT") - 31))
    return _pair(source, MulOp, lhs_scale=scale, rhs_scale=1.0, rounding=Rounding.FIXED32_DOUBLE)


def extreme(name: str) -> Case:
    """The larger or the smaller of two tensors of one quantization, which broadcast."""
    source = Source(name)
    shapes = [source.shape(*(f"{dimension}_{k}" for dimension in _SPELLED)) for k in (1, 2)]
    operands = tuple(source.array(f"input_tensor_{k + 1}").reshape(shape) for k, shape in enumerate(shapes))
    whole = {"lhs_scale": 1.0, "lhs_zero_point": 0, "rhs_scale": 1.0, "rhs_zero_point": 0}
    whole |= {"output_scale": 1.0, "output_zero_point": 0}
    bounds = {"output_min": source.number("ACTIVATION_MIN"), "output_max": source.number("ACTIVATION_MAX")}
    op = MaximumOp if name.startswith("maximum") else MinimumOp

    def body(left: ir.Value, right: ir.Value) -> ir.Value:
        return result(op, left, right, element="i8", **whole, **bounds)

    types = [f"tensor<{'x'.join(map(str, shape))}xi8>" for shape in shapes]
    return Case(graph(types, body), operands, source.array("output"))


def softmax() -> Case:
    source = Source("softmax")
    rows, width = source.shape("NUM_ROWS", "ROW_SIZE")
    exponent = source.number("INPUT_LEFT_SHIFT") - 31 - (31 - _SOFTMAX_INTEGER_BITS)
    scale = float(np.ldexp(source.number("INPUT_MULT"), exponent))

    def body(x: ir.Value) -> ir.Value:
        output = {"output_scale": 1 / 256, "output_zero_point": -128, "arithmetic": SoftmaxArithmetic.TFLITE_FIXED}
        return result(SoftmaxOp, x, element="i8", axis=1, input_scale=scale, **output)

    data = source.array("input").reshape(rows, width)
    return Case(graph([f"tensor<{rows}x{width}xi8>"], body), (data,), source.array("output_ref"))


def pad(name: str) -> Case:
    source = Source(name)
    shape = source.shape(*(f"INPUT_{dimension}" for dimension in _DIMENSIONS))
    low, high = (source.shape(*(f"{side}_PAD_{dimension}" for dimension in _DIMENSIONS)) for side in ("PRE", "POST"))

    def body(x: ir.Value) -> ir.Value:
        return result(PadOp, x, element="i8", low=low, high=high, value=source.number("PAD_VALUE"))

    data = source.array("input_tensor").reshape(shape)
    types = [f"tensor<{'x'.join(map(str, shape))}xi8>"]
    return Case(graph(types, body), (data,), source.array("output"))
