"""Arm's CMSIS-NN unit tests as `qnn` modules: its arrays and numbers, in the order of dimensions of this project.

They are no part of the project: `vectors/cmsis_nn` is looked for beside the folder of the models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from absence import absent
from drawn_graphs import graph
from numpy.typing import NDArray

from qdialect.arithmetic import AddArithmetic, Division, Rounding
from qdialect.arithmetic.choices import SoftmaxArithmetic
from qdialect.dialect import (
    AddOp,
    AvgPool2DOp,
    ClipOp,
    Conv2DOp,
    ConvTranspose2DOp,
    DenseOp,
    MatMulOp,
    MaximumOp,
    MaxPool2DOp,
    MinimumOp,
    MulOp,
    PadOp,
    QnnOp,
    RequantizeOp,
    SoftmaxOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir

Array = NDArray[Any]
Body = Callable[[ir.Value], ir.Value]
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "vectors" / "cmsis_nn"


@dataclass(frozen=True)
class Case:
    """A test: a module, its inputs and the elements of its output."""

    module: ir.Module
    inputs: tuple[Array, ...]
    expected: Array


class Source:
    """The arrays and the numbers of a case, by their names without the case's own."""

    def __init__(self, name: str) -> None:
        index = FOLDER / "index.json"
        if not index.exists():
            absent("cmsis_nn is not here")
        found = json.loads(index.read_text())["cases"][name]
        with np.load(FOLDER / f"{name}.npz") as arrays:
            self._arrays = {key.removeprefix(f"{name}_"): array for key, array in arrays.items()}
        self._numbers: Mapping[str, int] = {
            key.removeprefix(f"{name.upper()}_"): value for key, value in found["defines"].items()
        }

    def number(self, name: str, default: int = 0) -> int:
        return int(self._numbers.get(name, default))

    def array(self, *names: str) -> Array:
        return next(self._arrays[name] for name in names if name in self._arrays)

    def shape(self, *names: str) -> tuple[int, ...]:
        return tuple(self.number(name) for name in names)

    def multipliers(self, channels: int) -> list[float]:
        """``q * 2^(e - 31)`` for each output channel, exact in float64."""
        if "OUTPUT_MULTIPLIER" not in self._numbers:
            q, e = self.array("output_mult", "output_multiplier")[:channels], self.array("output_shift")[:channels]
        else:
            q, e = np.array([self.number("OUTPUT_MULTIPLIER")]), np.array([self.number("OUTPUT_SHIFT")])
        return np.ldexp(q.astype(np.float64), e.astype(np.int64) - 31).tolist()

    def bias(self, filters: int) -> Array:
        names = [name for name in ("biases", "bias") if name in self._arrays]
        return self._arrays[names[0]] if names else np.zeros(filters, np.int32)

    def bounds(self) -> tuple[int, int]:
        start = "OUT_" if "OUT_ACTIVATION_MIN" in self._numbers else ""
        return self.number(f"{start}ACTIVATION_MIN"), self.number(f"{start}ACTIVATION_MAX")


def result(op: type[QnnOp], *operands: ir.Value | None, element: str, **attributes: Any) -> ir.Value:
    return build(op, *operands, element=element, **attributes).operation.results[0]


def finished(source: Source, accumulators: ir.Value, channels: int, axis: int) -> ir.Value:
    """Accumulators of input scale 1, rescaled twice rounding as gemmlowp does, and clamped."""
    values = result(
        RequantizeOp,
        accumulators,
        element="i8",
        input_scale=1.0,
        weight_scales=source.multipliers(channels),
        output_scale=1.0,
        output_zero_point=source.number("OUTPUT_OFFSET"),
        axis=axis,
        rounding=Rounding.FIXED32_DOUBLE,
    )
    low, high = source.bounds()
    return result(ClipOp, values, element="i8", min=low, max=high)


def case_of(data: Array, expected: Array, body: Body) -> Case:
    shape = "x".join(map(str, data.shape))
    return Case(graph([f"tensor<{shape}xi8>"], body), (data,), expected)


def accumulated(source: Source, op_class: type[QnnOp], weights: Array, filters: int, axis: int, **how: Any) -> Body:
    """What a product of the data with `weights` becomes, whose channels are those of `axis`."""
    bias = source.bias(filters)

    def body(x: ir.Value) -> ir.Value:
        scales: dict[str, Any] = {"input_scale": 1.0, "weight_scales": source.multipliers(filters)}
        point = -source.number("INPUT_OFFSET")
        operands = x, constant(weights), constant(bias)
        accumulators = result(op_class, *operands, element="i32", input_zero_point=point, **scales, **how)
        return finished(source, accumulators, filters, axis)

    return body


def convolution(name: str) -> Case:
    """A convolution, grouped where its filters are not as deep as the input, or depthwise."""
    source = Source(name)
    batches, height, width, channels = source.shape("INPUT_BATCHES", "INPUT_H", "INPUT_W", "IN_CH")
    filters = source.number("OUT_CH")
    kernel = source.shape("FILTER_Y", "FILTER_X")
    is_depthwise = name.startswith("depthwise")
    weights = source.array("weights")
    if is_depthwise:
        weights = np.moveaxis(weights.reshape(*kernel, filters), 2, 0)[..., None]
    else:
        weights = weights.reshape(filters, *kernel, -1)
    strides, padding = source.shape("STRIDE_Y", "STRIDE_X"), source.shape("PAD_Y", "PAD_X")
    dilation = (source.number("DILATION_Y", 1), source.number("DILATION_X", 1))
    output = source.shape("OUTPUT_H", "OUTPUT_W")
    # What the output's size asks for beyond the end of the data.
    ends = [
        max((output[i] - 1) * strides[i] + (kernel[i] - 1) * dilation[i] + 1 - padding[i] - (height, width)[i], 0)
        for i in range(2)
    ]
    window: dict[str, Any] = {"strides": strides, "padding": (*padding, *ends), "dilation": dilation}
    body = accumulated(source, Conv2DOp, weights, filters, 3, groups=channels // weights.shape[3], **window)
    data = source.array("input").reshape(batches, height, width, channels)
    return case_of(data, source.array("output_ref"), body)


def fully_connected(name: str) -> Case:
    source = Source(name)
    filters, depth = source.shape("OUT_CH", "ACCUMULATION_DEPTH")
    weights = source.array("weights").reshape(filters, depth)
    body = accumulated(source, DenseOp, weights, filters, 1, weight_zero_points=(-source.number("FILTER_OFFSET"),))
    return case_of(source.array("input").reshape(-1, depth), source.array("output_ref", "output"), body)


def transposed_convolution(name: str) -> Case:
    source = Source(name)
    batches, height, width, channels = source.shape("INPUT_BATCHES", "INPUT_H", "INPUT_W", "IN_CH")
    filters, kernel = source.number("OUT_CH"), source.shape("FILTER_Y", "FILTER_X")
    strides, padding = source.shape("STRIDE_Y", "STRIDE_X"), source.shape("PAD_Y", "PAD_X")
    output = source.shape("OUTPUT_H", "OUTPUT_W")
    whole = [((height, width)[i] - 1) * strides[i] + kernel[i] for i in range(2)]
    ends = [whole[i] - padding[i] - output[i] for i in range(2)]
    weights = source.array("weights").reshape(filters, *kernel, channels)
    window: dict[str, Any] = {
        "strides": strides,
        "padding": (*padding, *(max(end, 0) for end in ends)),
        "output_padding": tuple(max(-end, 0) for end in ends),
    }
    body = accumulated(source, ConvTranspose2DOp, weights, filters, 3, **window)
    data = source.array("input")[: batches * height * width * channels].reshape(batches, height, width, channels)
    return case_of(data, source.array("output_ref"), body)


def pool(name: str) -> Case:
    source = Source(name)
    batches, height, width, channels = source.shape("BATCH_SIZE", "INPUT_H", "INPUT_W", "INPUT_C")
    kernel, strides = source.shape("FILTER_H", "FILTER_W"), source.shape("STRIDE_H", "STRIDE_W")
    padding, output = source.shape("PADDING_H", "PADDING_W"), source.shape("OUTPUT_H", "OUTPUT_W")
    ends = [max((output[i] - 1) * strides[i] + kernel[i] - padding[i] - (height, width)[i], 0) for i in range(2)]
    is_average = name.startswith("avg")
    average = {"zero_point": 0, "division": Division.HALF_AWAY} if is_average else {}

    def body(x: ir.Value) -> ir.Value:
        return result(
            AvgPool2DOp if is_average else MaxPool2DOp,
            x,
            element="i8",
            kernel=kernel,
            strides=strides,
            padding=(*padding, *ends),
            output_min=source.number("ACTIVATION_MIN"),
            output_max=source.number("ACTIVATION_MAX"),
            **average,
        )

    data = source.array("input_tensor").reshape(batches, height, width, channels)
    return case_of(data, source.array("output"), body)


def batch_matmul(name: str) -> Case:
    """A product of two batches of matrices; a transposed operand is given as it is multiplied."""
    source = Source(name)
    sides = ("lhs", "rhs")
    shapes = [
        source.shape(*(f"{side.upper()}_{part}" for part in ("BATCH", "HEIGHT", "ROWS", "COLS"))) for side in sides
    ]
    lhs, rhs = (source.array(f"{side}_input_tensor").reshape(shape) for side, shape in zip(sides, shapes, strict=True))
    left = lhs.swapaxes(2, 3) if source.number("ADJ_X") else lhs
    right = rhs.swapaxes(2, 3) if source.number("ADJ_Y") else rhs
    operands = (np.ascontiguousarray(left), np.ascontiguousarray(right))

    def body(x: ir.Value, y: ir.Value) -> ir.Value:
        accumulators = result(
            MatMulOp,
            x,
            y,
            element="i32",
            input_scale=1.0,
            input_zero_point=-source.number("LHS_OFFSET"),
            weight_scales=source.multipliers(1),
            weight_zero_points=(-source.number("RHS_OFFSET"),),
        )
        return finished(source, accumulators, 1, 3)

    types = [f"tensor<{'x'.join(map(str, array.shape))}xi8>" for array in operands]
    return Case(graph(types, body), operands, source.array("output"))


# The element-wise cases of CMSIS-NN as `qnn` modules.

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
