"""QuantizeLinear and DequantizeLinear, with parameters that are known, in blocks, or computed at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.arithmetic import quantize_array
from qdialect.arithmetic.choices import BlockActivations
from qdialect.arithmetic.profiles import ORT
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Shape, axis_in, check_scales, require
from qdialect.frontends.onnx.model import F32, element_name
from qdialect.frontends.onnx.operators.registry import Call, Quantized, imports, value_of
from qdialect.frontends.planning import elementwise, tensors
from qdialect.frontends.planning.block_weights import BlockQuantized
from qdialect.frontends.planning.elementwise import Arithmetic, converted, plainly_quantized, unary, unbounded_scale_of
from qdialect.frontends.planning.emitter import Value
from qdialect.ir._mlir import ir

# QuantizeLinear and DequantizeLinear, and the quantization parameters that other operators take as inputs.

# Types that a QuantizeLinear can give, and a DequantizeLinear read.
_QUANTIZED = tuple(ELEMENT_RANGES)
# The type of quantized values where a QuantizeLinear names none.
_UNSIGNED = 2


def scales_of(call: Call, index: int) -> tensors.Floats:
    """Input `index` as one scale or a list of them."""
    array = call.constant(index)
    require(array.dtype == "float32", f"scale must be f32, but got {array.dtype}")
    require(array.ndim <= 1 and array.size >= 1, f"scale must have 0 or 1 dimensions, but got {array.ndim}")
    scales = tuple(float(value) for value in array.ravel())
    check_scales(scales, "scale")
    return scales


def zero_points_of(call: Call, index: int, count: int, element: str) -> tuple[tensors.Integers, str]:
    """Input `index` as `count` zero points and their element type; zeros of type `element` where it is omitted."""
    if call.optional(index) is None:
        return (0,) * count, element
    value = tensors.known(call.name, call.constant(index))
    require(value.element in _QUANTIZED, f"zero point must be {' or '.join(_QUANTIZED)}, but got {value.element}")
    points = tuple(int(point) for point in call.constant(index).ravel())
    require(len(points) == count, f"zero point must have {count} entries, but got {len(points)}")
    return points, value.element


def parameters_of(call: Call, index: int, element: str) -> tensors.QuantizedTensorType:
    """Inputs `index` and `index` + 1 as the scale and zero point of a tensor that is quantized per tensor."""
    scales = scales_of(call, index)
    require(len(scales) == 1, f"scale must have 1 entry, but got {len(scales)}")
    (zero_point,), found = zero_points_of(call, index + 1, 1, element)
    return tensors.QuantizedTensorType.full_range(ORT, found, scales[0], zero_point)


def dequantized(call: Call, values: int, scale: int, axis: int) -> Quantized:
    """Input `values` with the scales of input `scale` and the zero points of the next, along `axis` if several."""
    value, scales = call.value(values), scales_of(call, scale)
    require(value.element in _QUANTIZED, f"input {values} must be {' or '.join(_QUANTIZED)}, but got {value.element}")
    zero_points, element = zero_points_of(call, scale + 1, len(scales), value.element)
    require(element == value.element, f"zero point must be {value.element}, but got {element}")
    if len(scales) == 1:
        return Quantized(value.shape, value, scales, zero_points)
    # The only dimension is the axis, whatever the node's attribute, as in a bias that ONNX Runtime fuses.
    axis = _axis_of_scales(0 if len(value.shape) == 1 else axis, value.shape, len(scales))
    return Quantized(value.shape, value, scales, zero_points, axis)


def _axis_of_scales(axis: int, shape: Shape, count: int) -> int:
    """The dimension of `shape` that `axis` names, along which there must be `count` scales."""
    axis = axis_in(axis, len(shape))
    require(count == shape[axis], f"scale must have 1 or {shape[axis]} entries, but got {count}")
    return axis


def f32_values_of(call: Call, values: int, scale: int) -> tensors.F32Tensor:
    """As `dequantized`, in plain float32 where the dialect refuses the scale."""
    wide = unbounded_scale_of(call.tensor(scale))
    if wide is None:
        return dequantized(call, values, scale, 0)
    value = call.value(values)
    (zero_point,), _ = zero_points_of(call, scale + 1, 1, value.element)
    found = call.with_input(values, elementwise.plainly_dequantized(call, value, wide, zero_point)).f32(values)
    return elementwise.PlainlyDequantized(value.shape, found.f32(call.plan, call.name), value, wide, zero_point)


def quantized_by(call: Call, source: tensors.F32Tensor, scale: int, element: str) -> Value:
    """`source` quantized by inputs `scale` and the next, as `parameters_of`; plainly where `f32_values_of` is plain."""
    wide = unbounded_scale_of(call.tensor(scale))
    if wide is None:
        return source.quantized(call.plan, call.name, parameters_of(call, scale, element))
    (zero_point,), found = zero_points_of(call, scale + 1, 1, element)
    return plainly_quantized(call, source.f32(call.plan, call.name), found, wide, zero_point, ORT)


@imports("DequantizeLinear", "com.microsoft.DequantizeLinear")
def _dequantize_linear(call: Call) -> tensors.Tensor:
    call.count(2, 3)
    call.ignore("axis")
    output: int = call.attribute("output_dtype", 0)
    require(output in (0, F32), f"output must be f32, but got {element_name(output)}")
    call = widened(call, (0, 2))
    size: int = call.attribute("block_size", 0)
    values = tensors.known_array(call.tensor(0))
    if values is not None and values.dtype.name.startswith("float8"):
        return _of_float8(call, values, size)
    if size != 0:
        return dequantized_blocks(call, (0, 1, 2), call.attribute("axis", 1), size)
    if has_run_time_parameters(call):
        return dequantized_at_run_time(call)
    wide = unbounded_scale_of(call.tensor(1))
    if wide is not None:
        value = call.value(0)
        (zero_point,), _ = zero_points_of(call, 2, 1, value.element)
        return elementwise.plainly_dequantized(call, value, wide, zero_point)
    return _rows_of_any_scales(call) or dequantized(call, 0, 1, call.attribute("axis", 1))


def _of_float8(call: Call, values: Array, size: int) -> tensors.Constant:
    """``value * scale`` of constants, which have no zero points."""
    require(call.optional(2) is None or not call.constant(2).astype(np.float32).any(), "zero point must be 0")
    scales, axis = call.constant(1).astype(np.float32), axis_in(call.attribute("axis", 1), max(values.ndim, 2))
    call.plan.budget.spend_constant(values.shape, scales.itemsize)
    if scales.size == 1:
        scales = scales.reshape(())
    elif size > 0:
        scales = np.repeat(scales, size, axis).take(range(values.shape[axis]), axis)
    else:
        scales = scales.reshape([-1 if i == axis else 1 for i in range(values.ndim)])
    fits = all(n in (1, extent) for n, extent in zip(scales.shape, values.shape, strict=scales.ndim > 0))
    require(fits, f"scales must be those of {list(values.shape)}, but got {list(call.constant(1).shape)}")
    return tensors.Constant(values.astype(np.float32) * scales)


def _rows_of_any_scales(call: Call) -> BlockQuantized | None:
    """A constant matrix with a negative scale, as NNCF chooses them: each row or column is a block.

    None for other scales, and where data are rounded too, in blocks of another size.
    """
    values, scales = tensors.known_array(call.tensor(0)), call.constant(1)
    is_signed = scales.ndim == 1 and scales.min() < 0 and bool(np.isfinite(scales).all())
    if values is None or values.ndim != 2 or not is_signed or call.plan.activations is BlockActivations.I8_BLOCK:
        return None
    along = 1 - axis_in(call.attribute("axis", 1), 2)
    parameters = {index: call.optional(index) for index in (1, 2)}
    for index, tensor in parameters.items():
        if tensor is not None:
            call = call.with_input(index, tensors.Constant(np.expand_dims(call.constant(index), along)))
    return dequantized_blocks(call, (0, 1, 2), along, values.shape[along])


@imports("QuantizeLinear", "com.microsoft.QuantizeLinear")
def _quantize_linear(call: Call) -> tensors.Tensor:
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
        return plainly_quantized(call, call.f32(0).f32(call.plan, call.name), element, wide, zero_point, ORT)
    scales = scales_of(call, 1)
    zero_points, element = zero_points_of(call, 2, len(scales), default)
    require(element in _QUANTIZED, f"output must be {' or '.join(_QUANTIZED)}, but got {element}")
    source = call.tensor(0)
    if len(scales) == 1:
        to = tensors.QuantizedTensorType.full_range(ORT, element, scales[0], zero_points[0])
        if isinstance(source, tensors.Constant):
            return tensors.Constant(to.quantize(source.array.astype(np.float32)))
        return call.f32(0).quantized(call.plan, call.name, to)
    axis = _axis_of_scales(call.attribute("axis", 1), source.shape, len(scales))
    if isinstance(source, tensors.Constant):
        f32_values, how = source.array.astype(np.float32), (ORT.float_rounding, ORT.scaling, ORT.nan)
        return tensors.Constant(quantize_array(f32_values, scales, zero_points, axis, NUMPY_DTYPES[element], *how))
    attributes = {"scales": scales, "zero_points": zero_points, **ORT.quantization}
    value = call.f32(0).f32(call.plan, call.name)
    return tensors.quantize_along(call.plan, call.name, value, element, axis, attributes)


# QuantizeLinear and DequantizeLinear whose scale or zero point is computed when the network runs, in float32.

_QUANTIZED_OR_I32 = (*ELEMENT_RANGES, "i32")


def has_run_time_parameters(call: Call) -> bool:
    """Whether the scale or the zero point of a node is not known."""
    given = [call.tensor(1), *([] if call.optional(2) is None else [call.tensor(2)])]
    return any(tensors.known_array(tensor) is None for tensor in given)


def dequantized_at_run_time(call: Call) -> tensors.Tensor:
    """``(quantized value - zero point) * scale``."""
    value = value_of(call, 0)
    require(
        value.element in _QUANTIZED_OR_I32, f"input 0 must be {' or '.join(_QUANTIZED_OR_I32)}, but got {value.element}"
    )
    scale, point = _run_time_parameters(call, value.shape, value.element)
    values = [_f32(call, value), scale, *([] if point is None else [_f32(call, point)])]

    def build(s: Arithmetic, found: ir.Value, factor: ir.Value, *zero: ir.Value) -> ir.Value:
        return s.op("arith.mulf", s.op("arith.subf", found, zero[0]) if zero else found, factor)

    return elementwise.tensor_of(elementwise.elementwise(call, values, "f32", build))


def quantized_at_run_time(call: Call, default: str) -> tensors.Tensor:
    """``clamp(half_even(x / scale) + zero point)``, NaN as the least; `default` is the type without a point."""
    data = call.f32(0).f32(call.plan, call.name)
    scale, point = _run_time_parameters(call, data.shape, None)
    element = default if point is None else point.element
    require(element in ELEMENT_RANGES, f"output must be {' or '.join(ELEMENT_RANGES)}, but got {element}")
    values = [data, scale, *([] if point is None else [_f32(call, point)])]
    low, high = map(float, ELEMENT_RANGES[element])

    def build(s: Arithmetic, found: ir.Value, divisor: ir.Value, *zero: ir.Value) -> ir.Value:
        rounded = s.op("math.roundeven", s.op("arith.divf", found, divisor))
        shifted = s.op("arith.addf", rounded, zero[0]) if zero else rounded
        return s.op("arith.minimumf", s.select(s.compare("gt", shifted, low), shifted, low), high)

    whole = elementwise.elementwise(call, values, "f32", build)
    return unary(call, whole, element, lambda s, x: converted(s, x, "f32", element))


def _run_time_parameters(call: Call, shape: Shape, element: str | None) -> tuple[Value, Value | None]:
    """Scale and zero point, shaped to meet data of `shape`; the zero point must be of `element`, if that is given."""
    scale = value_of(call, 1)
    require(scale.element == "f32", f"scale must be f32, but got {scale.element}")
    point = None if call.optional(2) is None else value_of(call, 2)
    if point is not None:
        fits = point.shape == scale.shape and element in (None, point.element)
        require(fits, f"zero point must be {element} of shape {list(scale.shape)}, but got {list(point.shape)}")
    return _along(call, scale, shape), None if point is None else _along(call, point, shape)


def _along(call: Call, value: Value, shape: Shape) -> Value:
    """One number, or one for each index along the node's axis."""
    require(len(value.shape) <= 1, f"scale must have 0 or 1 dimensions, but got {len(value.shape)}")
    if value.shape in ((), (1,)):
        return call.shaped(value, ())
    axis = _axis_of_scales(call.attribute("axis", 1), shape, value.shape[0])
    spread = tuple(extent if i == axis else 1 for i, extent in enumerate(shape))
    return call.shaped(value, spread)


def _f32(call: Call, value: Value) -> Value:
    if value.element in ELEMENT_RANGES:
        return Quantized(value.shape, value, (1.0,), (0,)).f32(call.plan, call.name)
    return unary(call, value, "f32", lambda s, x: converted(s, x, value.element, "f32"))


# Weights of few bits, and weights that are quantized in blocks.
#
# Integers of 2 and 4 bits are the same integers in 8.

_WIDER = {"int2": np.int8, "uint2": np.uint8, "int4": np.int8, "uint4": np.uint8}


def widened(call: Call, indices: Sequence[int]) -> Call:
    """The call with 8 bits in constant inputs of fewer among those of `indices`."""
    for index in indices:
        tensor = call.optional(index)
        if isinstance(tensor, tensors.Constant) and tensor.array.dtype.name in _WIDER:
            wide = tensor.array.astype(_WIDER[tensor.array.dtype.name])
            call = call.with_input(index, tensors.Constant(wide))
    return call


def dequantized_blocks(call: Call, inputs: Sequence[int], axis: int, size: int) -> BlockQuantized:
    """``scale * (quantized value - zero point)`` in float32; integers, scales and zero points are known `inputs`.

    Each scale and zero point holds for `size` elements along the axis, of which the last block may have fewer.
    """
    given = {index: call.optional(index) for index in inputs}
    unknown = [index for index, tensor in given.items() if tensor is not None and not tensors.is_known(tensor)]
    require(not unknown, f"input {next(iter(unknown), 0)} must be constant where it is quantized in blocks")
    values, scales, points = map(tensors.known_array, given.values())
    assert values is not None
    assert scales is not None
    require(size >= 1, f"block_size must be at least 1, but got {size}")
    axis = axis_in(axis, values.ndim)
    size = min(size, values.shape[axis])
    wanted = (*values.shape[:axis], -(-values.shape[axis] // size), *values.shape[axis + 1 :])
    for what, array in (("scale", scales), ("zero point", scales if points is None else points)):
        require(array.shape == wanted, f"{what} must have the shape {list(wanted)}, but got {list(array.shape)}")
    require(scales.dtype == np.float32, f"scale must be f32, but got {scales.dtype}")
    require(values.dtype.kind in "iu", f"input {inputs[0]} must be integers, but got {values.dtype}")
    is_alike = points is None or points.dtype in (values.dtype, np.float32)
    require(is_alike, f"zero point must be {values.dtype}")
    return BlockQuantized(values.shape, values, scales, points, axis, size)
