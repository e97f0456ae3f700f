"""Plans quantization by a range that is found when the network runs, and products of what is quantized so.

The range is that of a whole tensor, or of each row (each token)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect.dialect import DynamicConv2DOp, DynamicDenseOp, F32MaxOp, F32MinOp
from qdialect.dialect.type_constraints import SMALL_FLOATS
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, require
from qdialect.frontends.planning.contraction import Weight, sums_fit
from qdialect.frontends.planning.elementwise import unary
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import EIGHT_BIT, Computed, Constant, F32Tensor, Plan, Quantized
from qdialect.frontends.torch.operators import quantization, tensors
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.ir._mlir import ir

# All arithmetic is float32, as PyTorch's own is.  PyTorch holds scales of rows with zero points in float64 and divides
# and rounds by these, so the quotient is rounded as if it were exact.  Of a number that is exactly halfway between two
# quantized values the last bit of PyTorch's reciprocal decides; here it becomes the even one.

_EPSILON = float(np.finfo(np.float32).eps)
_MIN_LARGEST = 1e-5
"""The least magnitude that the largest number of a row is taken to have, in a symmetric quantization."""
Range = Callable[[Emitter, ir.Value, ir.Value], ir.Value]


@imports(f"{quantization.SPACE}.choose_qparams.tensor")
def _choose(call: Call) -> Result:
    """``scale = max((high - low) / (qmax - qmin), eps)``, ``zero_point = clamp(qmin - round(low / scale))``.

    `low` and `high` are the range of the numbers and 0; of small floats their distance and the quotient are such.
    """
    low_value, high_value = (
        float(bound) for bound in quantization.quantized_bounds(call, quantization.quantized_element(call))
    )
    epsilon, rounded = _epsilon(call), _rounded(call)

    def scale(emitter: Emitter, low: ir.Value, high: ir.Value) -> ir.Value:
        s = emitter.f32
        distance = rounded(emitter, s("subf", high, low))
        return s("maximumf", rounded(emitter, s("divf", distance, high_value - low_value)), epsilon)

    def point(emitter: Emitter, low: ir.Value, high: ir.Value) -> ir.Value:
        s = emitter.f32
        found = s("subf", low_value, s("roundeven", s("divf", low, scale(emitter, low, high))))
        # Where the range has a NaN, PyTorch subtracts the least integer, which wraps around where `low_value` is 0.
        is_number = emitter.compare("eq", found, found)
        found = emitter.select(is_number, found, high_value if low_value < 0 else low_value)
        return s("minimumf", s("maximumf", found, low_value), high_value)

    ends = _ends(call, _all_axes(call), (1,))
    return _scale(call, ends, scale), _whole(call, _of_ends(call, ends, point))


@imports(f"{quantization.SPACE}.choose_qparams_symmetric.tensor")
def _choose_symmetric(call: Call) -> Result:
    """``scale = max(largest magnitude / ((qmax - qmin) / 2), eps)``; the zero point is the middle of the type."""
    element = quantization.quantized_element(call)
    bounds, epsilon, rounded = quantization.quantized_bounds(call, element), _epsilon(call), _rounded(call)

    def scale(emitter: Emitter, low: ir.Value, high: ir.Value) -> ir.Value:
        s = emitter.f32
        largest = s("maximumf", s("negf", low), high)
        return s("maximumf", rounded(emitter, s("divf", largest, (bounds[1] - bounds[0]) / 2)), epsilon)

    ends = _ends(call, _all_axes(call), (1,))
    return _scale(call, ends, scale), Constant(np.array([128 if element == "ui8" else 0], np.int64))


@imports(f"{quantization.SPACE}.choose_qparams_per_token.default")
def _choose_by_rows(call: Call) -> Result:
    """``scale = max(largest magnitude, 1e-5) / 127`` of each row, as f32; zero points are 0."""
    require(quantization.quantized_element(call) == "i8", "dtype must be i8")

    def scale(emitter: Emitter, low: ir.Value, high: ir.Value) -> ir.Value:
        s = emitter.f32
        return s("divf", s("maximumf", s("maximumf", s("negf", low), high), _MIN_LARGEST), 127.0)

    shape = _rows(call)
    ends = _ends(call, (len(shape) - 1,), shape)
    scales = _of_ends(call, ends, scale)
    return Computed(shape, scales), Constant(np.zeros(shape, np.float32))


@imports(
    f"{quantization.SPACE}.choose_qparams_per_token_asymmetric.default",
    f"{quantization.SPACE}._choose_qparams_per_token_asymmetric_impl.default",
)
def _choose_asymmetric_by_rows(call: Call) -> Result:
    """``scale = max((high - low) / 255, eps)`` of each row; the zero point from the end where it loses less."""

    def scale(emitter: Emitter, low: ir.Value, high: ir.Value) -> ir.Value:
        s = emitter.f32
        return s("maximumf", s("divf", s("subf", high, low), 255.0), _EPSILON)

    shape = _rows(call)
    ends = _ends(call, (len(shape) - 1,), shape)
    scales = _of_ends(call, ends, scale)

    def emit(emitter: Emitter) -> Emitted:
        s = emitter.f32
        low, high = (s("divf", emitter.to_channels_first(end), emitter.to_channels_first(scales)) for end in ends)
        errors = s("addf", s("addf", low, -128.0), s("addf", high, 127.0))
        found = emitter.select(emitter.compare("gt", errors, 0.0), s("subf", -128.0, low), s("subf", 127.0, high))
        return s("roundeven", s("minimumf", s("maximumf", found, -128.0), 127.0)), False

    point = call.plan.compute(call.name, shape, "f32", emit)
    return tensors.RunTimeScale(shape, scales), _whole(call, point)


def _epsilon(call: Call) -> float:
    return float(np.float32(call.argument("eps")))


def _rounded(call: Call) -> Callable[[Emitter, ir.Value], ir.Value]:
    """The rounding of f32 values to the type of the input, of which PyTorch's operators on the range are."""
    element = call.noted[call.reads("input") or ""].element

    def rounded(emitter: Emitter, value: ir.Value) -> ir.Value:
        if element not in SMALL_FLOATS:
            return value
        return emitter.convert("arith.extf", emitter.convert("arith.truncf", value, element), "f32")

    return rounded


def _rows(call: Call) -> Shape:
    shape = call.tensor("input").shape
    require(len(shape) >= 1, "input must have at least 1 dimension, but got 0")
    return (*shape[:-1], 1)


def _all_axes(call: Call) -> Shape:
    return tuple(range(len(call.tensor("input").shape)))


def _ends(call: Call, axes: Shape, shape: Shape) -> tuple[Value, Value]:
    """The least number over `axes`, 0 at most, and the largest, 0 at least."""
    source = call.f32("input").f32(call.plan, call.name)

    def end(op_class: type[F32MinOp | F32MaxOp], joined: str) -> Value:
        def emit(emitter: Emitter) -> Emitted:
            held = emitter.either(source)[0] if len(axes) == len(source.shape) else emitter.to_channels_first(source)
            if not axes:
                return emitter.f32(joined, emitter.reshape(held, shape), 0.0), False
            found = emitter.build(op_class, held, element="f32", axes=axes, keep_dims=True, from_zero=True)
            return emitter.reshape(found, shape), False

        return call.plan.compute(call.name, shape, "f32", emit)

    return end(F32MinOp, "minimumf"), end(F32MaxOp, "maximumf")


def _of_ends(call: Call, ends: tuple[Value, Value], build: Range) -> Value:
    low, high = ends

    def emit(emitter: Emitter) -> Emitted:
        return build(emitter, emitter.to_channels_first(low), emitter.to_channels_first(high)), False

    return call.plan.compute(call.name, low.shape, "f32", emit)


def _scale(call: Call, ends: tuple[Value, Value], build: Range) -> tensors.RunTimeScale:
    return tensors.RunTimeScale(ends[0].shape, _of_ends(call, ends, build))


def _whole(call: Call, value: Value) -> Value:
    """Whole numbers as i64, which is PyTorch's type of zero points."""
    return unary(call, value, "i64", lambda s, x: s.convert("arith.fptosi", x, "i64"))


@imports(f"{quantization.SPACE}.quantize_per_token.default")
def _quantize_rows(call: Call) -> Result:
    """``clamp(round(x * (1 / scale) + zero_point))``."""
    return tensors.quantized_at_run_time(call.plan, call.name, call.f32("input"), _parameters(call))


@imports(f"{quantization.SPACE}.dequantize_per_token.default")
def _dequantize_rows(call: Call) -> Result:
    return tensors.dequantized(call.name, quantization.quantized_values(call), _parameters(call))


def _parameters(call: Call) -> tensors.RunTimeParameters:
    found = quantization.run_time_parameters(call, ("scales", "zero_points"), rounds_last=True)
    if found is None:
        raise UnsupportedError("scales must be known at run time alone, but they are constant")
    wanted = _rows(call)
    for name, value in (("scales", found.scale), ("zero_points", found.zero_point)):
        require(value.shape == wanted, f"{name} must have shape {list(wanted)}, but got {list(value.shape)}")
    return found


# Products of constant quantized weights and data that are quantized when the network runs: one op, with f32 results.
#
# Padding is zeros around the f32 values: every range holds 0, so these become zero points.


@dataclass(frozen=True, eq=False)
class DynamicContraction(F32Tensor):
    """``accumulator * (scale * s_w) + bias`` in float32; `finish` brings what has channels last to the model's shape.

    `read` gives the data as quantized values, of a tensor that is one of them or, where `is_padded`, of f32 values.
    """

    op_class: type[DynamicDenseOp | DynamicConv2DOp]
    data: tensors.RunTimeQuantized
    is_padded: bool
    weight: Weight
    taps: Array
    bias: Array | None
    attributes: dict[str, Any]
    read: Callable[[Emitter, Value], ir.Value]
    finish: Callable[[Emitter, ir.Value], Emitted]

    def _f32(self, plan: Plan, name: str) -> Value:
        parameters, source = self.data.parameters, self.data.values
        if self.is_padded and self.data.source is not None:
            source = self.data.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            data = self.read(emitter, source)
            operands = (
                parameters.quantize(emitter, data) if self.is_padded else data,
                emitter.constant(self.taps),
                emitter.to_channels_first(parameters.scale),
                parameters.narrow_point(emitter),
                None if self.bias is None else emitter.constant(self.bias),
            )
            how = {"weight_scales": self.weight.scales, "weight_zero_points": self.weight.zero_points}
            product = emitter.build(self.op_class, *operands, element="f32", **how, **self.attributes)
            return self.finish(emitter, product)

        return plan.compute(name, self.shape, "f32", emit)


def is_dynamic(call: Call, data: str, weight: str, channels: int) -> bool:
    """Whether data are quantized when the network runs, weights are constant ones of 8 bits, and sums are integers.

    Results lie along the axis `channels` of the weight.
    """
    right = call.tensor(weight)
    if not isinstance(call.tensor(data), tensors.RunTimeQuantized) or not isinstance(right, Quantized):
        return False
    holds = right.values.data is not None and right.values.element in EIGHT_BIT
    return holds and sums_fit(right, [axis for axis in range(len(right.shape)) if axis != channels])


def dynamic_data_of(call: Call, name: str) -> tensors.RunTimeQuantized:
    """The argument that `is_dynamic` has seen."""
    data = call.tensor(name)
    assert isinstance(data, tensors.RunTimeQuantized)
    return data
