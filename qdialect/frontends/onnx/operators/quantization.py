"""QuantizeLinear and DequantizeLinear, and the quantization parameters that other operators take as inputs."""

from __future__ import annotations

import numpy as np

from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.common import check_scales, require
from qdialect.frontends.onnx.model import F32, element_name
from qdialect.frontends.onnx.operators.narrow_weights import dequantized_blocks, widened
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.run_time_parameters import (
    dequantized_at_run_time,
    has_run_time_parameters,
    quantized_at_run_time,
)
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import Constant, F32Tensor, Tensor, known, quantize_along
from qdialect.frontends.planning.wide_scales import (
    PlainlyDequantized,
    plainly_dequantized,
    plainly_quantized,
    unbounded_scale_of,
)
from qdialect.profiles import ORT
from qdialect.quant_math import quantize_array

# What a QuantizeLinear can give, and a DequantizeLinear read.
_QUANTIZED = tuple(ELEMENT_RANGES)
# The type of quantized values where a QuantizeLinear names none.
_UNSIGNED = 2
Floats = tuple[float, ...]
Integers = tuple[int, ...]


def scales_of(call: Call, index: int) -> Floats:
    """Input `index` as one scale or a list of them."""
    array = call.constant(index)
    require(array.dtype == "float32", f"scale must be f32, but got {array.dtype}")
    require(array.ndim <= 1 and array.size >= 1, f"scale must have 0 or 1 dimensions, but got {array.ndim}")
    scales = tuple(float(value) for value in array.ravel())
    check_scales(scales, "scale")
    return scales


def zero_points_of(call: Call, index: int, count: int, element: str) -> tuple[Integers, str]:
    """Input `index` as `count` zero points and their element type; zeros of type `element` where it is omitted."""
    if call.optional(index) is None:
        return (0,) * count, element
    value = known(call.name, call.constant(index))
    require(value.element in _QUANTIZED, f"zero point must be {' or '.join(_QUANTIZED)}, but got {value.element}")
    points = tuple(int(point) for point in call.constant(index).ravel())
    require(len(points) == count, f"zero point must have {count} entries, but got {len(points)}")
    return points, value.element


def parameters_of(call: Call, index: int, element: str) -> QuantizedTensorType:
    """Inputs `index` and `index` + 1 as the scale and zero point of a tensor that is quantized per tensor."""
    scales = scales_of(call, index)
    require(len(scales) == 1, f"scale must have 1 entry, but got {len(scales)}")
    (zero_point,), found = zero_points_of(call, index + 1, 1, element)
    return QuantizedTensorType.full_range(ORT, found, scales[0], zero_point)


def dequantized(call: Call, values: int, scale: int, axis: int) -> Quantized:
    """Input `values` with the scales of input `scale` and the zero points of the next, along `axis` if several."""
    value, scales = call.value(values), scales_of(call, scale)
    require(value.element in _QUANTIZED, f"input {values} must be {' or '.join(_QUANTIZED)}, but got {value.element}")
    zero_points, element = zero_points_of(call, scale + 1, len(scales), value.element)
    require(element == value.element, f"zero point must be {value.element}, but got {element}")
    if len(scales) == 1:
        return Quantized(value.shape, value, scales, zero_points)
    rank = len(value.shape)
    # One dimension is the axis whatever the node says, as in a bias that ONNX Runtime fuses.
    axis = 0 if rank == 1 else axis
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    extent = value.shape[axis % rank]
    require(len(scales) == extent, f"scale must have 1 or {extent} entries, but got {len(scales)}")
    return Quantized(value.shape, value, scales, zero_points, axis % rank)


def f32_values_of(call: Call, values: int, scale: int, axis: int) -> F32Tensor:
    """As `dequantized`, in plain float32 where the scale is none of the dialect's."""
    wide = unbounded_scale_of(call.tensor(scale))
    return dequantized(call, values, scale, axis) if wide is None else _plain(call, values, scale, wide)


def _plain(call: Call, values: int, scale: int, wide: float) -> F32Tensor:
    value = call.value(values)
    (zero_point,), _ = zero_points_of(call, scale + 1, 1, value.element)
    found = call.with_input(values, plainly_dequantized(call, value, wide, zero_point)).f32(values)
    return PlainlyDequantized(value.shape, found.f32(call.plan, call.name), value, wide, zero_point)


def quantized_by(call: Call, source: F32Tensor, scale: int, element: str) -> Value:
    """`source` quantized by inputs `scale` and the next, as `parameters_of`; plainly where `f32_values_of` is plain."""
    wide = unbounded_scale_of(call.tensor(scale))
    if wide is None:
        return source.quantized(call.plan, call.name, parameters_of(call, scale, element))
    (zero_point,), found = zero_points_of(call, scale + 1, 1, element)
    return plainly_quantized(call, source.f32(call.plan, call.name), found, wide, zero_point)


@imports("DequantizeLinear", "com.microsoft.DequantizeLinear")
def _dequantize_linear(call: Call) -> Tensor:
    call.count(2, 3)
    call.ignore("axis")
    output: int = call.attribute("output_dtype", 0)
    require(output in (0, F32), f"output must be f32, but got {element_name(output)}")
    call = widened(call, (0, 2))
    if call.attribute("block_size", 0) != 0:
        return Constant(dequantized_blocks(call))
    if has_run_time_parameters(call):
        return dequantized_at_run_time(call)
    wide = unbounded_scale_of(call.tensor(1))
    if wide is not None:
        value = call.value(0)
        (zero_point,), _ = zero_points_of(call, 2, 1, value.element)
        return plainly_dequantized(call, value, wide, zero_point)
    return dequantized(call, 0, 1, call.attribute("axis", 1))


@imports("QuantizeLinear", "com.microsoft.QuantizeLinear")
def _quantize_linear(call: Call) -> Tensor:
    """By a division in float32, ties to even; where an integer op expresses the QDQ group that ends here, it is one."""
    call.count(2, 3)
    call.ignore("axis", "saturate")
    precision: int = call.attribute("precision", 0)
    require(precision in (0, F32), f"precision must be f32, but got {element_name(precision)}")
    require(call.attribute("block_size", 0) == 0, "blocks are not supported")
    default = element_name(call.attribute("output_dtype", 0) or _UNSIGNED)
    if has_run_time_parameters(call):
        return quantized_at_run_time(call, default)
    wide = unbounded_scale_of(call.tensor(1))
    if wide is not None:
        (zero_point,), element = zero_points_of(call, 2, 1, default)
        return plainly_quantized(call, call.f32(0).f32(call.plan, call.name), element, wide, zero_point)
    scales = scales_of(call, 1)
    zero_points, element = zero_points_of(call, 2, len(scales), default)
    require(element in _QUANTIZED, f"output must be {' or '.join(_QUANTIZED)}, but got {element}")
    source = call.tensor(0)
    if len(scales) == 1:
        to = QuantizedTensorType.full_range(ORT, element, scales[0], zero_points[0])
        if isinstance(source, Constant):
            return Constant(to.quantize(source.array.astype(np.float32)))
        return call.f32(0).quantized(call.plan, call.name, to)
    rank = len(source.shape)
    axis: int = call.attribute("axis", 1)
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    extent = source.shape[axis % rank]
    require(len(scales) == extent, f"scale must have 1 or {extent} entries, but got {len(scales)}")
    return _quantize_axis(call, source, element, scales, zero_points, axis % rank)


def _quantize_axis(
    call: Call, source: Tensor, element: str, scales: Floats, zero_points: Integers, axis: int
) -> Tensor:
    if isinstance(source, Constant):
        f32_values, how = source.array.astype(np.float32), (ORT.float_rounding, ORT.scaling, ORT.nan)
        return Constant(quantize_array(f32_values, scales, zero_points, axis, NUMPY_DTYPES[element], *how))
    value = call.f32(0).f32(call.plan, call.name)
    attributes = {"scales": scales, "zero_points": zero_points, **ORT.quantization}
    return quantize_along(call.plan, call.name, value, element, axis, attributes)
