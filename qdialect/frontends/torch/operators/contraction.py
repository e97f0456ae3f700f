"""A convolution or matrix product of quantized numbers, before anyone asks how its result is quantized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, DequantizeOp, RequantizeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, check_scale, require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant, F32Tensor, Plan, limit, quantize
from qdialect.frontends.planning.weight import LARGEST_BIAS, Weight, ordered_weight
from qdialect.frontends.torch.operators.registry import Call
from qdialect.frontends.torch.tensors import Quantized
from qdialect.profiles import PYTORCH

Accumulate = Callable[[Emitter, Array | None], ir.Value]
"""Builds i32 accumulators, their channels last, to which an integer bias is added."""


@dataclass(frozen=True, eq=False)
class Contraction(F32Tensor):
    """f32 values ``accumulator * s_x * s_w + bias``; `finish` brings what has channels last to the model's shape.

    PyTorch sums in float32 and adds a float bias.  The sum of integers is exact, and where the bias counts whole
    units of the accumulator it is a part of it; otherwise it is added to the f32 values.
    """

    data: Quantized
    weight: Weight
    bias: Array | None
    accumulate: Accumulate
    finish: Callable[[Emitter, ir.Value], Emitted]

    @property
    def _accumulator_scales(self) -> Array:
        """What an accumulator of each output channel counts: s_x * s_w in float32."""
        return np.float32(self.data.scales[0]) * np.array(self.weight.scales, dtype=np.float32)

    def _whole_bias(self) -> Array | None:
        """The bias in units of the accumulator, None where it is not a whole number of them."""
        if self.bias is None:
            return None
        with np.errstate(all="ignore"):
            counted = self.bias.astype(np.float64) / self._accumulator_scales.astype(np.float64)
        rounded = np.rint(counted)
        holds = np.array_equal(counted, rounded) and bool(np.all(np.abs(rounded) <= LARGEST_BIAS))
        return rounded.astype(np.int32) if holds else None

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        whole = self._whole_bias()
        if to.element not in EIGHT_BIT or (self.bias is not None and whole is None):
            return quantize(plan, name, self.f32(plan, name), to)

        def emit(emitter: Emitter) -> Emitted:
            accumulators = self.accumulate(emitter, whole)
            requantized = emitter.build(
                RequantizeOp,
                accumulators,
                element=to.element,
                input_scale=self.data.scales[0],
                weight_scales=self.weight.scales,
                output_scale=to.scale,
                output_zero_point=to.zero_point,
                axis=len(shape_of(accumulators.type)) - 1,
                **PYTORCH.rescale,
            )
            return self.finish(emitter, requantized)

        return limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        def emit(emitter: Emitter) -> Emitted:
            accumulators = self.accumulate(emitter, None)
            shape = shape_of(accumulators.type)
            parameters = {
                "scales": tuple(map(float, self._accumulator_scales)),
                "zero_points": (0,),
                "axis": len(shape) - 1,
            }
            f32 = emitter.build(DequantizeOp, accumulators, element="f32", **parameters)
            if self.bias is not None:
                bias = emitter.build(BroadcastOp, emitter.constant(self.bias), element="f32", shape=shape)
                f32 = emitter.float_op("arith.addf", f32, bias)
            return self.finish(emitter, f32)

        return plan.compute(name, self.shape, "f32", emit)


def data_of(call: Call, name: str) -> Quantized:
    """Data that a contraction can read."""
    data = call.quantized(name)
    require(data.is_eight_bit, f"argument '{name}' must be i8 or ui8 with one scale, but got {data.values.element}")
    check_scale(data.scales[0], "input scale")
    return data


def weight_of(call: Call, name: str, order: tuple[int, ...], channel_axis: int) -> Weight:
    """Constant weights with their dimensions in `order`; scales by channel lie along `channel_axis` of the model's."""
    source = call.tensor(name)
    holds = isinstance(source, Quantized) and source.values.data is not None
    require(holds, f"argument '{name}' must be quantized and constant")
    assert isinstance(source, Quantized)
    return ordered_weight(source, order, channel_axis)


def bias_of(call: Call, name: str, channels: int) -> Array | None:
    """A constant float bias."""
    tensor = call.result(name)
    if tensor is None:
        return None
    values = tensor.f32_values() if isinstance(tensor, Quantized) else None
    if isinstance(tensor, Constant):
        values = tensor.array
    require(values is not None, f"argument '{name}' must be constant")
    assert values is not None
    require(values.dtype == np.float32, f"bias must be f32, but got {values.dtype}")
    require(values.size in (1, channels), f"bias must have {channels} entries, but got {values.size}")
    return np.ascontiguousarray(np.broadcast_to(values.ravel(), (channels,)))
