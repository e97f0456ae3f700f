"""Softmax and QLinearSoftmax, by ONNX Runtime's table of exponentials."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect.dialect import SoftmaxOp
from qdialect.dialect.attribute_kinds import LARGEST_SCALE, SMALLEST_SCALE
from qdialect.frontends.common import require
from qdialect.frontends.onnx.float_groups import GroupKernel
from qdialect.frontends.onnx.operators.elementwise import OFFSET, shifted
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant, F32Tensor, Plan, Tensor, filled
from qdialect.frontends.planning.wide_scales import PlainlyDequantized, unbounded_scale_of, wide_scale_of
from qdialect.quant_math.choices import SoftmaxArithmetic

ALONG_AXIS = 13
"""From this operator set on rows run along the axis alone; before, along all dimensions from the axis on."""


@dataclass(frozen=True, eq=False)
class Shares(F32Tensor):
    """The softmax of rows: along `axis`, or along `axis` and all dimensions after it."""

    source: Quantized
    axis: int
    is_flat: bool
    kernel: GroupKernel

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        before = self.source.parameters
        for what, element in (("input", before.element), ("output", to.element)):
            require(element in EIGHT_BIT, f"{what} must be i8 or ui8, but got {element}")
        is_shifted = self.kernel is GroupKernel.UNSIGNED and to.element == "i8"
        flat = (math.prod(self.shape[: self.axis]), math.prod(self.shape[self.axis :]))

        def emit(emitter: Emitter) -> Emitted:
            data = emitter.to_channels_first(self.source.values)
            shares = emitter.build(
                SoftmaxOp,
                emitter.reshape(data, flat) if self.is_flat else data,
                element="ui8" if is_shifted else to.element,
                axis=1 if self.is_flat else self.axis,
                input_scale=before.scale,
                output_scale=to.scale,
                output_zero_point=to.zero_point + (OFFSET if is_shifted else 0),
                arithmetic=SoftmaxArithmetic.ORT_TABLE,
            )
            return emitter.reshape(shifted(emitter, shares, "i8") if is_shifted else shares, self.shape), False

        return plan.compute(name, self.shape, to.element, emit)


@dataclass(frozen=True, eq=False)
class NoShares(F32Tensor):
    """The softmax by an infinite scale: the table of ONNX Runtime holds NaN, which is -2^31 as an integer.

    To that the zero point is added, in 8 bits for ui8, and in 32 bits that wrap around and saturate for i8.
    """

    element: str
    kernel: GroupKernel

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        elements = (self.element, to.element)
        require(
            elements in (("i8", "i8"), ("ui8", "ui8")), f"types must be i8 or ui8, but got {' and '.join(elements)}"
        )
        saturated = to.maximum if to.zero_point < 0 else to.minimum
        is_unsigned = to.element == "ui8" or self.kernel is GroupKernel.UNSIGNED
        fill = to.zero_point if is_unsigned else saturated
        return filled(plan, name, self.shape, fill, to.element)


@imports("Softmax")
def _softmax(call: Call) -> Tensor:
    call.count(1)
    source = call.tensor(0)
    axis = _axis(call, len(source.shape), call.node.version)
    if isinstance(source, PlainlyDequantized) and not math.isfinite(source.scale):
        return NoShares(source.shape, source.quantized_values.element, call.kernel)
    return _shares(call, _dequantized(call), axis, call.node.version)


@imports("com.microsoft.QLinearSoftmax")
def _qlinear_softmax(call: Call) -> Tensor:
    call.count(4, 5)
    scale, version = unbounded_scale_of(call.tensor(1)), call.attribute("opset", ALONG_AXIS)
    axis = _axis(call, len(call.tensor(0).shape), version)
    if scale is not None and not math.isfinite(scale):
        value = call.value(0)
        shares = NoShares(value.shape, value.element, call.kernel)
        return shares.quantized(call.plan, call.name, parameters_of(call, 3, value.element))
    source = dequantized(_with_limited_scale(call), 0, 1, 0)
    qdq_group = _shares(call, source, axis, version)
    return qdq_group.quantized(call.plan, call.name, parameters_of(call, 3, source.values.element))


def _with_limited_scale(call: Call) -> Call:
    """The scale of the data within the dialect's."""
    scale = wide_scale_of(call.tensor(1))
    return call if scale is None else call.with_input(1, Constant(np.array(_limited(scale), np.float32)))


def _dequantized(call: Call) -> Quantized:
    """What a DequantizeLinear gives, with a scale within the dialect's."""
    source = call.tensor(0)
    if not isinstance(source, PlainlyDequantized):
        return call.quantized(0)
    return Quantized(source.shape, source.quantized_values, (_limited(source.scale),), (source.zero_point,))


def _limited(scale: float) -> float:
    """The nearest scale of the dialect to one beyond; shares are the same.

    ``exp(-scale * k)`` of whole k is 0 in float32 for k >= 1 from 2^30 on, and 1 for k <= 255 up to 2^-60.
    """
    return LARGEST_SCALE if scale > 1 else SMALLEST_SCALE


def _axis(call: Call, rank: int, version: int) -> int:
    # ONNX Runtime's own operator has one default.
    axis: int = call.attribute("axis", 1 if version < ALONG_AXIS and call.node.kind == "Softmax" else -1)
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    return axis % rank


def _shares(call: Call, source: Quantized, axis: int, version: int) -> Shares:
    return Shares(source.shape, source, axis, version < ALONG_AXIS and axis < len(source.shape) - 1, call.kernel)
