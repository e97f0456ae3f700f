"""Quantized and dequantized by one operator, as quantization-aware training writes it.

``fake_quantize(x) = (clamp(round(x * (1 / scale)) + zero_point, quant_min, quant_max) - zero_point) * scale``, all in
float32; a NaN becomes the least quantized value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.common import Array, UnsupportedError, check_scale, require
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import Constant, known
from qdialect.frontends.torch.calls import call_operator
from qdialect.frontends.torch.operators.quantization import Channels, channels_of, number_of, whole_number_of
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.package import torch_package
from qdialect.frontends.torch.tensors import Quantized
from qdialect.profiles import PYTORCH
from qdialect.quant_math import NanPolicy, QuantParams, quantize_array

_PROFILE = replace(PYTORCH, nan=NanPolicy.MIN)
# Kernels like unsigned activations best.
_ELEMENTS = ("ui8", "i8", "i16")


def _bounds(call: Call) -> tuple[str, int, int]:
    """The type of the quantized values, and which of them there are."""
    minimum, maximum = (whole_number_of(call, f"quant_{end}") for end in ("min", "max"))
    for element in _ELEMENTS:
        low, high = ELEMENT_RANGES[element]
        if low <= minimum <= maximum <= high:
            return element, minimum, maximum
    raise UnsupportedError(f"quantized values must lie in 16 bits, but got [{minimum}, {maximum}]")


@imports(
    "fake_quantize_per_tensor_affine.default",
    "fake_quantize_per_tensor_affine.tensor_qparams",
    "_fake_quantize_learnable_per_tensor_affine.default",
)
def _of_tensor(call: Call) -> Result:
    return _fake_quantized(call)


@imports(
    "fake_quantize_per_tensor_affine_cachemask.default",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
)
def _of_tensor_with_mask(call: Call) -> Result:
    """The mask beside it is for gradients."""
    if call.given("fake_quant_enabled") is None or number_of(call, "fake_quant_enabled") != 0:
        return (_fake_quantized(call),)
    call.ignore("scale", "zero_point", "quant_min", "quant_max")
    return (call.f32("self"),)


def _fake_quantized(call: Call) -> Quantized:
    call.ignore("grad_factor")
    scale = float(np.float32(number_of(call, "scale")))
    if "learnable" not in call.node.kind:
        return _of_whole(call, scale, whole_number_of(call, "zero_point"))
    _, minimum, maximum = _bounds(call)
    zero_point = np.rint(np.float32(number_of(call, "zero_point")))
    return _of_whole(call, scale, int(np.clip(zero_point, minimum, maximum)))


def _of_whole(call: Call, scale: float, zero_point: int) -> Quantized:
    element, minimum, maximum = _bounds(call)
    check_scale(scale, "scale")
    holds = minimum <= zero_point <= maximum
    require(holds, f"zero point must be in [{minimum}, {maximum}], but got {zero_point}")
    to = QuantizedTensorType(_PROFILE, element, QuantParams(scale, zero_point), minimum, maximum)
    source = call.tensor("self")
    f32 = call.f32("self")
    if isinstance(source, Constant):
        call.plan.budget.spend_constant(source.shape, 8)
        values = known(call.name, to.quantize(call.constant("self")))
    else:
        values = f32.quantized(call.plan, call.name, to)
    return Quantized(values.shape, values, (scale,), (zero_point,))


@imports("fake_quantize_per_channel_affine.default", "_fake_quantize_learnable_per_channel_affine.default")
def _of_channels(call: Call) -> Result:
    return _fake_quantized_by_channels(call)


@imports("fake_quantize_per_channel_affine_cachemask.default")
def _of_channels_with_mask(call: Call) -> Result:
    return (_fake_quantized_by_channels(call),)


def _fake_quantized_by_channels(call: Call) -> Quantized:
    call.ignore("grad_factor")
    channels = channels_of(call, call.tensor("self").shape, ("scale", "zero_point"))
    points = channels.zero_points
    if "learnable" in call.node.kind:
        _, minimum, maximum = _bounds(call)
        points = np.clip(np.rint(points), minimum, maximum)
    else:
        require(points.dtype.kind == "i", f"argument 'zero_point' must be integers, but got {points.dtype}")
    return _of_constant(call, replace(channels, zero_points=points))


def _of_constant(call: Call, channels: Channels) -> Quantized:
    """PyTorch converts quotients to int64 before it limits them, which has no meaning for large ones."""
    element, minimum, maximum = _bounds(call)
    array, points = call.constant("self"), channels.zero_points
    require(array.dtype == np.float32, f"argument 'self' must be f32, but got {array.dtype}")
    require(bool(np.all(np.isfinite(array))), "argument 'self' must be finite")
    for scale in channels.scales:
        check_scale(float(scale), "scale")
    holds = np.all((points >= minimum) & (points <= maximum))
    require(bool(holds), f"zero points must be in [{minimum}, {maximum}], but got {points}")
    call.plan.budget.spend_constant(array.shape, 8)
    how = (_PROFILE.float_rounding, _PROFILE.scaling, _PROFILE.nan)
    values = quantize_array(array, channels.scales, points, channels.axis, NUMPY_DTYPES[element], *how)
    return Quantized(array.shape, known(call.name, np.clip(values, minimum, maximum)), *channels.numbers, channels.axis)


@imports("fused_moving_avg_obs_fake_quant.default")
def _of_observed(call: Call) -> Result:
    """Where nothing is observed any more, scale and zero point are those of the range that was."""
    require(number_of(call, "observer_on") == 0, "argument 'observer_on' must be 0: otherwise the program keeps ranges")
    call.ignore("averaging_const", "symmetric_quant", "per_row_fake_quant", "quant_min", "quant_max")
    call.ignore(*_KEPT, "ch_axis")
    if number_of(call, "fake_quant_on") == 0:
        return call.f32("self")
    scales, zero_points = _parameters_of_range(call)
    if call.argument("per_row_fake_quant"):
        return _of_constant(call, Channels(scales, zero_points, *call.integers("ch_axis", 1)))
    return _of_whole(call, float(scales[0]), int(zero_points[0]))


_KEPT = ("running_min", "running_max", "scale", "zero_point")


def _parameters_of_range(call: Call) -> tuple[Array, Array]:
    """Scales and zero points, which PyTorch's own operator writes where it keeps them."""
    torch: Any = torch_package()
    names = {call.reads(name): torch.from_numpy(np.array(call.constant(name))) for name in _KEPT}
    names |= {call.reads(name): torch.from_numpy(call.constant(name)) for name in ("observer_on", "fake_quant_on")}
    shape = call.tensor("self").shape if call.argument("per_row_fake_quant") else (1,)
    call.plan.budget.spend_constant(shape, 16)
    names[call.reads("self")] = torch.zeros(shape)
    call_operator(call.node, lambda name: names[name], "cpu")
    return names[call.reads("scale")].numpy(), names[call.reads("zero_point")].numpy()
