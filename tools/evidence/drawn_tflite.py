"""Small TFLite networks drawn at random: chains with side branches, of one type, beside LiteRT."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import tflite

from qdialect.frontends import frameworks
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization, options
from tools.evidence.case import Array, Case, InvalidCaseError

_TYPES = ("int8", "int8", "int8", "uint8", "int16", "float32")
_PROFILES = ("tflite", "tflite-xnnpack")
_MAX_ELEMENTS = 40_000
_SCALES = (0.02, 0.05, 0.1, 1 / 64, 0.003, 1.0, 1e-4)
# How many fused activations the schema numbers: none, relu, relu_n1_to_1, relu6.
_ACTIVATIONS = (0, 0, 1, 2, 3)
_FULL = {"int8": -128, "uint8": 0}


@dataclass
class Network:
    """A graph that grows: its writer, and the shape and quantization of each value by its index."""

    rng: np.random.Generator
    dtype: np.dtype[Any]
    writer: ModelWriter = field(default_factory=lambda: ModelWriter("drawn"))
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    quantization: dict[int, Quantization | None] = field(default_factory=dict[int, Quantization | None])
    constants: int = 0
    is_dyadic: bool = False
    """Whether scales are powers of two, or three of them, so that many products lie between two quantized values."""

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    def choice(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def drawn(self) -> Quantization | None:
        """A scale, seldom an extreme one, and a zero point, at times at an end."""
        if self.is_float:
            return None
        scale = float(np.float32(self.choice(*_SCALES) * self.rng.uniform(0.7, 1.5)))
        scale = self.dyadic(-7, 2) if self.is_dyadic else scale
        if self.dtype == np.int16:
            return Quantization((scale / 128,), (0,))
        low = int(np.iinfo(self.dtype).min)
        return Quantization((scale,), (self.choice(int(self.rng.integers(low, low + 256)), low + 128, low, low + 255),))

    def dyadic(self, low: int, high: int) -> float:
        return 2.0 ** int(self.rng.integers(low, high)) * self.choice(1.0, 1.0, 1.0, 1.5)

    def fixed(self, scale: float, offset: int, of_words: float = 1 / 32768) -> Quantization | None:
        """What a function demands of its result: `offset` is that of the zero point from the lowest value."""
        if self.dtype == np.int16:
            return Quantization((of_words,), (0,))
        return None if self.is_float else Quantization((scale,), (_FULL[self.dtype.name] + offset,))

    def numbers(self, shape: Sequence[int], dtype: Any = None) -> Array:
        kind = np.dtype(dtype or self.dtype)
        if kind.kind == "f":
            return self.rng.normal(size=shape).astype(kind)
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        return self.rng.integers(low, high + 1, shape).astype(kind)

    def constant(self, value: Array, quantization: Quantization | None = None) -> int:
        self.constants += 1
        return self.writer.constant(f"c{self.constants}", value, quantization)

    def integers(self, *numbers: int) -> int:
        return self.constant(np.array(numbers, np.int32))

    def tensor(self, shape: Sequence[int], quantization: Quantization | None, dtype: Any = None) -> int:
        index = self.writer.tensor(f"v{len(self.shapes)}", shape, dtype or self.dtype.type, quantization)
        if dtype is None:
            self.shapes[index], self.quantization[index] = tuple(shape), quantization
        return index

    def add(
        self, kind: str, inputs: Sequence[int], shape: Sequence[int], given: Quantization | None, *option: Any
    ) -> int:
        result = self.tensor(shape, given)
        self.writer.operator(getattr(tflite.BuiltinOperator, kind), inputs, result, *option)
        return result

    def same(self, kind: str, inputs: Sequence[int], shape: Sequence[int], *option: Any) -> int:
        """Of the quantization of the first input that is a value."""
        value = next(one for one in inputs if one in self.shapes)
        return self.add(kind, inputs, shape, self.quantization[value], *option)

    def weighted(self, value: int, shape: Sequence[int], axis: int) -> list[int]:
        """A constant of weights of the value's products and, at times without, a bias."""
        count, rng = shape[axis], self.rng
        if self.is_float:
            bias = [self.constant(self.numbers([count]))] if rng.random() < 0.8 else []
            return [self.constant(self.numbers(shape) * np.float32(0.3)), *bias]
        wide = np.int64 if self.dtype == np.int16 else np.int32
        scales = rng.uniform(0.003, 0.02, self.choice(1, count, count) if self.dtype != np.uint8 else 1).tolist()
        scales = [self.dyadic(-9, -4) for _ in scales] if self.is_dyadic else scales
        point = int(rng.integers(100, 150)) if self.dtype == np.uint8 else 0
        of_weights = Quantization(tuple(scales), (point,) * len(scales), axis if len(scales) > 1 else 0)
        weights = self.numbers(shape, np.uint8 if self.dtype == np.uint8 else np.int8)
        known = self.quantization[value]
        assert known is not None
        of_bias = Quantization(tuple(known.scales[0] * one for one in scales), (0,) * len(scales))
        bias = self.constant(rng.integers(-3000, 3000, count).astype(wide), of_bias)
        return [
            self.constant(np.maximum(weights, weights.dtype.type(np.iinfo(weights.dtype).min + 1)), of_weights),
            bias,
        ]

    def others(self, shape: Sequence[int], quantization: Quantization | None = None) -> list[int]:
        """The values of this shape, and of this quantization if one is given."""
        fitting = [one for one, found in self.shapes.items() if found == tuple(shape)]
        return [one for one in fitting if quantization is None or self.quantization[one] == quantization]


def case(seed: int) -> Case:
    """The network of a seed, and what LiteRT's reference kernels or, of odd seeds, its XNNPACK delegate gives."""
    rng = np.random.default_rng(seed)
    network = Network(rng, np.dtype(str(rng.choice(_TYPES))), is_dyadic=bool(rng.random() < 0.5))
    inner = [int(one) for one in rng.integers(2, 11, int(rng.choice([0, 1, 2, 2, 2])))]
    shape = (network.choice(1, 1, 2, 3), *inner, network.choice(1, 3, 4, 8, 16, 17, 32))
    inputs = [network.tensor(shape, network.drawn()) for _ in range(network.choice(1, 1, 2))]
    values, used, wanted = list(inputs), set[int](), int(rng.integers(2, 9))
    for _ in range(8 * wanted):
        value = values[-1] if rng.random() < 0.75 else network.choice(*values)
        result = None if prod(network.shapes[value]) > _MAX_ELEMENTS else _grown(network, value)
        if result is not None:
            values.append(result)
            used.add(value)
        if len(values) == len(inputs) + wanted:
            break
    ends = [one for one in values if one not in used and one not in inputs][-3:] or [values[-1]]
    content, arrays = network.writer.finish(inputs, ends), tuple(network.numbers(shape) for _ in inputs)
    profile = _PROFILES[seed % 2]
    return Case(
        ".tflite", content, arrays, _litert(content, arrays, is_reference=profile == _PROFILES[0]), profile=profile
    )


def _litert(content: bytes, arrays: Sequence[Array], *, is_reference: bool) -> tuple[Array, ...]:
    """What LiteRT gives, in a process of its own: some of its kernels read outside of their memory."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            found: Any = tuple(frameworks.load_litert(content, 1, is_reference=is_reference)(arrays))
        except Exception as error:
            found = str(error)
        with os.fdopen(writer, "wb") as file:
            pickle.dump(found, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    found = pickle.loads(answer) if answer else "LiteRT ends the process"
    if isinstance(found, str):
        raise InvalidCaseError(found)
    return found


_Step = Callable[[Network, int], "int | None"]


def _grown(network: Network, value: int) -> int | None:
    """One more value; none where the step that is drawn does not fit."""
    rank = len(network.shapes[value])
    fitting = [step for step, ranks in _STEPS if rank in ranks]
    return network.choice(*fitting)(network, value) if fitting else None


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
    floats, after = (network.tensor(shape, None, np.float32) for _ in range(2))
    network.writer.operator(tflite.BuiltinOperator.DEQUANTIZE, [value], floats)
    network.writer.operator(getattr(tflite.BuiltinOperator, kind), [floats], after)
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
    middle = network.writer.tensor(
        f"m{len(network.shapes)}", shape, other, Quantization((scale,), (int(network.rng.integers(128)),))
    )
    network.writer.operator(tflite.BuiltinOperator.QUANTIZE, [value], middle)
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


def _sliced(network: Network, value: int) -> int:
    shape = network.shapes[value]
    starts = [int(network.rng.integers(0, n)) for n in shape]
    steps = [network.choice(1, 1, 2) for _ in shape]
    result = [-(-(n - start) // step) for n, start, step in zip(shape, starts, steps, strict=True)]
    bounds = [network.integers(*one) for one in (starts, shape, steps)]
    return network.same("STRIDED_SLICE", [value, *bounds], result, *options("StridedSliceOptions"))


def _joined(network: Network, value: int) -> int:
    shape = list(network.shapes[value])
    axis = int(network.rng.integers(len(shape)))
    other = network.choice(*network.others(shape, network.quantization[value]))
    shape[axis] *= 2
    return network.same("CONCATENATION", [value, other], shape, *options("ConcatenationOptions", Axis=axis))


def _gathered(network: Network, value: int) -> int:
    shape = list(network.shapes[value])
    axis = int(network.rng.integers(len(shape)))
    places = network.integers(*network.rng.integers(0, shape[axis], 3).tolist())
    shape[axis] = 3
    return network.same("GATHER", [value, places], shape, *options("GatherOptions", Axis=axis))


def _split(network: Network, value: int) -> int | None:
    shape = list(network.shapes[value])
    axis = next((axis for axis, n in enumerate(shape) if n % 2 == 0), None)
    if axis is None:
        return None
    shape[axis] //= 2
    halves = [network.tensor(shape, network.quantization[value]) for _ in range(2)]
    inputs, option = [network.integers(axis), value], options("SplitOptions", NumSplits=2)
    network.writer.operator(tflite.BuiltinOperator.SPLIT, inputs, halves, *option)
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
_STEPS: Sequence[tuple[_Step, Sequence[int]]] = (
    *(((_convolution, (4,)),) * 9 + ((_pool, (4,)),) * 3 + ((_dense, (2, 3)),) * 6 + ((_pair, _ANY),) * 3),
    *(((_function, _ANY),) * 4 + ((_transposed_convolution, (4,)), (_prelu, (4,)), (_resized, (4,)))),
    *((_batched, (2, 3)), (_extreme, _ANY), (_in_floats, _ANY), (_rescaled, _ANY), (_retyped, _ANY)),
    *((_reduced, _ANY), (_reshaped, _ANY)),
    *((_transposed, _ANY), (_padded, _ANY), (_sliced, _ANY), (_joined, _ANY), (_gathered, _ANY), (_split, _ANY)),
)
