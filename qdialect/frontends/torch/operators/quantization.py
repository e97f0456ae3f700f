"""Plans operators that quantize and dequantize, by tensor, channel or group, and products of packed weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qdialect.arithmetic import NanPolicy, QuantParams, quantize_array
from qdialect.arithmetic.block_weights import PackedWeights, pack_weights
from qdialect.arithmetic.choices import SumOrder
from qdialect.arithmetic.profiles import PYTORCH
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, axis_in, check_scale, require
from qdialect.frontends.planning import elementwise, tensors
from qdialect.frontends.planning.block_weights import BlockQuantized, block_product
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.torch.operators import tensors as torch_tensors
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.program.model import Element, held_element
from qdialect.frontends.torch.program.pytorch_operators import call_operator, torch_package
from qdialect.ir._mlir import ir

_QUANTIZED = ("i8", "ui8", "i16", "i32")
# Bytes of an integer in which differences of quantized values do not wrap around.
_WIDE = 4
SPACE = "quantized_decomposed"


def number_of(call: Call, name: str) -> float:
    """An argument that is one known number."""
    array = call.constant(name)
    require(array.size == 1, f"argument '{name}' must have 1 entry, but got {array.size}")
    return float(array.ravel()[0])


def quantized_element(call: Call, elements: Sequence[str] = _QUANTIZED) -> str:
    """The element type that a node quantizes to, one of `elements`."""
    element = call.argument("dtype")
    found = element.name if isinstance(element, Element) else str(element)
    require(found in elements, f"dtype must be {' or '.join(elements)}, but got {found}")
    return found


def quantized_bounds(call: Call, element: str) -> tuple[int, int]:
    """The least and the largest quantized value of a node, with 0 between them, which PyTorch makes of a NaN."""
    minimum, maximum = (int(number_of(call, f"quant_{end}")) for end in ("min", "max"))
    low, high = ELEMENT_RANGES[element]
    holds = low <= minimum <= 0 <= maximum <= high
    expected = f"quantized values must lie in [{low}, {high}] of {element} and have 0"
    require(holds, f"{expected}, but got [{minimum}, {maximum}]")
    return minimum, maximum


def whole_number_of(call: Call, name: str) -> int:
    """An argument that is one known integer, whatever its type is."""
    value = number_of(call, name)
    require(value == int(value), f"argument '{name}' must be a whole number, but got {value:g}")
    return int(value)


def _parameters(call: Call) -> tensors.QuantizedTensorType:
    element = quantized_element(call)
    scale, zero_point = number_of(call, "scale"), whole_number_of(call, "zero_point")
    check_scale(scale, "scale")
    minimum, maximum = quantized_bounds(call, element)
    low, high = ELEMENT_RANGES[element]
    require(low <= zero_point <= high, f"zero point must be in [{low}, {high}], but got {zero_point}")
    return tensors.QuantizedTensorType(PYTORCH, element, QuantParams(scale, zero_point), minimum, maximum)


def run_time_parameters(
    call: Call, names: tuple[str, str] = ("scale", "zero_point"), *, rounds_last: bool
) -> torch_tensors.RunTimeParameters | None:
    """Scale and zero point by their `names`, where one of them is known at run time alone."""
    found = [call.tensor(name) for name in names]
    if all(isinstance(one, tensors.Constant) for one in found):
        return None
    element = quantized_element(call, tensors.EIGHT_BIT)
    scale, point = (_parameter_value(call, one) for one in found)
    minimum, maximum = quantized_bounds(call, element)
    in_float64 = rounds_last and isinstance(found[0], torch_tensors.RunTimeScale)
    return torch_tensors.RunTimeParameters(scale, point, element, minimum, maximum, rounds_last, in_float64)


def _parameter_value(call: Call, tensor: tensors.Tensor) -> Value:
    """A scale in float32 or a zero point, which has integers or whole numbers in float32."""
    if isinstance(tensor, torch_tensors.RunTimeScale):
        return tensor.value
    if isinstance(tensor, tensors.Constant):
        array = tensor.array
        require(array.dtype.kind in "iuf", f"parameters must be integers or floats, but got {held_element(array)}")
        return elementwise.constant_of(
            call, array.astype(np.float32) if array.dtype.kind == "f" else array.astype(np.int64)
        )
    value = elementwise.value_of_tensor(call, tensor)
    require(value.element in ("f32", "i32", "i64"), f"parameters must be f32, i32 or i64, but got {value.element}")
    return value


@imports(*(f"{SPACE}.quantize_per_tensor.{overload}" for overload in ("default", "tensor", "tensor2")))
def _quantize(call: Call) -> Result:
    """The QDQ group that ends here becomes one integer op where there is one."""
    parameters = run_time_parameters(call, rounds_last=False)
    if parameters is not None:
        return torch_tensors.quantized_at_run_time(call.plan, call.name, call.f32("input"), parameters)
    wide = elementwise.wide_scale_of(call.tensor("scale"))
    if wide is not None:
        element, point = quantized_element(call, tensors.EIGHT_BIT), whole_number_of(call, "zero_point")
        value = call.f32("input").f32(call.plan, call.name)
        quantized = elementwise.plainly_quantized(call, value, element, wide, point, PYTORCH)
        return tensors.clip(call.plan, call.name, quantized, *quantized_bounds(call, element))
    return call.f32("input").quantized(call.plan, call.name, _parameters(call))


@imports(*(f"{SPACE}.dequantize_per_tensor.{overload}" for overload in ("default", "tensor", "tensor2")))
def _dequantize(call: Call) -> Result:
    call.ignore("quant_min", "quant_max")
    at_run_time = run_time_parameters(call, rounds_last=False)
    if at_run_time is not None:
        return torch_tensors.dequantized(call.name, quantized_values(call), at_run_time)
    wide = elementwise.wide_scale_of(call.tensor("scale"))
    if wide is not None:
        return elementwise.plainly_dequantized(call, quantized_values(call), wide, whole_number_of(call, "zero_point"))
    parameters, values = _parameters(call), quantized_values(call)
    require(values.element == parameters.element, f"input must be {parameters.element}, but got {values.element}")
    # PyTorch rounds an integer to float32 before it subtracts.
    holds = parameters.zero_point == 0 or parameters.element != "i32"
    require(holds, f"zero point of i32 must be 0, but got {parameters.zero_point}")
    return torch_tensors.Quantized(values.shape, values, (parameters.scale,), (parameters.zero_point,))


def quantized_values(call: Call) -> Value:
    """The argument ``input``, which must be quantized values."""
    source = call.tensor("input")
    if isinstance(source, tensors.Constant):
        return tensors.known(call.name, source.array)
    require(isinstance(source, Value), "input must be quantized values, but got f32")
    assert isinstance(source, Value)
    return source


@dataclass(frozen=True)
class Channels:
    """Scales and zero points along an axis, as arrays of an entry for each index, and as numbers."""

    scales: Array
    zero_points: Array
    axis: int

    @property
    def are_whole(self) -> bool:
        """Whether the zero points are integers, whatever their type is."""
        return bool(np.all(self.zero_points == np.trunc(self.zero_points)))

    @property
    def numbers(self) -> tuple[tensors.Floats, tensors.Integers]:
        """Scales and zero points."""
        return tuple(map(float, self.scales)), tuple(map(int, self.zero_points))


def channels_of(call: Call, shape: Shape, names: tuple[str, str] = ("scales", "zero_points")) -> Channels:
    """The parameters by their `names`."""
    scales = call.constant(names[0]).ravel()
    # With others PyTorch computes in their type.
    require(scales.dtype == np.float32, f"argument '{names[0]}' must be float32, but got {scales.dtype}")
    # A channel's own scale has no lower bound, but it is a number.
    holds = np.isfinite(scales) & (scales >= 0)
    require(bool(np.all(holds)), f"scale must be finite and not negative, but got {scales[~holds][:1]}")
    missing = call.result(names[1]) is None
    points = np.zeros(scales.shape, np.int64) if missing else call.constant(names[1]).ravel()
    require(points.dtype.kind in "iuf", f"argument '{names[1]}' must be integers or floats, but got {points.dtype}")
    axis = axis_in(call.integers("axis", 1)[0], len(shape))
    for what, array in zip(names, (scales, points), strict=True):
        require(array.size == shape[axis], f"{what} must have {shape[axis]} entries, but got {array.size}")
    return Channels(scales, points, axis)


@imports(f"{SPACE}.dequantize_per_channel.default")
def _dequantize_channels(call: Call) -> Result:
    call.ignore("quant_min", "quant_max")
    values = quantized_values(call)
    require(
        values.element == quantized_element(call), f"input must be {quantized_element(call)}, but got {values.element}"
    )
    channels = channels_of(call, values.shape)
    points = channels.zero_points
    # PyTorch subtracts integers in the wider of both types.
    is_wide = points.dtype.kind == "f" or points.dtype.itemsize >= _WIDE or not np.any(points)
    require(is_wide, f"argument 'zero_points' must be int32 or int64, but got {points.dtype}")
    if not channels.are_whole:
        return _dequantized_by_floats(values, channels)
    scales, zero_points = channels.numbers
    if len(set(zero_points)) == 1 and len(set(scales)) == 1:
        scales, zero_points = scales[:1], zero_points[:1]
    return torch_tensors.Quantized(values.shape, values, scales, zero_points, channels.axis)


def _dequantized_by_floats(values: Value, channels: Channels) -> BlockQuantized:
    """With zero points that are not whole, as torchao has them for embeddings."""
    data, points, rank = values.data, channels.zero_points, len(values.shape)
    require(data is not None, "argument 'zero_points' must be whole numbers where the input is not constant")
    require(points.dtype == np.float32, f"argument 'zero_points' must be float32, but got {points.dtype}")
    assert data is not None
    if rank == 1:
        return BlockQuantized(values.shape, data, channels.scales, points, 0, 1)
    # One block along another dimension.
    along = int(channels.axis == 0)
    shape = [-1 if i == channels.axis else 1 for i in range(rank)]
    extents = [1 if i == along else extent for i, extent in enumerate(values.shape)]
    scales, zero = (np.broadcast_to(one.reshape(shape), extents) for one in (channels.scales, points))
    return BlockQuantized(values.shape, data, scales, zero, along, values.shape[along])


@imports(f"{SPACE}.quantize_per_channel.default")
def _quantize_channels(call: Call) -> Result:
    element = quantized_element(call)
    minimum, maximum = (int(number_of(call, f"quant_{end}")) for end in ("min", "max"))
    require(
        (minimum, maximum) == ELEMENT_RANGES[element],
        f"quantized values must have all of {element}, but got [{minimum}, {maximum}]",
    )
    source = call.f32("input")
    channels = channels_of(call, source.shape)
    require(channels.are_whole, "argument 'zero_points' must be whole numbers where the input is not constant")
    scales, zero_points = channels.numbers
    value = source.f32(call.plan, call.name)
    attributes = {"scales": scales, "zero_points": zero_points, **PYTORCH.quantization}
    return tensors.quantize_along(call.plan, call.name, value, element, channels.axis, attributes)


@imports("getitem")
def _getitem(call: Call) -> Result:
    """One of the results of a node before."""
    source, index = call.result("0"), call.argument("1")
    require(isinstance(source, tuple), "must take one of several results")
    assert isinstance(source, tuple)
    require(
        isinstance(index, int) and -len(source) <= index < len(source),
        f"must take one of the {len(source)} results that are computed, but got {index}",
    )
    return source[index]


# Quantized and dequantized by one operator, as quantization-aware training writes it.
#
# ``fake_quantize(x) = (clamp(round(x * (1 / scale)) + zero_point, quant_min, quant_max) - zero_point) * scale``, all in
# float32; a NaN becomes the least quantized value.

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
    "fake_quantize_per_tensor_affine_cachemask.default",
    "_fake_quantize_learnable_per_tensor_affine.default",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
)
def _of_tensor(call: Call) -> Result:
    """A second result, the mask, is for gradients."""
    is_enabled = call.given("fake_quant_enabled") is None or number_of(call, "fake_quant_enabled") != 0
    if not is_enabled:
        call.ignore("scale", "zero_point", "quant_min", "quant_max")
    found = _fake_quantized(call) if is_enabled else call.f32("self")
    return (found,) if "cachemask" in call.node.kind else found


def _fake_quantized(call: Call) -> torch_tensors.Quantized:
    call.ignore("grad_factor")
    scale = float(np.float32(number_of(call, "scale")))
    if "learnable" not in call.node.kind:
        return _of_whole(call, scale, whole_number_of(call, "zero_point"))
    _, minimum, maximum = _bounds(call)
    zero_point = np.rint(np.float32(number_of(call, "zero_point")))
    return _of_whole(call, scale, int(np.clip(zero_point, minimum, maximum)))


def _of_whole(call: Call, scale: float, zero_point: int) -> torch_tensors.Quantized:
    element, minimum, maximum = _bounds(call)
    check_scale(scale, "scale")
    holds = minimum <= zero_point <= maximum
    require(holds, f"zero point must be in [{minimum}, {maximum}], but got {zero_point}")
    to = tensors.QuantizedTensorType(_PROFILE, element, QuantParams(scale, zero_point), minimum, maximum)
    source = call.tensor("self")
    f32 = call.f32("self")
    if isinstance(source, tensors.Constant):
        call.plan.budget.spend_constant(source.shape, 8)
        values = tensors.known(call.name, to.quantize(call.constant("self")))
    else:
        values = f32.quantized(call.plan, call.name, to)
    return torch_tensors.Quantized(values.shape, values, (scale,), (zero_point,))


@imports("fake_quantize_per_channel_affine.default", "_fake_quantize_learnable_per_channel_affine.default")
@imports("fake_quantize_per_channel_affine_cachemask.default")
def _of_channels(call: Call) -> Result:
    call.ignore("grad_factor")
    channels = channels_of(call, call.tensor("self").shape, ("scale", "zero_point"))
    points = channels.zero_points
    if "learnable" in call.node.kind:
        _, minimum, maximum = _bounds(call)
        points = np.clip(np.rint(points), minimum, maximum)
    else:
        require(points.dtype.kind == "i", f"argument 'zero_point' must be integers, but got {points.dtype}")
    found = _of_constant(call, replace(channels, zero_points=points))
    return (found,) if "cachemask" in call.node.kind else found


def _of_constant(call: Call, channels: Channels) -> torch_tensors.Quantized:
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
    return torch_tensors.Quantized(
        array.shape, tensors.known(call.name, np.clip(values, minimum, maximum)), *channels.numbers, channels.axis
    )


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


# Weights in groups with scales of their own, as torchao has them, and PyTorch's products with packed weights.

_MIDDLE = 8
"""A packed weight of 4 bits is its number less this."""
_ZERO = np.zeros(1, np.int64)
_PLACES = 5
"""Numbers of 4 bits whose sum, each times a power of 16 of its own, float32 holds."""


@imports("torchao.dequantize_affine.default")
def _dequantize_affine(call: Call) -> Result:
    """``(q - z) * s`` of constant matrices in groups along one dimension, and of rows; others are decomposed."""
    call.ignore("input_dtype", "quant_min", "quant_max")
    block = call.dimensions("block_size")
    if isinstance(source := call.tensor("input"), Value):
        return _dequantized_rows(call, source, block)
    values = call.constant("input")
    require(values.ndim == len(block) == 2, "groups must be those of a matrix")
    axis = 0 if block[1] == 1 else 1
    require(block[1 - axis] == 1, "groups must lie along one dimension")
    points = None if call.result("zero_point") is None else call.constant("zero_point")
    return _in_groups(call, values, call.constant("scale"), points, axis, block[axis])


def _dequantized_rows(call: Call, values: Value, block: Shape) -> torch_tensors.RunTimeQuantized:
    *leading, extent = values.shape
    require(block == (*(1,) * len(leading), extent), "a group must be a row where the input is known at run time")
    has_points = call.result("zero_point") is not None
    parts = [call.f32("scale").f32(call.plan, call.name)]
    parts.append(
        elementwise.value_of_tensor(call, call.tensor("zero_point"))
        if has_points
        else elementwise.constant_of(call, _ZERO)
    )
    scale, point = (_of_rows(call, part, (*leading, 1)) for part in parts)
    return torch_tensors.dequantized(
        call.name, values, torch_tensors.RunTimeParameters(scale, point, "i8", -128, 127, rounds_last=False)
    )


def _of_rows(call: Call, part: Value, shape: Shape) -> Value:
    """One number for each row, or for all."""
    count = math.prod(part.shape)
    require(count in (1, math.prod(shape)), f"parameters must have {math.prod(shape)} entries, but got {count}")
    if part.shape == shape or count == 1:
        return part
    return call.plan.compute(
        call.name, shape, part.element, lambda emitter: (emitter.reshape(emitter.to_channels_first(part), shape), False)
    )


@imports("quantized_decomposed.dequantize_per_channel_group.default")
def _dequantize_groups(call: Call) -> Result:
    """As `_dequantize_affine`, of rows of a matrix in groups along its last dimension."""
    call.ignore("quant_min", "quant_max")
    values = call.constant("input")
    require(values.ndim == 2, f"input must be a matrix, but has {values.ndim} dimensions")
    points = None if call.result("zero_points") is None else call.constant("zero_points")
    return _in_groups(call, values, call.constant("scales"), points, 1, call.integers("group_size", 1)[0])


def _in_groups(call: Call, values: Array, scales: Array, points: Array | None, axis: int, size: int) -> BlockQuantized:
    extent = values.shape[axis]
    require(0 < size <= extent and extent % size == 0, f"groups of {size} must fill a dimension of {extent}")
    shape = [extent // size if i == axis else other for i, other in enumerate(values.shape)]
    count = int(np.prod(shape))
    for what, array in (("scale", scales), ("zero point", scales if points is None else points)):
        require(array.size == count, f"{what} must have {count} entries, but got {array.size}")
    require(values.dtype.name in ("int8", "uint8"), f"input must be int8 or uint8, but got {values.dtype}")
    require(scales.dtype == np.float32, f"scale must be float32, but got {scales.dtype}")
    is_f32 = points is None or points.dtype.kind in "iu" or points.dtype == np.float32
    require(is_f32, "zero point must be integers or float32")
    zero = None if points is None else points.reshape(shape)
    return BlockQuantized(values.shape, values, scales.reshape(shape), zero, axis, size, name=call.name)


@imports("_weight_int8pack_mm.default")
def _product_of_bytes(call: Call) -> Result:
    """``(x W^T) * scales`` of weights of 8 bits, which are multiplied as whole numbers."""
    weight, scales = call.constant("mat2"), call.constant("scales")
    require(weight.dtype == np.int8, f"argument 'mat2' must be int8, but got {weight.dtype}")
    require(scales.dtype == np.float32, f"argument 'scales' must be float32, but got {scales.dtype}")
    packed = pack_weights(weight, scales.reshape(-1, 1), None, weight.shape[1])
    assert packed is not None
    return _multiplied(call.f32("self"), packed, order=SumOrder.SCALE_LAST)


@imports("_weight_int4pack_mm_for_cpu.default")
def _product_of_nibbles(call: Call) -> Result:
    """``x W^T`` of weights ``(q - 8) * s + z`` in groups, which PyTorch packs as this machine's kernel reads them."""
    packed, parameters = call.constant("mat2"), call.constant("qScaleAndZeros")
    size, source = call.integers("qGroupSize", 1)[0], call.f32("self")
    require(parameters.dtype == np.float32, f"scales and zeros must be float32, but got {parameters.dtype}")
    depth = source.shape[-1]
    fits = packed.ndim == 2 and parameters.shape == (-(-depth // size), len(packed), 2) and depth % size == 0
    require(fits, f"scales and zeros must be those of {len(packed)} rows of {depth} weights in groups of {size}")
    scales, zeros = (np.ascontiguousarray(parameters[..., i].T) for i in range(2))
    with np.errstate(all="ignore"):
        points = np.where(zeros == 0, np.float32(_MIDDLE), np.float32(_MIDDLE) - zeros / scales)
    require(bool(np.isfinite(points).all()), "scales of groups with zeros must not be 0")
    is_whole = bool((points == np.rint(points)).all() and (points >= 0).all() and (points < 2 * _MIDDLE).all())
    integers = _unpacked(call, len(packed), depth, size)
    weights = pack_weights(integers, scales, points.astype(np.uint8) if is_whole else points, size)
    if weights is None:
        raise UnsupportedError("zeros must be multiples of scales that float32 holds")
    return _multiplied(source, weights)


def _unpacked(call: Call, rows: int, depth: int, size: int) -> Array:
    """Whole numbers of 4 bits, found by products with rows that have powers of 16 for a few weights each."""
    torch = torch_package()
    count = -(-depth // _PLACES)
    call.plan.budget.spend_constant((count, max(depth, rows)), 4)
    probes = np.zeros((count, count * _PLACES), np.float32)
    powers = np.float32(2 * _MIDDLE) ** np.arange(_PLACES, dtype=np.float32)
    for row in range(count):
        probes[row, row * _PLACES : (row + 1) * _PLACES] = powers
    probes = probes[:, :depth]
    plain = np.stack([np.ones((depth // size, rows)), np.zeros((depth // size, rows))], 2).astype(np.float32)
    names = {call.reads("self"): probes, call.reads("mat2"): call.constant("mat2"), call.reads("qScaleAndZeros"): plain}
    found = call_operator(call.node, lambda name: torch.from_numpy(np.ascontiguousarray(names[name])), "cpu").numpy()
    sums = np.rint(found + _MIDDLE * probes.sum(1, keepdims=True)).astype(np.int64)
    digits = [(sums >> (4 * place)) & (2 * _MIDDLE - 1) for place in range(_PLACES)]
    return np.stack(digits, 1).transpose(2, 0, 1).reshape(rows, -1)[:, :depth].astype(np.uint8)


def _multiplied(source: tensors.F32Tensor, weights: PackedWeights, **how: Any) -> tensors.Computation:
    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return block_product(emitter, operands[0], weights, **how)

    return tensors.Computation((*source.shape[:-1], len(weights.weight)), (source,), build)
