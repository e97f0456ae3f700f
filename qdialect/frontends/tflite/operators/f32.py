"""Operators between float32 tensors, with the steps of TFLite's reference kernels, each rounded to float32.

Sums run in the order of those kernels, so that what only adds, multiplies and divides has their bits, and so has
SOFTMAX with the e^x of glibc. Functions that are operators of their own are those of kernels, at most an ulp from the
truth, as a C library's may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qdialect.arithmetic import activations, onnx_activations, torch_activations
from qdialect.arithmetic.block_weights import PackedWeights
from qdialect.arithmetic.expressions import Expression, Input, Number
from qdialect.dialect import F32Conv2DOp, F32MatmulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.building.op_builder import Arithmetic, OpBuilder, blocked_sum, ordered_sum
from qdialect.frontends.building.slices import Slice, check_indices, framed, gather, take_slices
from qdialect.frontends.building.windows import Pool, Window
from qdialect.frontends.planning.attention import softmax
from qdialect.frontends.planning.block_weights import block_product, packed_matrix
from qdialect.frontends.planning.convolution import TransposedWindow, rows_of_windows, transposed_sums
from qdialect.frontends.planning.movement import joined_shape
from qdialect.frontends.planning.pool import sums_of_windows
from qdialect.frontends.planning.tensors import Quantized, known
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.elementwise import broadcast_shape
from qdialect.frontends.tflite.operators.reduction import reduction_of
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, imports_f32
from qdialect.ir._mlir import ir

_LARGEST = float(np.finfo(np.float32).max)


def clamped(emitter: Emitter, value: ir.Value, activation: int, *, is_bounded: bool = False) -> ir.Value:
    """`value` after a fused activation; where `is_bounded`, reference kernels bound infinities without one, too."""
    minimum, maximum = checks.f32_bounds(activation)
    if is_bounded and not emitter.is_delegated:
        minimum, maximum = (-_LARGEST if minimum is None else minimum, _LARGEST if maximum is None else maximum)
    at_least = Input() if minimum is None else Input().at_least(minimum)
    return emitter.expression(at_least if maximum is None else at_least.at_most(maximum), value)


def _f32(tensor: Tensor, what: str) -> Tensor:
    require(tensor.element == "f32", f"{what} must be f32, but got {tensor.element}")
    return tensor


_FUNCTIONS: dict[str, Expression] = {
    "ABS": activations.absolute,
    "CEIL": activations.ceil,
    "COS": activations.cos,
    "EXP": activations.exp,
    "FLOOR": activations.floor,
    "HARD_SWISH": activations.hardswish,
    "LOG": activations.log,
    "LOGISTIC": activations.tflite_logistic,
    "NEG": activations.negate,
    "RELU": activations.relu,
    "RELU6": activations.relu6,
    "RELU_N1_TO_1": Input().at_least(-1.0).at_most(1.0),
    "ROUND": activations.round_even,
    "RSQRT": activations.rsqrt,
    "SIGN": onnx_activations.sign,
    "SIN": activations.sin,
    "SQRT": activations.sqrt,
    "SQUARE": activations.square,
    "TANH": activations.tanh,
}


_DELEGATED: dict[str, Expression] = {
    # Which does not overflow.
    "HARD_SWISH": Input() * Input().apply("math.fma", 1 / 6, 0.5).at_least(0.0).at_most(1.0),
    "LOGISTIC": activations.sigmoid,
    "NEG": Number(0.0) - Input(),
}
"""Functions that XNNPACK computes otherwise."""


_PARAMETRIC: dict[str, Callable[[Operator], Expression]] = {
    "ELU": lambda _: activations.elu(1.0),
    "GELU": lambda operator: (
        activations.tflite_gelu_tanh if operator.option("Approximate") else activations.tflite_gelu
    ),
    "LEAKY_RELU": lambda operator: activations.leaky_relu(operator.option("Alpha")),
}
"""Functions with options.

``e^x - 1`` of negative numbers is one function, as in LiteRT's kernels, whose last place is a library's own.
"""


@imports_f32(*_FUNCTIONS, *_PARAMETRIC)
def _function(operator: Operator) -> Emission:
    function = _FUNCTIONS.get(operator.kind) or _PARAMETRIC[operator.kind](operator)
    delegated = _DELEGATED.get(operator.kind, function)
    if operator.kind == "LEAKY_RELU":
        delegated = onnx_activations.leaky_relu(operator.option("Alpha"))
    if function is activations.tflite_gelu:
        delegated = activations.gelu
    (data,) = checks.operands(operator, 1)
    return lambda emitter: emitter.expression(delegated if emitter.is_delegated else function, emitter.value(data))


_LEFT, _RIGHT = Input(0), Input(1)
_PAIRS: dict[str, Expression] = {
    "ADD": _LEFT + _RIGHT,
    "DIV": _LEFT / _RIGHT,
    "FLOOR_DIV": torch_activations.floor_of_quotient,
    "FLOOR_MOD": torch_activations.remainder,
    # The right one where either is NaN.
    "MAXIMUM": _LEFT.apply("arith.cmpf", _RIGHT).apply("arith.select", _LEFT, _RIGHT),
    "MINIMUM": _RIGHT.apply("arith.cmpf", _LEFT).apply("arith.select", _LEFT, _RIGHT),
    "MUL": _LEFT * _RIGHT,
    "POW": _LEFT.apply("math.powf", _RIGHT),
    "SQUARED_DIFFERENCE": activations.square.of(_LEFT - _RIGHT),
    "SUB": _LEFT - _RIGHT,
}


@imports_f32(*_PAIRS)
def _pair(operator: Operator) -> Building:
    """FLOOR_MOD is the remainder of the magnitudes, exact, with the sign of the divisor."""
    activation = checks.activation_of(operator)
    checks.f32_bounds(activation)
    function, is_bounded = _PAIRS[operator.kind], operator.kind in ("ADD", "DIV", "MUL", "SUB")
    swaps = operator.kind in ("MAXIMUM", "MINIMUM") and _swaps(checks.operands(operator, 2), operator.outputs[0].shape)

    def combine(emitter: Emitter, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        sides = (rhs, lhs) if swaps and emitter.is_delegated else (lhs, rhs)
        return clamped(emitter, emitter.expression(function, *sides), activation, is_bounded=is_bounded)

    return pairwise(operator, combine)


def _swaps(sides: Sequence[Tensor], shape: Shape) -> bool:
    """Whether XNNPACK exchanges two operands: the second is to be the number, or the one that broadcasts along rows."""
    numbers = [side.data is not None and side.data.size == 1 for side in sides]
    if any(numbers):
        return not numbers[0]
    row = next((axis for axis in range(-1, -len(shape) - 1, -1) if shape[axis] > 1), -1)
    left = sides[0].shape
    return -row > len(left) or left[row] == 1


def pairwise(operator: Operator, combine: Callable[[Emitter, ir.Value, ir.Value], ir.Value]) -> Building:
    """`combine` of two f32 inputs, which broadcast to the output's shape."""
    sides = checks.operands(operator, 2)
    for side in sides:
        _f32(side, "input")
    shape = broadcast_shape(sides, operator.outputs[0])
    emitter = yield
    lhs, rhs = (emitter.broadcast(emitter.value(side), shape) for side in sides)
    return combine(emitter, lhs, rhs)


@imports_f32("LOG_SOFTMAX", "SOFTMAX")
def _softmax(operator: Operator) -> Emission:
    """Over the last axis."""
    is_logarithm, beta = operator.kind == "LOG_SOFTMAX", 1.0
    if not is_logarithm:
        beta = operator.option("Beta")
    (data,) = checks.operands(operator, 1)
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    require(math.isfinite(beta), f"beta must be finite, but got {beta}")
    how: dict[str, Any] = {"is_logarithm": is_logarithm, "beta": beta}

    def emit(emitter: Emitter) -> ir.Value:
        in_order = is_logarithm or not emitter.is_delegated
        return softmax(emitter, emitter.value(data), (len(data.shape) - 1,), in_order=in_order, **how)

    return emit


@imports_f32("MEAN", "SUM")
def _reduction(operator: Operator) -> Building:
    """XNNPACK multiplies by the reciprocal of the number of terms, and adds terms of rows in another order."""
    data, axes, keep_dims = reduction_of(operator)
    count = float(math.prod(data.shape[axis] for axis in axes))
    emitter = yield
    is_of_rows = len(data.shape) - 1 in axes
    add = blocked_sum if emitter.is_delegated and is_of_rows else ordered_sum
    total = add(emitter, emitter.value(data), axes, keep_dims)
    if operator.kind == "SUM":
        return total
    return emitter.f32("mulf", total, 1 / count) if emitter.is_delegated else emitter.f32("divf", total, count)


@imports_f32("CONCATENATION")
def _concatenation(operator: Operator) -> Building:
    (parts, axis), activation = checks.parts_of(operator), checks.activation_of(operator)
    for part in parts:
        _f32(part, "input")
    joined_shape([part.shape for part in parts], axis)
    checks.f32_bounds(activation)
    emitter = yield
    joined = emitter.concatenate([emitter.value(part) for part in parts], axis)
    return clamped(emitter, joined, activation)


@imports_f32("FULLY_CONNECTED")
def _fully_connected(operator: Operator) -> Building:
    activation, _ = checks.dense_options(operator)
    data, weight, *bias = checks.operands(operator, 2, 3)
    matrix = checks.constant(_f32(weight, "weight"), "weight")
    checks.f32_bounds(activation)
    columns, depth = matrix.shape
    elements, packed = math.prod(data.shape), packed_weight(weight, is_transposed=True)
    check_bias(bias, columns)
    emitter = yield
    shape = (elements // depth, columns)
    rows = emitter.reshape(emitter.value(data), (elements // depth, depth))
    if packed is None:
        total, bias = sum_of_products(emitter, F32MatmulOp, rows, matrix.T, bias)
    else:
        total = block_product(emitter, rows, packed, rounded_products=True)
    return emitter.reshape(
        finished(emitter, total, bias, activation, shape, is_bounded=True), operator.outputs[0].shape
    )


def sum_of_products(
    emitter: Emitter,
    op: type[F32MatmulOp | F32Conv2DOp],
    data: ir.Value,
    weight: Array,
    bias: list[Tensor],
    **attributes: Any,
) -> tuple[ir.Value, list[Tensor]]:
    """The sums, and the bias that is yet to be added.

    XNNPACK's begin with the bias, and a product is not rounded before it is added; single channels have another order.
    """
    # [O, H, W, I] of several taps of one channel alone.
    is_single = weight.ndim > 2 and len(weight) == weight.shape[-1] == 1 < weight.size
    is_delegated = emitter.is_delegated and attributes.get("groups", 1) == 1 and not is_single
    starts = [np.ravel(one.data) for one in bias if one.data is not None] if is_delegated else []
    operands = [data, *map(emitter.constant, (np.ascontiguousarray(weight), *starts))]
    total = emitter.build(op, *operands, element="f32", rounded_products=not is_delegated, **attributes)
    return total, [] if starts else bias


def packed_weight(weight: Tensor, *, is_transposed: bool) -> PackedWeights | None:
    """The matrix [..., K, N], [..., N, K] where it `is_transposed`, of a constant that has few bits in the file."""
    source = weight.narrow
    if source is None or source.data is None or math.prod(source.shape[:-2]) > 1:
        return None
    shape = source.shape[-2:]
    values, axis = known(source.name, source.data.reshape(shape)), source.axis - len(source.shape) + 2
    matrix = Quantized(shape, values, source.scales, source.zero_points, axis)
    return packed_matrix(matrix, is_transposed=is_transposed)


def check_bias(bias: list[Tensor], channels: int) -> None:
    """Raise `UnsupportedError` for a bias that is not one f32 number for each channel."""
    for tensor in bias:
        found = _f32(tensor, "bias").shape
        require(math.prod(found) == channels, f"bias must have {channels} entries, but got {math.prod(found)}")


def finished(
    emitter: Emitter, total: ir.Value, bias: list[Tensor], activation: int, shape: Shape, *, is_bounded: bool = False
) -> ir.Value:
    """Sums of products after their bias, if there is one, and a fused activation, as in `clamped`."""
    for tensor in bias:
        total = emitter.f32("addf", total, emitter.reshape(emitter.value(tensor), shape[-1:]))
    return clamped(emitter, total, activation, is_bounded=is_bounded)


@imports_f32("CONV_2D", "DEPTHWISE_CONV_2D")
def _convolution(operator: Operator) -> Building:
    options = checks.window_options(operator)
    data, weight, *bias = checks.operands(operator, 2, 3)
    taps, shape = checks.f32_taps(weight), operator.outputs[0].shape
    require(len(data.shape) == taps.ndim == len(shape) == 4, "input, weight and output must have 4 dimensions")
    if operator.kind == "DEPTHWISE_CONV_2D":
        require(taps.shape[0] == 1, f"weight must have a first dimension of 1, but got {taps.shape[0]}")
        taps = taps.transpose(3, 1, 2, 0)
    checks.f32_bounds(options.activation)
    check_bias(bias, taps.shape[0])
    require(taps.shape[3] >= 1, "weight must have a depth")
    padding = options.explicit(data.shape[1:3], taps.shape[1:3])
    emitter = yield
    image, groups = padded_image(emitter, emitter.value(data), padding), data.shape[3] // taps.shape[3]
    how: dict[str, Any] = {"strides": options.strides, "dilation": options.dilation, "groups": groups}
    total, bias = sum_of_products(emitter, F32Conv2DOp, image, taps, bias, **how)
    return finished(emitter, total, bias, options.activation, shape, is_bounded=True)


def padded_image(emitter: Emitter, image: ir.Value, padding: checks.Padding) -> ir.Value:
    """Zeros at (top, left, bottom, right) of an image; fewer than none cut elements off."""
    return framed(emitter, image, (0, *padding[:2], 0), (0, *padding[2:], 0))


@imports_f32("PRELU")
def _prelu(operator: Operator) -> Building:
    """x where x is not negative, x times the slope elsewhere."""

    def combine(emitter: Emitter, x: ir.Value, slope: ir.Value) -> ir.Value:
        s = Arithmetic(emitter)
        return s.select(s.compare("ge", x, 0.0), x, s.op("arith.mulf", x, slope))

    return pairwise(operator, combine)


# L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION of float32 numbers along the last dimension.

# The least divisor of a row.
_SHORTEST = 1e-6
_MAX_RADIUS = 64


@imports_f32("L2_NORMALIZATION")
def _l2_normalization(operator: Operator) -> Building:
    """``x / max(sqrt(sum(x^2)), 1e-6)``, the squares added in their order."""
    activation = checks.activation_of(operator)
    (data,) = checks.operands(operator, 1)
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    checks.f32_bounds(activation)
    emitter = yield
    s, x = emitter.f32, emitter.value(data)
    total = ordered_sum(emitter, s("mulf", x, x), (len(data.shape) - 1,))
    return clamped(emitter, s("divf", x, s("maximumf", s("sqrt", total), _SHORTEST)), activation)


@imports_f32("LOCAL_RESPONSE_NORMALIZATION")
def _local_response_normalization(operator: Operator) -> Building:
    """``x * (bias + alpha * sum)^-beta`` with the sum of the squares of `radius` elements before and behind.

    So TensorFlow defines it and LiteRT's default kernel computes it; the reference kernel omits the last element.
    """
    fields = ("Radius", "Bias", "Alpha", "Beta")
    radius, *numbers = operator.options(*fields)
    bias, alpha, beta = numbers
    (data,) = checks.operands(operator, 1)
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    require(0 <= radius <= _MAX_RADIUS, f"radius must be in [0, {_MAX_RADIUS}], but got {radius}")
    require(all(map(math.isfinite, numbers)), f"bias, alpha and beta must be finite, but got {numbers}")
    emitter = yield
    s, x = emitter.f32, emitter.value(data)
    total = _sum_around(emitter, s("mulf", x, x), radius)
    return s("mulf", x, s("powf", s("addf", s("mulf", total, alpha), bias), -beta))


def _sum_around(emitter: Emitter, value: ir.Value, radius: int) -> ir.Value:
    """The sum of the elements around each along the last dimension, in their order."""
    *outer, depth = shape_of(value.type)
    ends = (*(0 for _ in outer), radius)
    padded = framed(emitter, value, ends, ends)
    whole = [Slice(0, 1, extent) for extent in outer]
    first, *others = (take_slices(emitter, padded, [*whole, Slice(k, 1, depth)]) for k in range(2 * radius + 1))
    s = emitter.f32
    for other in others:
        first = s("addf", first, other)
    return first


# Pools and transposed convolutions of float32 images, with the sums of TFLite's reference kernels in their order.


@imports_f32("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D")
def _pool(operator: Operator) -> Building:
    """The elements of a window are added row by row; those of the padding do not count.

    L2_POOL_2D is the root of the mean of the squares.
    """
    options, shape = checks.window_options(operator), operator.outputs[0].shape
    (data,) = checks.operands(operator, 1)
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    require(len(shape) == 4, "output must have 4 dimensions")
    size, is_root = data.shape[1:3], operator.kind == "L2_POOL_2D"
    padding = options.explicit(size)
    checks.f32_bounds(options.activation)
    window = Window(options.kernel, options.strides, (1, 1), padding[:2], padding[2:], shape[1:3])
    if operator.kind == "MAX_POOL_2D":
        windows = Pool.of(window, size, operator.budget)
        windows.check()
        emitter = yield
        image = emitter.value(data)
        if not emitter.is_delegated:
            # The reference kernel passes over NaN.
            s = Arithmetic(emitter)
            image = s.select(s.compare("eq", image, image), image, -np.inf)
        return clamped(emitter, windows.maxima(emitter, image), options.activation, is_bounded=True)
    counts = window.counts(size).astype(np.float32)[..., None]
    require(bool((counts > 0).all()), f"every window must have an element of {list(size)}")
    operator.budget.spend_constant((shape[3], *window.kernel), 4)
    emitter = yield
    image, s = emitter.value(data), emitter.f32
    image = s("mulf", image, image) if is_root else image
    mean = s("divf", sums_of_windows(emitter, image, window), emitter.constant(counts))
    return clamped(emitter, s("sqrt", mean) if is_root else mean, options.activation, is_bounded=True)


@imports_f32("TRANSPOSE_CONV")
def _transpose_conv(operator: Operator) -> Building:
    """The padding is that of the convolution of which the output would be the input (TFLite transpose_conv.cc)."""
    wanted, weight, data, *bias = checks.operands(operator, 3, 4)
    taps, shape = checks.f32_taps(weight), operator.outputs[0].shape
    ranks = len(data.shape), taps.ndim, len(shape)
    require(ranks == (4, 4, 4), f"input, weight and output must have 4 dimensions, but got {list(ranks)}")
    require(data.shape[3] == taps.shape[3], f"input must have {taps.shape[3]} channels, but got {data.shape[3]}")
    return _transposed(operator, data, taps, wanted, bias)


def _transposed(operator: Operator, data: Tensor, taps: Array, wanted: Tensor, bias: list[Tensor]) -> Building:
    """The sums of `taps` [O, ..., I]; XNNPACK adds up those of an image in the order of the taps, from the bias on."""
    how, shape = checks.window_options(operator), operator.outputs[0].shape
    require(checks.integers(wanted, "output shape") == shape, f"output shape must be {list(shape)}")
    checks.f32_bounds(how.activation)
    check_bias(bias, taps.shape[0])
    size, kernel = data.shape[1:-1], taps.shape[1:-1]
    low = how.explicit(shape[1:-1], kernel)[: len(size)]
    emitter = yield
    # The delegate takes images whose strides are no larger than the kernel.
    is_reached = all(k >= s for k, s in zip(kernel, how.strides, strict=True))
    image, is_delegated = emitter.value(data), emitter.is_delegated and is_reached and len(size) == _IMAGE_RANK
    starts = [np.ravel(one.data) for one in bias if one.data is not None] if is_delegated else []
    weight = np.moveaxis(taps, (0, -1), (1, 0))
    is_turned = is_delegated and any(k > s for k, s in zip(kernel, how.strides, strict=True))
    if is_turned:
        extents = zip(size, how.strides, kernel, how.dilation, low, shape[1:-1], strict=True)
        low = tuple((n - 1) * s + (k - 1) * d + 1 - before - after for n, s, k, d, before, after in extents)
        weight, image = np.flip(weight, (2, 3)), _turned(emitter, image)

    def convolve(emitter: OpBuilder, data: ir.Value, taps: Array, steps: Shape, start: Array | None) -> ir.Value:
        return _convolved(emitter, data, taps, (1,) * len(steps), steps, start, is_rounded=not is_delegated)

    window = TransposedWindow(how.strides, how.dilation, low, shape[1:-1])
    total = transposed_sums(weight, window, convolve, starts[0] if starts else None)(emitter, image)
    total = _turned(emitter, total) if is_turned else total
    return finished(emitter, total, [] if starts else bias, how.activation, shape, is_bounded=True)


def _turned(emitter: OpBuilder, image: ir.Value) -> ir.Value:
    """Images from the last row and column to the first."""
    for axis in (1, 2):
        image = gather(emitter, image, axis, range(shape_of(image.type)[axis])[::-1])
    return image


# CONV_3D and CONV_3D_TRANSPOSE of float32 volumes NDHWC, with the sums of TFLite's reference kernels in their order.
#
# Every row that a window reads is written out for it, so that windows over volumes become windows over images whose
# rows are those of a window one after another: a convolution of the images adds the products up in the same order.

_IMAGE_RANK, _VOLUME_RANK = 2, 5


@imports_f32("CONV_3D")
def _conv_3d(operator: Operator) -> Building:
    """Weights are [D, H, W, I, O]."""
    how = checks.window_options(operator)
    data, weight, *bias = checks.operands(operator, 2, 3)
    taps = np.moveaxis(_volume_weight(weight, data), 4, 0)
    shape = _checked_volume(operator, data, taps, how, bias)
    padding = how.explicit(data.shape[1:4], taps.shape[1:4])
    low, high = padding[:3], padding[3:]
    emitter = yield
    volumes = framed(emitter, emitter.value(data), (0, *low, 0), (0, *high, 0))
    total = _convolved(emitter, volumes, taps, how.strides, how.dilation)
    return finished(emitter, total, bias, how.activation, shape, is_bounded=True)


@imports_f32("CONV_3D_TRANSPOSE")
def _conv_3d_transpose(operator: Operator) -> Building:
    """Weights are [D, H, W, O, I]."""
    wanted, weight, data, *bias = checks.operands(operator, 3, 4)
    taps = np.moveaxis(_volume_weight(weight, data), 3, 0)
    _checked_volume(operator, data, taps, checks.window_options(operator), bias)
    return _transposed(operator, data, taps, wanted, bias)


def _volume_weight(weight: Tensor, data: Tensor) -> Array:
    taps = checks.f32_taps(weight)
    ranks = (len(data.shape), taps.ndim)
    require(
        ranks == (_VOLUME_RANK, _VOLUME_RANK),
        f"input and weight must have 5 dimensions, but got {ranks[0]} and {ranks[1]}",
    )
    return taps


def _checked_volume(
    operator: Operator, data: Tensor, taps: Array, how: checks.WindowOptions, bias: list[Tensor]
) -> Shape:
    """The shape of the output; `taps` are [O, D, H, W, I]."""
    shape = operator.outputs[0].shape
    require(len(shape) == _VOLUME_RANK, f"output must have 5 dimensions, but got {len(shape)}")
    require(data.shape[4] == taps.shape[4], f"input must have {taps.shape[4]} channels, but got {data.shape[4]}")
    require(min(*how.strides, *how.dilation) >= 1, "strides and dilation must be at least 1")
    checks.f32_bounds(how.activation)
    check_bias(bias, taps.shape[0])
    for i in range(2):
        check_indices(shape[1 + i] * taps.shape[1 + i], operator.budget)
    return shape


def _convolved(
    emitter: OpBuilder,
    data: ir.Value,
    taps: Array,
    strides: Shape,
    dilation: Shape,
    start: Array | None = None,
    *,
    is_rounded: bool = True,
) -> ir.Value:
    """The sums of products of images, or of volumes, whose border is there."""
    how: dict[str, Any] = {"strides": strides, "dilation": dilation}
    weight, shape = np.ascontiguousarray(taps), None
    if len(strides) > _IMAGE_RANK:
        zeros, (batch, *size, _) = (0,) * len(strides), shape_of(data.type)
        extents = zip(size, taps.shape[1:-1], strides, dilation, strict=True)
        output = tuple((n - (k - 1) * d - 1) // s + 1 for n, k, s, d in extents)
        window = Window(taps.shape[1:-1], strides, dilation, zeros, zeros, output)
        data, flat = rows_of_windows(emitter, data, window)
        weight = weight.reshape(len(taps), *flat.kernel, taps.shape[-1])
        how, shape = {"strides": flat.strides, "dilation": flat.dilation}, (batch, *output, len(taps))
    operands = map(emitter.constant, (weight,) if start is None else (weight, start))
    total = emitter.build(F32Conv2DOp, data, *operands, element="f32", rounded_products=is_rounded, **how)
    return total if shape is None else emitter.reshape(total, shape)
