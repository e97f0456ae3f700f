"""Small TFLite networks drawn at random: chains with side branches, of all types, beside LiteRT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.frontends.tflite.flatbuffer.writer import Quantization, options
from tools.evidence.case import Array, Case, InvalidCaseError
from tools.evidence.tflite_network import Network, litert
from tools.evidence.tflite_numbers import STEPS as NUMBERS
from tools.evidence.tflite_numbers import Step

_TYPES = ("int8", "int8", "int8", "uint8", "int16", "float32", "float32", "int32", "int32", "int64", "bool")
_PROFILES = ("tflite", "tflite-xnnpack")
_MAX_ELEMENTS = 40_000
# How many fused activations the schema numbers: none, relu, relu_n1_to_1, relu6.
_ACTIVATIONS = (0, 0, 1, 2, 3)


def case(seed: int) -> Case:
    """The network of a seed, and what LiteRT's reference kernels or, of odd seeds, its XNNPACK delegate gives.

    It has as many of its steps as LiteRT takes.
    """
    profile = _PROFILES[seed % 2]
    refused = InvalidCaseError("no step fits")
    for steps in range(int(np.random.default_rng(seed).integers(2, 9)), 0, -1):
        try:
            content, arrays = _drawn(seed, steps, is_reference=profile == _PROFILES[0])
            wanted = litert(content, arrays, is_reference=profile == _PROFILES[0])
        except InvalidCaseError as error:
            refused = error
        else:
            return Case(".tflite", content, arrays, wanted, profile=profile)
    raise refused


def _drawn(seed: int, steps: int, *, is_reference: bool) -> tuple[bytes, tuple[Array, ...]]:
    """A model of so many steps, the first ones of any number, and its inputs."""
    rng = np.random.default_rng(seed)
    network = Network(rng, np.dtype(str(rng.choice(_TYPES))), is_dyadic=bool(rng.random() < 0.5))
    network.is_delegated = not is_reference
    # What XNNPACK makes of such floats depends on their place.
    network.is_special = network.chance(0.3) and is_reference
    shape = _shape(network)
    for _ in range(network.choice(1, 1, 2)):
        network.value(network.numbers(shape), network.drawn())
    used, taken = set[int](), 0
    for _ in range(8 * steps):
        values = list(network.shapes)
        value = values[-1] if network.chance(0.75) else network.choice(*values)
        result = None if network.size(value) > _MAX_ELEMENTS else _grown(network, value)
        taken += result is not None
        used |= {value} if result is not None else set()
        if taken == steps:
            break
    ends = [one for one in network.shapes if one not in used and one not in network.inputs][-3:]
    if not ends:
        raise InvalidCaseError("no step fits")
    return network.writer.finish(list(network.inputs), ends), tuple(network.inputs.values())


def _shape(network: Network) -> tuple[int, ...]:
    """Mostly of a batch and of channels; seldom of no dimension, or of no element."""
    rng = network.rng
    inner = [int(one) for one in rng.integers(2, 11, int(rng.choice([0, 1, 2, 2, 2])))]
    shape = (network.choice(1, 1, 2, 3), *inner, network.choice(1, 3, 4, 8, 16, 17, 32))
    if network.chance(0.06):
        return network.choice((), (), (0, *shape[1:]), (*shape[:-1], 0), shape[-1:])
    return shape


def _grown(network: Network, value: int) -> int | None:
    """One more value; none where the step that is drawn does not fit."""
    network.dtype = network.types[value]
    rank, kind = len(network.shapes[value]), _kind(network, value)
    steps = NUMBERS if 0 in network.shapes[value] else (*_STEPS, *NUMBERS)
    fitting = [step for step, ranks, kinds in steps if rank in ranks and kind in kinds]
    return network.choice(*fitting)(network, value) if fitting else None


def _kind(network: Network, value: int) -> str:
    return "q" if network.quantization[value] is not None else _KINDS.get(network.dtype.name, "n")


def _windows(network: Network, value: int) -> tuple[list[int], list[int], list[int], dict[str, int]] | None:
    """Extents of windows and of the results, dilations, and options; None where no window fits."""
    kernel, stride = ([int(one) for one in network.rng.integers(1, most, 2)] for most in (5, 4))
    dilation = [network.choice(1, 1, 2) if max(stride) == 1 else 1] * 2
    padding, image = network.choice(0, 1), network.shapes[value][1:3]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    results = [-(-(n - (span - 1) * padding) // step) for n, span, step in zip(image, spans, stride, strict=True)]
    table = {"Padding": padding, "StrideH": stride[0], "StrideW": stride[1]}
    return None if min(results) < 1 else (kernel, results, dilation, table)


def _activated(network: Network) -> dict[str, int]:
    return {"FusedActivationFunction": network.choice(*_ACTIVATIONS)}


def _convolution(network: Network, value: int) -> int | None:
    found = _windows(network, value)
    if found is None:
        return None
    kernel, results, dilation, table = found
    batch, *_, depth = network.shapes[value]
    is_depthwise = network.rng.random() < 0.4
    times = network.choice(1, 1, 2, 3)
    channels = depth * times if is_depthwise else int(network.rng.integers(1, 40))
    shape = (1, *kernel, channels) if is_depthwise else (channels, *kernel, depth)
    table |= {"DilationHFactor": dilation[0], "DilationWFactor": dilation[1]} | _activated(network)
    name = "DepthwiseConv2DOptions" if is_depthwise else "Conv2DOptions"
    option = options(name, **table, **({"DepthMultiplier": times} if is_depthwise else {}))
    inputs = [value, *network.weighted(value, shape, 3 if is_depthwise else 0)]
    kind = "DEPTHWISE_CONV_2D" if is_depthwise else "CONV_2D"
    return network.add(kind, inputs, (batch, *results, channels), network.drawn(), *option)


def _transposed_convolution(network: Network, value: int) -> int:
    batch, height, width, depth = network.shapes[value]
    kernel, stride = (int(network.rng.integers(1, 4)) for _ in range(2))
    shape = (batch, height * stride, width * stride, int(network.rng.integers(1, 40)))
    weights, *bias = network.weighted(value, (shape[3], kernel, kernel, depth), 0)
    option = options("TransposeConvOptions", Padding=0, StrideW=stride, StrideH=stride)
    return network.add(
        "TRANSPOSE_CONV", [network.integers(*shape), weights, value, *bias], shape, network.drawn(), *option
    )


def _pool(network: Network, value: int) -> int | None:
    found = _windows(network, value)
    if found is None or found[2] != [1, 1]:
        return None
    kernel, results, _, table = found
    batch, *_, depth = network.shapes[value]
    table |= {"FilterHeight": kernel[0], "FilterWidth": kernel[1]} | _activated(network)
    kind = network.choice("MAX_POOL_2D", "AVERAGE_POOL_2D")
    return network.same(kind, [value], (batch, *results, depth), *options("Pool2DOptions", **table))


def _dense(network: Network, value: int) -> int:
    shape, channels = network.shapes[value], int(network.rng.integers(1, 40))
    inputs = [value, *network.weighted(value, (channels, shape[-1]), 0)]
    option = options("FullyConnectedOptions", KeepNumDims=int(len(shape) != 2), **_activated(network))
    return network.add("FULLY_CONNECTED", inputs, (*shape[:-1], channels), network.drawn(), *option)


def _batched(network: Network, value: int) -> int:
    shape = network.shapes[value]
    option = options("BatchMatMulOptions", AdjY=1)
    return network.add("BATCH_MATMUL", [value, value], (*shape[:-1], shape[-2]), network.drawn(), *option)


def _pair(network: Network, value: int) -> int:
    """With another value, or with a constant that is repeated along some axes."""
    shape, kind = network.shapes[value], network.choice("ADD", "ADD", "MUL", "SUB")
    if network.rng.random() < 0.5:
        other = network.choice(*network.others(shape))
    else:
        extents = [extent if network.rng.random() < 0.6 else 1 for extent in shape]
        other = network.constant(network.numbers(extents[network.choice(0, 0, 1) :]), network.drawn())
    inputs = [value, other] if network.rng.random() < 0.7 else [other, value]
    return network.add(
        kind, inputs, shape, network.drawn(), *options(f"{kind.capitalize()}Options", **_activated(network))
    )


def _extreme(network: Network, value: int) -> int:
    shape = network.shapes[value]
    other = network.choice(*network.others(shape, network.quantization[value]))
    return network.same(network.choice("MAXIMUM", "MINIMUM"), [value, other], shape)


_FUNCTIONS = ("RELU", "RELU6", "RELU_N1_TO_1", "ABS", "SQUARE", "HARD_SWISH", "EXP", "ELU", "SOFTMAX", "LOG_SOFTMAX")


def _function(network: Network, value: int) -> int:
    shape, kind = (
        network.shapes[value],
        network.choice(*_FUNCTIONS, "LEAKY_RELU", "LOGISTIC", "TANH", "L2_NORMALIZATION"),
    )
    result, option = network.drawn(), ()
    match kind:
        case "LEAKY_RELU":
            option = options("LeakyReluOptions", Alpha=network.choice(0.1, 0.3, 0.01, -0.2, 1.5))
        case "SOFTMAX":
            result, option = network.fixed(1 / 256, 0), options("SoftmaxOptions", Beta=network.choice(1.0, 0.5, 2.0))
        case "LOGISTIC":
            result = network.fixed(1 / 256, 0)
        case "LOG_SOFTMAX":
            result = network.fixed(16 / 256, 255)
        case "TANH" | "L2_NORMALIZATION":
            result = network.fixed(1 / 128, 128)
        case _:
            pass
    return network.add(kind, [value], shape, result, *option)


def _in_floats(network: Network, value: int) -> int | None:
    """A function of floats between two conversions."""
    if network.is_float:
        return None
    shape, kind = (
        network.shapes[value],
        network.choice("TANH", "SQRT", "ABS", "EXP", "SIN", "FLOOR", "NEG", "LOGISTIC", "COS"),
    )
    floats = network.plain("DEQUANTIZE", [value], shape, np.float32)
    after = network.plain(kind, [floats], shape, np.float32)
    network.inexact.add(after)
    return network.add("QUANTIZE", [after], shape, network.drawn())


def _rescaled(network: Network, value: int) -> int | None:
    if network.is_float:
        return None
    return network.add("QUANTIZE", [value], network.shapes[value], network.drawn())


def _retyped(network: Network, value: int) -> int | None:
    """Through bytes of the other sign."""
    other = {"int8": np.uint8, "uint8": np.int8}.get(network.dtype.name)
    if other is None:
        return None
    shape, scale = network.shapes[value], network.dyadic(-6, 1)
    middle = network.tensor(shape, Quantization((scale,), (int(network.rng.integers(128)),)), other)
    network.node("QUANTIZE", [value], [middle])
    return network.add("QUANTIZE", [middle], shape, network.drawn())


def _prelu(network: Network, value: int) -> int:
    shape = network.shapes[value]
    slopes = network.constant(network.numbers((1, 1, shape[-1])), network.drawn())
    return network.add("PRELU", [value, slopes], shape, network.drawn())


def _reduced(network: Network, value: int) -> int | None:
    shape, kind = network.shapes[value], network.choice("MEAN", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
    axes = sorted(set(network.rng.integers(0, len(shape), 2).tolist()))
    keeps = network.choice(0, 1)
    result = [1 if axis in axes else n for axis, n in enumerate(shape) if keeps or axis not in axes]
    # LiteRT's reference kernel sums bytes in their own type, which overflows.
    if not result or (kind == "SUM" and not network.is_float):
        return None
    inputs, option = [value, network.integers(*axes)], options("ReducerOptions", KeepDims=keeps)
    if kind.startswith("REDUCE"):
        return network.same(kind, inputs, result, *option)
    return network.add(kind, inputs, result, network.drawn(), *option)


def _reshaped(network: Network, value: int) -> int:
    first, *others = network.shapes[value]
    shape = (first * others[0], *others[1:]) if len(others) > 1 else (first, *others, 1)
    return network.same("RESHAPE", [value, network.integers(*shape)], shape, *options("ReshapeOptions"))


def _transposed(network: Network, value: int) -> int:
    shape = network.shapes[value]
    order: list[int] = network.rng.permutation(len(shape)).tolist()
    return network.same("TRANSPOSE", [value, network.integers(*order)], [shape[axis] for axis in order])


def _padded(network: Network, value: int) -> int:
    shape = network.shapes[value]
    is_mirrored = network.rng.random() < 0.3 and min(shape) > 2
    pads = network.rng.integers(0, 3, (len(shape), 2)).astype(np.int32)
    result = [n + int(each.sum()) for n, each in zip(shape, pads, strict=True)]
    option = options("MirrorPadOptions", Mode=network.choice(0, 1)) if is_mirrored else ()
    return network.same("MIRROR_PAD" if is_mirrored else "PAD", [value, network.constant(pads)], result, *option)


def _joined(network: Network, value: int) -> int:
    shape = list(network.shapes[value])
    axis = int(network.rng.integers(len(shape)))
    other = network.choice(*network.others(shape, network.quantization[value]))
    shape[axis] *= 2
    return network.same("CONCATENATION", [value, other], shape, *options("ConcatenationOptions", Axis=axis))


def _split(network: Network, value: int) -> int | None:
    shape = list(network.shapes[value])
    axis = next((axis for axis, n in enumerate(shape) if n % 2 == 0), None)
    if axis is None:
        return None
    shape[axis] //= 2
    halves = [network.tensor(shape, network.quantization[value]) for _ in range(2)]
    inputs, option = [network.integers(axis), value], options("SplitOptions", NumSplits=2)
    network.node("SPLIT", inputs, halves, *option)
    return network.choice(*halves)


def _resized(network: Network, value: int) -> int:
    batch, *_, depth = network.shapes[value]
    image = network.rng.integers(1, 14, 2).tolist()
    aligned = network.choice(0, 0, 1)
    table = {"AlignCorners": aligned, "HalfPixelCenters": 0 if aligned else network.choice(0, 1)}
    kind, name = network.choice(
        ("RESIZE_BILINEAR", "ResizeBilinearOptions"), ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")
    )
    inputs = [value, network.integers(*image)]
    return network.same(kind, inputs, (batch, *image, depth), *options(name, **table))


_ANY = (2, 3, 4, 5)
_KINDS = {"float32": "f", "int32": "i", "int64": "i", "bool": "b"}
_STEPS: Sequence[tuple[Step, Sequence[int], str]] = (
    *(((_convolution, (4,), "fq"),) * 9 + ((_pool, (4,), "fq"),) * 3 + ((_dense, (2, 3), "fq"),) * 6),
    *(((_function, _ANY, "fq"),) * 4 + ((_pair, _ANY, "fq"),) * 3),
    *((_transposed_convolution, (4,), "fq"), (_prelu, (4,), "fq"), (_resized, (4,), "fq"), (_batched, (2, 3), "fq")),
    *((_extreme, _ANY, "fqi"), (_in_floats, _ANY, "q"), (_rescaled, _ANY, "q"), (_retyped, _ANY, "q")),
    *((_reduced, _ANY, "fq"), (_reshaped, _ANY, "fqib"), (_transposed, _ANY, "fqib"), (_padded, _ANY, "fqib")),
    *((_joined, _ANY, "fqib"), (_split, _ANY, "fqib")),
)
