"""A convolution or matrix product of quantized numbers, before anyone asks how its result is quantized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DequantizeOp, RequantizeOp
from qdialect.frontends.common import Array, check_scale, require
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant, F32Tensor, Plan, stored_axis
from qdialect.frontends.planning.weight import LARGEST_BIAS
from qdialect.profiles import ORT


@dataclass(frozen=True, eq=False)
class Contraction(F32Tensor):
    """f32 values ``accumulator * s_x * s_w``.

    `accumulate` builds the accumulators, whose channels are last; `finish` brings an integer result to the model's
    shape.  ONNX Runtime rounds ``float32(acc) * float32(s_x * s_w / s_y)`` to even and adds the zero point last.
    """

    data: Quantized
    scales: tuple[float, ...]
    """Of the weights."""
    accumulate: Callable[[Emitter], ir.Value]
    finish: Callable[[Emitter, ir.Value], Emitted]
    axis: int
    """Of the accumulators, the channels' dimension."""
    model_axis: int
    """The same of the model's shape."""

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")

        def emit(emitter: Emitter) -> Emitted:
            requantized = emitter.build(
                RequantizeOp,
                self.accumulate(emitter),
                element=to.element,
                input_scale=self.data.scales[0],
                weight_scales=self.scales,
                output_scale=to.scale,
                output_zero_point=to.zero_point,
                axis=self.axis,
                **ORT.rescale,
            )
            return self.finish(emitter, requantized)

        return plan.compute(name, self.shape, to.element, emit)

    def accumulators(self, plan: Plan, name: str) -> Value:
        """The i32 accumulators."""
        return plan.compute(name, self.shape, "i32", lambda emitter: self.finish(emitter, self.accumulate(emitter)))

    def _f32(self, plan: Plan, name: str) -> Value:
        accumulators = self.accumulators(plan, name)
        # The product of the scales in float32.
        scales = tuple(float(scale) for scale in f32_scales(self.data, self.scales))

        def emit(emitter: Emitter) -> Emitted:
            held, is_channels_last = emitter.either(accumulators)
            axis = stored_axis(self.model_axis, len(self.shape), is_channels_last)
            parameters = {"scales": scales, "zero_points": (0,), "axis": axis}
            return emitter.build(DequantizeOp, held, element="f32", **parameters), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def f32_scales(data: Quantized, scales: tuple[float, ...]) -> Array:
    """What an accumulator of each output channel counts: s_x * s_w in float32; `scales` are those of the weights."""
    return np.float32(data.scales[0]) * np.array(scales, dtype=np.float32)


def data_of(data: Quantized) -> Quantized:
    """Data that a contraction can read."""
    parameters = data.parameters
    require(parameters.element in EIGHT_BIT, f"input must be i8 or ui8, but got {parameters.element}")
    check_scale(parameters.scale, "input scale")
    return data


def bias_of(
    call: Call, index: int, data: Quantized, scales: tuple[float, ...], channels: int, factor: float | None = None
) -> Array | None:
    """Input `index` as i32 quantized values.

    Quantized values are taken as they are, as ONNX Runtime does: their scale has to be s_x * s_w.  f32 values are
    divided by that product and rounded to even.  With a `factor` the bias counts so often, and quantized values are f32
    values too.
    """
    tensor = call.optional(index)
    if tensor is None:
        return None
    if isinstance(tensor, Constant):
        values = tensor.array
    else:
        source = call.quantized(index)
        require(source.values.data is not None, "bias must be constant")
        assert source.values.data is not None
        is_whole = factor is None and source.values.element == "i32"
        values = source.values.data if is_whole else np.asarray(source.f32_values())
        require(not any(source.zero_points) or values.dtype != np.int32, "zero point of an i32 bias must be 0")
    fits = values.size == 1 or (values.size == channels == values.shape[-1])
    require(fits, f"bias must have {channels} entries along its last dimension, but got {list(values.shape)}")
    flat = np.broadcast_to(values.ravel(), (channels,))
    if values.dtype == np.int32:
        return flat
    require(values.dtype == np.float32, f"bias must be i32 or f32, but got {values.dtype}")
    f32_values = (1.0 if factor is None else factor) * flat.astype(np.float64)
    rounded = np.rint(f32_values / f32_scales(data, scales).astype(np.float64))
    require(bool(np.all(np.abs(rounded) <= LARGEST_BIAS)), "bias must fit into i32 at the scale of the accumulators")
    return rounded.astype(np.int32)
