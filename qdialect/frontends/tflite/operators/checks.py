"""Checks what several planners ask of a node: its tensors, its fused activation and its padding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import tflite

from qdialect.arithmetic import Multiplier, doubling_high_multiply, quantize_multiplier, real_multiplier
from qdialect.dialect.fields import LARGEST_SCALE
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.building import checks
from qdialect.frontends.building.checks import Array, Shape, axis_in, require, required
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor

EIGHT_BIT = ("i8", "ui8")
# Axes, extents and amounts are a few for each dimension.
_MAX_ENTRIES = 1024
# A larger factor would need a left shift of more bits than an accumulator has.
_LARGEST_FACTOR = 2.0**30


def operands(operator: Operator, minimum: int, maximum: int | None = None) -> tuple[Tensor, ...]:
    """The inputs of a node with one output and `minimum` to `maximum` inputs, omitted trailing ones left out."""
    present = operands_of_many(operator, minimum, maximum)
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    return present


def operands_of_many(operator: Operator, minimum: int, maximum: int | None = None) -> tuple[Tensor, ...]:
    """As `operands`, of a node with at least one output."""
    present = [tensor for tensor in operator.inputs if tensor is not None]
    maximum = maximum or minimum
    in_front = all(tensor is not None for tensor in operator.inputs[: len(present)])
    count = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
    require(
        in_front and minimum <= len(present) <= maximum, f"must have {count} inputs, but got {len(operator.inputs)}"
    )
    require(len(operator.outputs) >= 1, "must have at least 1 output, but got 0")
    return tuple(present)


def dense_options(operator: Operator) -> tuple[int, bool]:
    """The fused activation of FULLY_CONNECTED, and whether floats are quantized around a zero point.

    The output must have the shape that the options and the other tensors give it.
    """
    fields = ("FusedActivationFunction", "WeightsFormat", "AsymmetricQuantizeInputs", "KeepNumDims")
    activation, weights_format, is_asymmetric, keeps = operator.options(*fields)
    default = tflite.FullyConnectedOptionsWeightsFormat.DEFAULT
    require(weights_format == default, f"weights format {weights_format} is not supported")
    data, weight, *_ = operands(operator, 2, 3)
    require(len(weight.shape) == 2, f"weight must have 2 dimensions, but got {len(weight.shape)}")
    channels, depth = weight.shape
    elements = math.prod(data.shape)
    require(depth >= 1 and elements % depth == 0, f"input must have a multiple of {depth} elements, but got {elements}")
    wanted, found = (*(data.shape[:-1] if keeps else (elements // depth,)), channels), operator.outputs[0].shape
    require(found == wanted, f"output must have the shape {list(wanted)}, but got {list(found)}")
    return activation, is_asymmetric


def eight_bit(tensor: Tensor, what: str) -> Tensor:
    """`tensor`, which has to be 8-bit with one scale and zero point."""
    require(tensor.element in EIGHT_BIT, f"{what} must be i8 or ui8, but got {tensor.element}")
    return per_tensor(tensor, what)


def eight_bit_ends(operator: Operator, *inputs: Tensor) -> Tensor:
    """The output of a node, which has to be 8-bit with one scale and zero point, as `inputs` of its type have."""
    output = eight_bit(operator.outputs[0], "output")
    same_type(operator, *(eight_bit(tensor, "input") for tensor in inputs))
    return output


def check_parameters(output: Tensor, scale: float, zero_point: int) -> None:
    """`output` has the only scale and zero point that a kernel writes."""
    found, wanted = (output.scale, output.zero_point), (scale, zero_point)
    require(found == wanted, f"output scale and zero point must be {wanted}, but got {found}")


def per_tensor(tensor: Tensor, what: str) -> Tensor:
    """`tensor`, which has to have one scale, and a zero point of its type."""
    require(len(tensor.scales) == 1, f"{what} must have one scale, but got {len(tensor.scales)}")
    check_scales(tensor, what)
    low, high = quantized_range(tensor)
    holds = low <= tensor.zero_point <= high
    require(holds, f"{what} zero point must be in [{low}, {high}], but got {tensor.zero_point}")
    return tensor


def constant(tensor: Tensor, what: str) -> Array:
    """The data of a tensor that has to be constant."""
    return required(tensor.data, f"{what} must be constant")


def f32_taps(weight: Tensor) -> Array:
    """The constant f32 weight of windows, finite: outside of an image LiteRT leaves products out that are 0 here."""
    require(weight.element == "f32", f"weight must be f32, but got {weight.element}")
    taps = constant(weight, "weight")
    require(bool(np.isfinite(taps).all()), "weight must be finite")
    return taps


def check_index_type(tensor: Tensor, what: str) -> None:
    """Raises `UnsupportedError` for indices of another type than i32 and i64."""
    require(tensor.element in ("i32", "i64"), f"{what} must be i32 or i64, but got {tensor.element}")


def integers(tensor: Tensor, what: str, maximum: int = _MAX_ENTRIES) -> tuple[int, ...]:
    """The entries of a constant i32 or i64 tensor, which are at most `maximum`: any number of nodes may share it."""
    check_index_type(tensor, what)
    entries = constant(tensor, what)
    require(entries.size <= maximum, f"{what} must have at most {maximum} entries, but got {entries.size}")
    return tuple(entries.ravel().tolist())


def axis_of(entries: Sequence[int], rank: int) -> int:
    """The dimension that one constant entry names, counted from the end where it is negative."""
    require(len(entries) == 1, f"axis must have 1 entry, but got {len(entries)}")
    return axis_in(entries[0], rank)


def bounded(tensor: Tensor) -> Tensor:
    """`tensor`, a scale that is too large for the dialect as the largest one, where that makes no difference."""
    is_wide = len(tensor.scales) == 1 and LARGEST_SCALE < tensor.scale < np.inf
    return replace(tensor, scales=(LARGEST_SCALE,)) if is_wide else tensor


def same_type(operator: Operator, *tensors: Tensor) -> None:
    """All tensors have the element type of the node's output."""
    output = operator.outputs[0].element
    for tensor in tensors:
        require(
            tensor.element == output, f"inputs and output must have one type, but got {tensor.element} and {output}"
        )


def same_quantization(operator: Operator, tensor: Tensor) -> None:
    """`tensor` has the type, scale and zero point of the node's 8-bit output."""
    same_content(tensor, eight_bit(operator.outputs[0], "output"))


def same_content(tensor: Tensor, output: Tensor) -> None:
    """`tensor` and `output` have the same element type and, if they are quantized, the same scale and zero point."""
    found, wanted = tensor.element, output.element
    require(wanted in NUMPY_DTYPES, f"output must be {', '.join(NUMPY_DTYPES)}, but got {wanted}")
    require(found == wanted, f"inputs and output must have one type, but got {found} and {wanted}")
    if wanted in EIGHT_BIT:
        eight_bit(bounded(tensor), "input")
        eight_bit(bounded(output), "output")
        pairs = [(each.scale, each.zero_point) for each in (tensor, output)]
        message = f"input must have the output's scale and zero point {pairs[1]}, but got {pairs[0]}"
        require(pairs[0] == pairs[1], message)


def check_scales(tensor: Tensor, what: str) -> None:
    """`tensor` is quantized, by scales that the dialect can hold."""
    require(len(tensor.scales) >= 1, f"{what} must be quantized")
    checks.check_scales(tensor.scales, f"{what} scale")


def check_rescale(
    input_scale: float, weight_scales: Sequence[float], output_scale: float, multiplier: Multiplier
) -> None:
    """The factors of a rescale fit the fixed-point arithmetic."""
    with np.errstate(all="ignore"):
        factors = real_multiplier(input_scale, weight_scales, output_scale, multiplier)
        wrong = factors[~((factors >= 0) & (factors < _LARGEST_FACTOR))].tolist()
    require(not wrong, f"rescale factor must be in [0, 2^30), but got {next(iter(wrong), None)}")


def quantized_range(tensor: Tensor) -> tuple[int, int]:
    """Smallest and largest value of an integer tensor."""
    return ELEMENT_RANGES[tensor.element]


# Checks of the tensors of 16-bit operators.

# Of a logarithm to base 2 (TFLite CheckedLog2).
_TOLERANCE = 1e-3


def sixteen_bit(tensor: Tensor, what: str) -> Tensor:
    """`tensor`, which has to be i16 with one scale and zero point 0, the only one that the kernels know."""
    require(tensor.element == "i16", f"{what} must be i16, but got {tensor.element}")
    require(len(tensor.scales) == 1, f"{what} must have one scale, but got {len(tensor.scales)}")
    check_scales(tensor, what)
    require(tensor.zero_point == 0, f"{what} zero point must be 0, but got {tensor.zero_point}")
    return tensor


def output_of(operator: Operator) -> Tensor:
    """The 16-bit output of a node."""
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    return sixteen_bit(operator.outputs[0], "output")


def one_input(operator: Operator) -> tuple[Tensor, Tensor]:
    """The input and the output of a node with one input."""
    (data,) = operands(operator, 1)
    return sixteen_bit(data, "input"), output_of(operator)


def two_inputs(operator: Operator) -> tuple[Tensor, Tensor, Tensor]:
    """Both inputs and the output of a node."""
    lhs, rhs = operands(operator, 2)
    return sixteen_bit(lhs, "input"), sixteen_bit(rhs, "input"), output_of(operator)


def log2_of(scale: float) -> int | None:
    """The logarithm of a power of two, to the thousandth that the kernels allow for; None for another scale."""
    exact = math.log2(scale)
    return round(exact) if abs(exact - round(exact)) < _TOLERANCE else None


def same_scale(tensor: Tensor, output: Tensor) -> None:
    """`tensor` has the scale of `output`: its values stay what they are."""
    require(tensor.scale == output.scale, f"input must have the output's scale {output.scale}, but got {tensor.scale}")


# The clamp that a fused activation is.

_BOUNDS: dict[int, tuple[float | None, float | None]] = {
    tflite.ActivationFunctionType.NONE: (None, None),
    tflite.ActivationFunctionType.RELU: (0.0, None),
    tflite.ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
    tflite.ActivationFunctionType.RELU6: (0.0, 6.0),
}


def activation_range(activation: int, output: Tensor) -> tuple[int, int]:
    """Smallest and largest quantized value after a fused activation (TFLite CalculateActivationRangeQuantized).

    A real bound b is quantized to ``z + half_away(float32(b) / float32(s))``, which is intersected with the type's
    range.
    """
    return quantized_bounds(*f32_bounds(activation), output)


def f32_bounds(activation: int) -> tuple[float | None, float | None]:
    """The bounds of a fused activation; None for an open end."""
    require(activation in _BOUNDS, f"fused activation {activation} is not supported")
    return _BOUNDS[activation]


def quantized_bounds(minimum: float | None, maximum: float | None, output: Tensor) -> tuple[int, int]:
    """The quantized values of two real bounds; None stands for the end of the type's range."""
    low, high = quantized_range(output)
    # The other end of the type bounds the values too: a clamp outside the type's range leaves one value.
    bounds = (
        low if minimum is None else _quantized(minimum, output),
        high if maximum is None else _quantized(maximum, output),
    )
    return min(max(bounds[0], low), high), max(min(bounds[1], high), low)


def _quantized(bound: float, output: Tensor) -> int:
    with np.errstate(all="ignore"):
        ratio = float(np.float32(bound) / np.float32(output.scale))
    require(math.isfinite(ratio), f"output scale must be positive and finite, but got {output.scale}")
    rounded = math.floor(abs(ratio) + 0.5)
    return output.zero_point + (rounded if ratio >= 0 else -rounded)


_ACTIVATED = ("ADD", "CONCATENATION", "DIV", "FULLY_CONNECTED", "L2_NORMALIZATION", "MUL", "SUB")


def activation_of(operator: Operator) -> int:
    """The fused activation of an operator; NONE where it cannot have one."""
    is_activated = operator.kind in _ACTIVATED
    return operator.option("FusedActivationFunction") if is_activated else tflite.ActivationFunctionType.NONE


def check_plain(operator: Operator) -> None:
    """Raise `UnsupportedError` where an activation is fused."""
    activation = activation_of(operator)
    require(activation == tflite.ActivationFunctionType.NONE, f"fused activation {activation} is not supported")


def parts_of(operator: Operator) -> tuple[tuple[Tensor, ...], int]:
    """The inputs of CONCATENATION, and the dimension along which they lie side by side."""
    axis = operator.option("Axis")
    parts = operands(operator, 1, max(1, len(operator.inputs)))
    return parts, axis_in(axis, len(parts[0].shape))


# Windows of convolutions and pools over images, and their explicit padding.

Padding = tuple[int, ...]
"""Before each dimension, then behind each: top, left, bottom and right of images."""


@dataclass(frozen=True)
class WindowOptions:
    """The options of a convolution or a pool; convolutions have no `kernel` of their own."""

    padding: int
    activation: int
    strides: Shape
    dilation: Shape = (1, 1)
    kernel: Shape = (1, 1)

    def explicit(self, size: Shape, window: Shape = ()) -> Padding:
        """The padding of an image of `size` for windows of the extents `window`, else those of `kernel`.

        As TFLite ComputePaddingHeightWidth: SAME yields ceil(size / stride) windows; of an odd number of added elements
        the larger half comes last.
        """
        window = window or self.kernel
        smallest = min(*self.strides, *self.dilation, *window)
        require(smallest >= 1, "strides, dilation and window must be at least 1")
        if self.padding == tflite.Padding.VALID:
            return (0,) * 2 * len(size)
        require(self.padding == tflite.Padding.SAME, f"padding mode {self.padding} is not supported")
        along = zip(size, window, self.strides, self.dilation, strict=True)
        added = [max((-(-n // step) - 1) * step + (w - 1) * rate + 1 - n, 0) for n, w, step, rate in along]
        return *(amount // 2 for amount in added), *(amount - amount // 2 for amount in added)


_WEIGHT = 1
"""The input of a convolution that its weight is."""
_AT_ONCE = 8
"""How many words a vector of LiteRT's own kernels has; bytes are twice as many."""
_WITH_DELEGATE = "with profile 'tflite-xnnpack'"
_LARGEST_DELEGATED = 2.0**8
_WINDOWS = (
    "CONV_2D",
    "CONV_3D",
    "CONV_3D_TRANSPOSE",
    "DEPTHWISE_CONV_2D",
    "L2_POOL_2D",
    "MAX_POOL_2D",
    "TRANSPOSE_CONV",
)
"""Operators of windows whose fused activation the delegate bounds."""


def window_options(operator: Operator) -> WindowOptions:
    """Those of a convolution or a pool; dilations and a kernel that its table lacks are 1."""

    def present(*names: str) -> Shape:
        return operator.options(*(name for name in names if hasattr(operator.options_class, name))) or (1, 1)

    strides, kernel = present("StrideD", "StrideH", "StrideW"), present("FilterHeight", "FilterWidth")
    dilation = present("DilationDFactor", "DilationHFactor", "DilationWFactor")
    padding, activation = operator.options("Padding", "FusedActivationFunction")
    return WindowOptions(padding, activation, strides, dilation, kernel)


def check_delegated(operator: Operator) -> None:
    """Raise `UnsupportedError` where XNNPACK's delegate leaves a node to a kernel of LiteRT with numbers of its own.

    Such a kernel rounds what fills vectors in another way than what is left, has a function of its own for one scale,
    or exceeds 32 bits.
    """
    check = _DELEGATED.get(operator.kind)
    known = [tensor for tensor in (*operator.inputs[:2], *operator.outputs[:1]) if tensor is not None]
    if len(known) < 2 or not operator.outputs:
        return
    if check is not None:
        check(operator, known[0], known[-1])
    if known[-1].element in EIGHT_BIT and len(known[-1].scales) == 1:
        _check_bounds(operator, known[-1])


def _check_bounds(operator: Operator, output: Tensor) -> None:
    """The delegate rounds a bound of a fused activation to even once the zero point is added."""
    is_window = operator.kind in _WINDOWS
    activation = window_options(operator).activation if is_window else activation_of(operator)
    wanted = activation_range(activation, output)
    with np.errstate(all="ignore"):
        ends = [
            end if bound is None else float(np.rint(np.float32(bound) / np.float32(output.scale) + output.zero_point))
            for bound, end in zip(f32_bounds(activation), quantized_range(output), strict=True)
        ]
    found = tuple(np.clip(ends, *quantized_range(output)))
    message = f"no bound of a fused activation may lie halfway between two quantized values {_WITH_DELEGATE}"
    require(found == wanted, f"{message}, but got an output scale of {output.scale}")


def _check_quantized(_operator: Operator, data: Tensor, output: Tensor) -> None:
    count = math.prod(output.shape)
    if (data.element, output.element) == ("f32", "i16"):
        wanted = f"input must have a multiple of {_AT_ONCE} elements {_WITH_DELEGATE}"
        require(count % _AT_ONCE == 0, f"{wanted}, but got {count}")
    is_retyped = {data.element, output.element} == set(EIGHT_BIT)
    if is_retyped and count >= 2 * _AT_ONCE and len(data.scales) == len(output.scales) == 1:
        wanted = f"no quantized value may become one below zero and a half {_WITH_DELEGATE}"
        factor = data.scale / output.scale
        require(not _has_ties(data, factor), f"{wanted}, but got a factor of {factor}")


def _has_ties(data: Tensor, factor: float) -> bool:
    """Whether a negative product is halfway between two integers, of which kernels that round twice take either."""
    q, e = quantize_multiplier(factor) if 0 < factor < 1 else (0, 0)
    if e >= 0:
        return False
    low, high = quantized_range(data)
    products = doubling_high_multiply(np.arange(low, high + 1, dtype=np.int64) - data.zero_point, q)
    return bool(np.any((products < 0) & (products % (1 << -e) == 1 << (-e - 1))))


def _check_factors(operator: Operator, data: Tensor, output: Tensor) -> None:
    """The delegate takes factors below 2^8, above which 32 bits do not hold what the other kernel computes."""
    tensors = [tensor for tensor in (*operator.inputs, output) if tensor is not None]
    if data.element not in EIGHT_BIT or any(len(tensor.scales) != 1 for tensor in tensors):
        return
    scales = [tensor.scale for tensor in tensors[:-1]]
    largest = (math.prod(scales) if operator.kind == "MUL" else max(scales)) / output.scale
    require(largest < _LARGEST_DELEGATED, f"rescale factor must be below 2^8 {_WITH_DELEGATE}, but got {largest}")


def _check_words(operator: Operator, _data: Tensor, output: Tensor) -> None:
    """Sums of words in 32 bits are rescaled by shifts that round ties up, sums in 64 bits as everywhere."""
    if output.element != "i16":
        return
    place, is_dense = (3 if operator.kind == "TRANSPOSE_CONV" else 2), operator.kind == "FULLY_CONNECTED"
    bias = operator.inputs[place] if len(operator.inputs) > place else None
    is_i32 = operator.option("QuantizedBiasType") == tflite.TensorType.INT32
    holds = not (is_i32 or is_dense) if bias is None else bias.element == "i64"
    found = "none" if bias is None else bias.element
    require(holds, f"bias of i16 input must be i64 {_WITH_DELEGATE}, but got {found}")


def _check_transposed(operator: Operator, data: Tensor, output: Tensor) -> None:
    (_check_gaps if output.element in EIGHT_BIT else _check_words)(operator, data, output)


def _check_matrix(operator: Operator, _data: Tensor, _output: Tensor) -> None:
    right = operator.inputs[1] if len(operator.inputs) > 1 else None
    holds = right is None or right.data is None or right.element == "f32" or not any(right.zero_points)
    require(holds, f"constant right operand must have zero point 0 {_WITH_DELEGATE}")


def _check_joined(operator: Operator, _data: Tensor, _output: Tensor) -> None:
    """The delegate takes no notice of an activation."""
    activation = activation_of(operator)
    holds = activation == tflite.ActivationFunctionType.NONE
    require(holds, f"fused activation {activation} is not supported {_WITH_DELEGATE}")


def _check_slope(operator: Operator, data: Tensor, _output: Tensor) -> None:
    alpha = operator.option("Alpha")
    wanted = f"alpha of i16 input must not be negative {_WITH_DELEGATE}"
    require(data.element != "i16" or alpha >= 0, f"{wanted}, but got {alpha}")


def _check_curve(operator: Operator, data: Tensor, _output: Tensor) -> None:
    if data.element != "i16" or len(data.scales) != 1 or data.scale <= 0:
        return
    powers = (-12,) if operator.kind == "LOGISTIC" else (-12, -11)
    wanted = f"scale of i16 input must be none of {', '.join(f'2^{power}' for power in powers)} {_WITH_DELEGATE}"
    require(log2_of(data.scale) not in powers, f"{wanted}, but got {data.scale}")


def _check_gaps(operator: Operator, _data: Tensor, _output: Tensor) -> None:
    weight = operator.inputs[_WEIGHT] if len(operator.inputs) > _WEIGHT else None
    options = window_options(operator)
    if weight is None or options.padding != tflite.Padding.SAME:
        return
    window, strides = weight.shape[1:3], options.strides
    holds = all(extent >= stride for extent, stride in zip(window, strides, strict=False))
    wanted = "windows must be at least as large as their strides with profile 'tflite-xnnpack' and padding SAME"
    require(holds, f"{wanted}, but got windows of {list(window)} and strides of {list(strides)}")


_DELEGATED: Mapping[str, Callable[[Operator, Tensor, Tensor], None]] = {
    **dict.fromkeys(("ADD", "MUL"), _check_factors),
    **dict.fromkeys(("CONV_2D", "FULLY_CONNECTED"), _check_words),
    **dict.fromkeys(("LOGISTIC", "TANH"), _check_curve),
    "BATCH_MATMUL": _check_matrix,
    "CONCATENATION": _check_joined,
    "LEAKY_RELU": _check_slope,
    "QUANTIZE": _check_quantized,
    "TRANSPOSE_CONV": _check_transposed,
}
"""The check of an operator, its first input and its output where the delegate computes."""
