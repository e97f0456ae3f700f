"""Conv, ConvTranspose, QLinearConv and ConvInteger over rows, images and volumes; and what all contractions read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from qdialect.dialect import Conv2DOp, MatMulOp, PadOp
from qdialect.dialect.type_constraints import NARROW_ELEMENTS, element_of, shape_of
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, check_scale, require
from qdialect.frontends.building.windows import Window
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of, zero_points_of
from qdialect.frontends.onnx.operators.registry import AccumulatorBias, Call, Quantized, imports, imports_f32, part_of
from qdialect.frontends.onnx.operators.window import cropping, steps_of, window_of
from qdialect.frontends.planning import contraction, convolution, tensors
from qdialect.frontends.planning.elementwise import broadcast_shape
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value, channels_last
from qdialect.frontends.planning.tensors import EIGHT_BIT, Computed, Constant, Tensor
from qdialect.ir._mlir import ir

# How much scales differ that are the same product, rounded in another order.
_SAME = 1e-6


def data_of(data: Quantized, elements: Sequence[str] = EIGHT_BIT) -> Quantized:
    """Data that a contraction can read, of one of `elements`."""
    parameters = data.parameters
    require(parameters.element in elements, f"input must be {' or '.join(elements)}, but got {parameters.element}")
    check_scale(parameters.scale, "input scale")
    return data


def bias_of(
    call: Call,
    index: int,
    data: tensors.Quantized,
    scales: tuple[float, ...],
    channels: int,
    factor: float | None = None,
) -> Array | None:
    """Input `index`: i32 in units of the accumulators, or f32 values.

    It is i32 where an integer kernel of ONNX Runtime reads it so, or where its scale is the accumulators' and leaves
    space for the sums; else it is f32 values, which count `factor` times.
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
        is_whole = factor is None and _counts_accumulators(source, contraction.accumulator_scales(data, scales))
        values = source.values.data if is_whole else np.asarray(source.f32_values())
    fits = values.size == 1 or (values.size == channels == values.shape[-1])
    require(fits, f"bias must have {channels} entries along its last dimension, but got {list(values.shape)}")
    flat = np.broadcast_to(values.ravel(), (channels,))
    if values.dtype == np.int32:
        return flat
    require(values.dtype == np.float32, f"bias must be i32 or f32, but got {values.dtype}")
    return flat if factor is None else np.float32(factor) * flat


def _counts_accumulators(bias: tensors.Quantized, wanted: Array) -> bool:
    """Whether quantized values are units of the accumulators, whose scales are `wanted`."""
    if isinstance(bias, AccumulatorBias):
        return True
    values = bias.values.data
    if bias.values.element != "i32" or values is None or any(bias.zero_points):
        return False
    own = np.array(bias.scales)
    fits = own.size == 1 or wanted.size in (1, own.size)
    has_space = bool(np.all(np.abs(values.astype(np.int64)) <= contraction.LARGEST_BIAS // 2))
    return fits and has_space and np.allclose(own, wanted, _SAME, 0)


# Integer products whose zero points are known at run time: the compensation is computed next to the product.

_UNTOUCHED = {"input_scale": 1.0, "input_zero_point": 0, "weight_scales": (1.0,), "weight_zero_points": (0,)}


def run_time_zero_point(call: Call, index: int, operand: Value) -> Value | None:
    """Input `index` where it is a zero point of `operand` that is known at run time only."""
    point = call.optional(index)
    if not isinstance(point, Value):
        return None
    require(point.element == operand.element, f"zero point must be {operand.element}, but got {point.element}")
    return point


def single(point: Value) -> Value:
    """A zero point that must have one entry."""
    require(point.shape in ((), (1,)), f"zero point must have 1 entry, but got {list(point.shape)}")
    return point


def corrected(call: Call, sums: Value, zero_point: Value, channels: Array) -> Value:
    """Products with quantized values, less ``zero_point * channels``: those with what the quantized values stand for.

    `channels` are the sums of the weights of each channel, the last dimension of `sums` as they are held; differences
    wrap as sums do.
    """

    def emit(emitter: Emitter) -> Emitted:
        totals = emitter.constant(channels.astype(np.int32))
        point = _widened(emitter, emitter.reshape(emitter.to_channels_first(single(zero_point)), ()))
        lost = emitter.upstream("arith.muli", totals, emitter.broadcast(point, channels.shape))
        held, is_channels_last = emitter.either(sums)
        return emitter.upstream("arith.subi", held, emitter.broadcast(lost, shape_of(held.type))), is_channels_last

    return call.plan.compute(call.name, sums.shape, "i32", emit)


def padded(call: Call, data: Value, zero_point: Value, before: tuple[int, ...], after: tuple[int, ...]) -> Value:
    """Channels-first `data` with elements of its zero point around each image."""
    rank = len(data.shape)
    size = tuple(extent + low + high for extent, low, high in zip(data.shape[2:], before, after, strict=True))
    outside = np.full((1, *size, 1), -1, np.int8)
    outside[(0, *(slice(low, low + extent) for low, extent in zip(before, data.shape[2:], strict=True)))] = 0
    shape = (*data.shape[:2], *size)

    def emit(emitter: Emitter) -> Emitted:
        ring = {"low": (0, *before, 0), "high": (0, *after, 0), "value": 0}
        inside = emitter.build(PadOp, emitter.last(data), element=data.element, **ring)
        point = emitter.without_sign(emitter.reshape(emitter.to_channels_first(single(zero_point)), ()))
        around = emitter.upstream("arith.andi", emitter.constant(outside), emitter.broadcast(point, outside.shape))
        last = tuple(shape[axis] for axis in channels_last(rank))
        both = emitter.upstream("arith.ori", emitter.without_sign(inside), emitter.broadcast(around, last))
        return both if data.element == "i8" else emitter.convert("tensor.bitcast", both, data.element), True

    return call.plan.compute(call.name, shape, data.element, emit)


def product(call: Call, left: Value, right: Value, a: Value | None, b: Value | None) -> Value:
    """``sum (A - a) (B - b)`` of [..., M, K] and [..., K, N]: ``sum AB - a sum B - b sum A + K a b``, modulo 2^32.

    The zero point a has one entry, b one or one for each column; None is zero.
    """
    for name, operand in (("input", left), ("right operand", right)):
        holds = operand.element in EIGHT_BIT and len(operand.shape) >= 2
        found = f"{operand.element} of {list(operand.shape)}"
        require(holds, f"{name} must be matrices of i8 or ui8, but got {found}")
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    require(depth == right.shape[-2], f"input must have a last extent of {right.shape[-2]}, but got {depth}")
    shape = (*broadcast_shape(left.shape[:-2], right.shape[:-2]), rows, columns)
    if b is not None:
        entries = math.prod(b.shape)
        require(entries in (1, columns), f"zero point must have 1 or {columns} entries, but got {entries}")

    def emit(emitter: Emitter) -> Emitted:
        lhs, rhs = emitter.to_channels_first(left), emitter.to_channels_first(right)
        total = _sums(emitter, lhs, rhs)
        below = None if a is None else _spread(emitter, single(a), shape)
        across = None if b is None else _spread(emitter, b, shape)
        if below is not None:
            column_sums = _sums(emitter, emitter.constant(np.ones((1, depth), np.uint8)), rhs)
            total = _less(emitter, total, below, emitter.broadcast(column_sums, shape))
        if across is not None:
            row_sums = _sums(emitter, lhs, emitter.constant(np.ones((depth, 1), np.int8)))
            total = _less(emitter, total, across, emitter.broadcast(row_sums, shape))
        if below is not None and across is not None:
            count = emitter.broadcast(emitter.constant(np.array(-depth, np.int32)), shape)
            total = _less(emitter, total, emitter.upstream("arith.muli", count, below), across)
        return total, False

    return call.plan.compute(call.name, shape, "i32", emit)


def _sums(emitter: Emitter, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return emitter.build(MatMulOp, lhs, rhs, None, element="i32", **_UNTOUCHED)


def _less(emitter: Emitter, total: ir.Value, *factors: ir.Value) -> ir.Value:
    return emitter.upstream("arith.subi", total, emitter.upstream("arith.muli", *factors))


def _spread(emitter: Emitter, point: Value, shape: tuple[int, ...]) -> ir.Value:
    """A zero point of one entry, or of one for each column, as i32 of `shape`."""
    wide, entries = _widened(emitter, emitter.to_channels_first(point)), math.prod(point.shape)
    return emitter.broadcast(emitter.reshape(wide, () if entries == 1 else (entries,)), shape)


def _widened(emitter: Emitter, quantized: ir.Value) -> ir.Value:
    """An 8-bit integer as i32."""
    widen = "arith.extui" if element_of(quantized.type) == "ui8" else "arith.extsi"
    return emitter.convert(widen, emitter.without_sign(quantized), "i32")


# Conv, QLinearConv and ConvInteger: data NCL, NCHW or NCDHW, weights OIL, OIHW or OIDHW.


@imports("Conv")
def _conv(call: Call) -> Tensor:
    contraction.check_sums(call.quantized(1), range(1, len(call.quantized(1).shape)))
    return _convolution(call, data_of(call.quantized(0), NARROW_ELEMENTS), call.quantized(1), bias=2)


@imports("QLinearConv")
def _qlinear_conv(call: Call) -> Tensor:
    qdq_group = _convolution(call, data_of(dequantized(call, 0, 1, 1)), dequantized(call, 3, 4, 0), bias=8)
    return qdq_group.quantized(call.plan, call.name, parameters_of(call, 6, qdq_group.data.values.element))


@imports("ConvInteger")
def _conv_integer(call: Call) -> Tensor:
    source = call.value(0)
    point = run_time_zero_point(call, 2, source)
    if point is None:
        return _convolution(call, integers(call, 0, 2), integers(call, 1, 3), bias=4).accumulators(call.plan, call.name)
    layer, window = _layer(call, Quantized(source.shape, source, (1.0,), (0,)), integers(call, 1, 3))
    weight = layer.weight
    if isinstance(weight, contraction.RunTimeWeight):
        raise UnsupportedError("weight must be constant where the zero point of the data is not")
    data = padded(call, source, point, window.before, window.after) if any(window.padding) else source
    unpadded = replace(
        layer, data=Quantized(data.shape, data, (1.0,), (0,)), attributes={**layer.attributes, "padding": (0, 0, 0, 0)}
    )
    zeros = (0,) * len(window.kernel)
    images = unpadded.over_volumes(call.plan, call.name, replace(window, before=zeros, after=zeros))
    bias = bias_of(call, 4, layer.data, weight.scales, weight.shape[0])
    sums = images.contraction((source.shape[0], weight.shape[0], *window.output), bias)
    taps = weight.values.reshape(weight.shape[0], -1).astype(np.int64)
    channels = taps.sum(axis=1) - taps.shape[1] * np.array(weight.zero_points)
    return corrected(call, sums.accumulators(call.plan, call.name), point, channels)


def integers(call: Call, index: int, zero_point: int) -> Quantized:
    """Input `index` with the zero points of input `zero_point` and the scale 1."""
    value = call.value(index)
    require(value.element in EIGHT_BIT, f"input {index} must be {' or '.join(EIGHT_BIT)}, but got {value.element}")
    count = call.constant(zero_point).size if call.optional(zero_point) is not None else 1
    zero_points, element = zero_points_of(call, zero_point, count, value.element)
    require(element == value.element, f"zero point must be {value.element}, but got {element}")
    return Quantized(value.shape, value, (1.0,) * count, zero_points)


def _convolution(call: Call, source: Quantized, weights: Quantized, bias: int) -> contraction.Contraction:
    layer, window = _layer(call, source, weights)
    shape = (source.shape[0], layer.weight.shape[0], *window.output)
    added = bias_of(call, bias, layer.data, layer.weight.scales, layer.weight.shape[0])
    return layer.over_volumes(call.plan, call.name, window).contraction(shape, added)


def _layer(call: Call, source: Quantized, weights: Quantized) -> tuple[convolution.Layer, Window]:
    data, rank = source, len(source.shape)
    require(rank in (3, 4, 5), f"input must have 3 to 5 dimensions, but got {rank}")
    is_known = weights.values.data is not None
    weight = (
        contraction.ordered_weight(weights, (0, *range(2, rank), 1), 0)
        if is_known
        else contraction.run_time_weight(weights, rank)
    )
    groups: int = call.attribute("group", 1)
    convolution.check_groups(data.shape[1], weight.shape, groups)
    window = window_of(call, data.shape[2:], weight.shape[1:-1])
    return convolution.Layer(Conv2DOp, data, weight, convolution.attributes_of(window, groups)), window


# ConvTranspose: data NCL, NCHW or NCDHW, weights [C, O / group, ...].


@imports("ConvTranspose")
def _conv_transpose(call: Call) -> contraction.Contraction:
    """Exact sums; ONNX Runtime adds them up in float32, so its quantized values may differ by one step."""
    rank = len(call.tensor(0).shape)
    require(rank in (3, 4, convolution.RANK), f"input must have 3 to 5 dimensions, but got {rank}")
    data, weights = data_of(call.quantized(0)), call.quantized(1)
    contraction.check_sums(weights, [axis for axis in range(len(weights.shape)) if axis != 1])
    groups: int = call.attribute("group", 1)
    weight = _channels_first(weights, rank, groups, data.shape[1])
    size = data.shape[2:]
    strides, dilation, kernel_extent = steps_of(call, rank - 2, weight.values.shape[1:-1])
    full = tuple((extent - 1) * stride + r for extent, stride, r in zip(size, strides, kernel_extent, strict=True))
    before, output = cropping(call, size, strides, full)
    # Pixels of the full extent behind the output are cropped; pixels of the output behind that extent hold the bias.
    rests = [whole - low - kept for whole, low, kept in zip(full, before, output, strict=True)]
    cropped, extra = tuple(max(rest, 0) for rest in rests), tuple(max(-rest, 0) for rest in rests)
    bias = bias_of(call, 2, data, weight.scales, weight.values.shape[0])
    window = convolution.TransposedWindow(strides, dilation, before, output, groups, cropped, extra)
    name = call.name if rank == convolution.RANK else None
    return window.contraction(call.plan, data, weight, bias, name)


def _channels_first(weights: Quantized, rank: int, groups: int, channels: int) -> contraction.Weight:
    """[C, O / g, KH, KW] as [O, KH, KW, C / g]; every group has the scales of the O / g channels."""
    weight = contraction.ordered_weight(weights, tuple(range(rank)), 1)
    require(weight.values.shape[0] == channels, f"weight must have {channels} inputs, but got {weight.values.shape[0]}")
    require(groups >= 1 and channels % groups == 0, f"group must divide {channels} channels, but got {groups}")
    kernel = weight.values.shape[2:]
    apart = weight.values.reshape(groups, channels // groups, -1, *kernel)
    last = np.moveaxis(apart, 1, -1).reshape(-1, *kernel, channels // groups)
    scales = weight.scales * groups if len(weight.scales) > 1 else weight.scales
    zero_points = weight.zero_points * groups if len(weight.zero_points) > 1 else weight.zero_points
    return contraction.Weight(np.ascontiguousarray(last), scales, zero_points)


# Conv in float32: data NCL, NCHW or NCDHW, constant weights OIL, OIHW or OIDHW.


@imports_f32("Conv")
def _f32_conv(call: Call) -> Computed:
    shape, weight = call.f32(0).shape, f32_weight(call)
    kernel, groups = weight.shape, call.attribute("group", 1)
    require(groups >= 1 and shape[1] == groups * kernel[1] and kernel[0] % groups == 0, f"group {groups} does not fit")
    window = window_of(call, shape[2:], kernel[2:])
    after = (shape[0], kernel[0], *window.output)
    sums = convolution.f32_convolution(
        call.plan.budget, shape, np.ascontiguousarray(np.moveaxis(weight, 1, -1)), window, groups
    )
    return _biased(call, sums, after, has_bias=check_bias(call, kernel[0]))


def f32_weight(call: Call) -> Array:
    """Input 1, constant f32 weights of the rank of the data, which is 3 to 5."""
    rank, weight = len(call.f32(0).shape), call.constant(1)
    require(rank in (3, 4, convolution.RANK), f"input must have 3 to 5 dimensions, but got {rank}")
    require(weight.dtype == np.float32, f"weight must be f32, but got {weight.dtype}")
    require(weight.ndim == rank, f"weight must have {rank} dimensions, but got {weight.ndim}")
    return weight


def check_bias(call: Call, channels: int) -> bool:
    """Whether there is a bias, which must have an entry for each of `channels`."""
    if call.optional(2) is None:
        return False
    shape = call.f32(2).shape
    require(shape == (channels,), f"bias must have the shape [{channels}], but got {list(shape)}")
    return True


# ConvTranspose in float32: data NCL, NCHW or NCDHW, constant weights [C, O / group, ...].


@imports_f32("ConvTranspose")
def _f32_conv_transpose(call: Call) -> Computed:
    shape, weight, groups = call.f32(0).shape, f32_weight(call), call.attribute("group", 1)
    require(weight.shape[0] == shape[1], f"weight must have {shape[1]} inputs, but got {weight.shape[0]}")
    require(groups >= 1 and shape[1] % groups == 0, f"group must divide {shape[1]} channels, but got {groups}")
    strides, dilation, extent = steps_of(call, len(shape) - 2, weight.shape[2:])
    full = tuple((size - 1) * stride + r for size, stride, r in zip(shape[2:], strides, extent, strict=True))
    before, output = cropping(call, shape[2:], strides, full)
    channels = groups * weight.shape[1]
    after, has_bias = (shape[0], channels, *output), check_bias(call, channels)
    window = convolution.TransposedWindow(strides, dilation, before, output, groups)
    sums = convolution.f32_transposed_convolution(call.plan.budget, shape, weight, window)
    return _biased(call, sums, after, has_bias=has_bias)


def _biased(call: Call, sums: Callable[[Emitter, Value], ir.Value], after: Shape, *, has_bias: bool) -> Computed:
    """Sums over input 0, plus input 2 where that is a bias, in the shape `after`."""
    values = [call.f32(index).f32(call.plan, call.name) for index in ((0, 2) if has_bias else (0,))]

    def emit(emitter: Emitter) -> Emitted:
        total = sums(emitter, values[0])
        for bias in values[1:]:
            total = emitter.f32("addf", total, emitter.to_channels_first(bias))
        return convolution.from_image(after)(emitter, total)

    return Computed(after, call.plan.compute(call.name, after, "f32", emit))


# Convolutions of sequences whose first windows begin in what a call before left.

_SILU = ("silu", "swish")


@imports("com.microsoft.CausalConvWithState")
def _causal_convolution(call: Call) -> tuple[Tensor, Tensor]:
    """A depthwise convolution of [B, C, L] behind its state, and the end of both, which is the next call's state."""
    call.count(2, 4)
    for name, wanted in (("ndim", 1), ("state_window", 0), ("channels_last", 0)):
        found: int = call.attribute(name, wanted)
        require(found == wanted, f"{name} must be {wanted}, but got {found}")
    activation, dilation = call.attribute("activation", "none"), int(call.attribute("dilation", 1))
    require(activation in ("none", *_SILU), f"activation must be none, {' or '.join(_SILU)}, but is {activation}")
    (batch, channels, _), taps = call.f32(0).shape, call.tensor(1).shape
    require(taps[:2] == (channels, 1) and dilation >= 1, f"weights must be [{channels}, 1, k], but got {list(taps)}")
    held = (batch, channels, (taps[2] - 1) * dilation)
    before: Tensor = Constant(np.zeros(held, np.float32)) if call.optional(3) is None else call.f32(3)
    require(before.shape == held, f"input 3, past_state, must have the shape {list(held)}, but got {before.shape}")
    both = part_of(call, "Concat", [before, call.f32(0)], axis=2) if held[2] else call.f32(0)
    bias = [] if call.optional(2) is None else [call.tensor(2)]
    result = part_of(call, "Conv", [both, call.tensor(1), *bias], group=channels, dilations=[dilation])
    if activation in _SILU:
        result = part_of(call, "Mul", [result, part_of(call, "Sigmoid", [result])])
    ends = [Constant(np.array([one])) for one in (both.shape[2] - held[2], both.shape[2], 2)]
    return result, part_of(call, "Slice", [both, *ends])
