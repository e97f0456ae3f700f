"""Workloads made of seeded numbers: layers by name, files of layers, chains and whole networks."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from qdialect.arithmetic import QuantParams
from qdialect.bench import network as nn
from qdialect.bench.cases import Array, Case, Form, Source, save
from qdialect.bench.onnx_writer import write_operators, write_qdq
from qdialect.bench.random_networks import RANDOM_NETWORKS, draw_network
from qdialect.bench.tflite_writer import signed_channels_last, write_tflite

# Standard deviation of a convolution's f32 result, and the largest f32 value that its quantized values represent.
_SPREAD = 3.0
_LARGEST = 10.0
_INPUT_ZERO_POINT = 117
_RESULT_ZERO_POINT = 121
# Standard deviation of uniform int8 weights and of uniform uint8 data, and the mean weight scale.
_UNIFORM = 73.5
_WEIGHT_SCALE = 0.003
# The smallest value of each activation.
_LOWEST: Mapping[nn.ActivationKind, float] = {"leaky_relu": -0.1, "hardswish": -0.375, "swish": -0.2785}


@dataclass(frozen=True)
class ConvolutionLayer:
    """A convolution of stride 1 on [batch, channels, height, width], with what follows it."""

    batch: int
    channels: int
    height: int
    width: int
    outputs: int
    window: tuple[int, int]
    padding: int = 0
    is_depthwise: bool = False
    activation: nn.ActivationKind | nn.Clamp = "none"

    @property
    def text(self) -> str:
        kind = "depthwise" if self.is_depthwise else "convolution"
        window = "x".join(map(str, self.window))
        source = f"{self.batch}x{self.channels}x{self.height}x{self.width}"
        tail = "" if self.activation == "none" else f", {self.activation}"
        return f"{kind} {window}, {source} -> {self.outputs} channels{tail}"


@dataclass(frozen=True)
class DenseLayer:
    """A product of [rows, depth] with a matrix."""

    rows: int
    depth: int
    columns: int

    @property
    def text(self) -> str:
        return f"dense, M {self.rows}, K {self.depth}, N {self.columns}"


Layer = ConvolutionLayer | DenseLayer

_W1 = ConvolutionLayer(16, 4, 640, 64, 128, (4, 64), activation="leaky_relu")
_W2 = replace(_W1, window=(2, 64), activation="hardswish")
_W3 = replace(_W2, activation="swish")
_W4 = ConvolutionLayer(1, 128, 28, 28, 128, (3, 3), padding=1, activation="relu")
_W5 = ConvolutionLayer(1, 256, 56, 56, 64, (1, 1), activation="hardswish")
_W6 = ConvolutionLayer(1, 256, 14, 14, 256, (3, 3), padding=1, is_depthwise=True, activation="relu6")

LAYERS: Mapping[str, Layer] = {
    "W1": _W1,
    "W2": _W2,
    "W3": _W3,
    "W4": _W4,
    "W5": _W5,
    "W6": _W6,
    "W7a": DenseLayer(1, 2048, 1000),
    "W7b": DenseLayer(128, 1024, 1024),
    # The window spans the width, so width and channels can be written as channels alone.
    "W1r": replace(_W1, channels=256, width=1, window=(4, 1)),
    "W2r": replace(_W2, channels=256, width=1, window=(2, 1)),
}
"""By name."""

CHAINS: Mapping[str, tuple[str, int]] = {"W4x8": ("W4", 8), "W6x32": ("W6", 32)}
"""Networks of equal layers, each reading the one before: the layer, and how many."""


def layer_network(name: str, layer: Layer) -> nn.Network:
    """`layer` with numbers of which `name` is the seed; results use most of their range."""
    random = _random(name)
    if isinstance(layer, DenseLayer):
        source = nn.QuantizedTensor("x", (layer.rows, layer.depth), _input(layer.depth))
        weights = _weights((layer.columns, layer.depth), random)
        return nn.Network(
            (nn.Dense(source, nn.QuantizedTensor("c0", (layer.rows, layer.columns), _range("none")), weights),)
        )
    return nn.Network(_convolution(layer, random))


def chain_network(layer: ConvolutionLayer, count: int, name: str) -> nn.Network:
    """`count` times the convolution `layer`, with other weights each, scaled so that values keep their spread."""
    (first,) = _convolution(layer, _random(name))
    if not isinstance(first, nn.Convolution):
        raise TypeError("a chain is made of convolutions without an activation of their own")
    nodes: list[nn.Node] = [first]
    weights = first.weights
    ratio = np.float32(1.5 * first.source.params.scale / first.result.params.scale)
    scales = (weights.scales * ratio).astype(np.float32)
    bias = np.rint(weights.bias * 0.3).astype(np.int32)
    source = first.result
    for index in range(1, count):
        rolled = nn.Weights(np.roll(weights.values, index, axis=0), scales, bias)
        result = replace(source, name=f"c{index}")
        nodes.append(replace(first, source=source, result=result, weights=rolled))
        source = result
    return nn.Network(tuple(nodes))


def draw_input(network: nn.Network, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Random quantized values; the first images are the same whatever the batch."""
    return _random(f"input of {name}").integers(0, 256, network.input.shape, dtype=np.uint8)


def _convolution(layer: ConvolutionLayer, random: np.random.Generator) -> tuple[nn.Node, ...]:
    depth = 1 if layer.is_depthwise else layer.channels
    extents = (layer.batch, layer.channels, layer.height, layer.width)
    source = nn.QuantizedTensor("x", extents, _input(depth * math.prod(layer.window)))
    weights = _weights((layer.outputs, depth, *layer.window), random)
    height = layer.height + 2 * layer.padding - layer.window[0] + 1
    width = layer.width + 2 * layer.padding - layer.window[1] + 1
    shape = (layer.batch, layer.outputs, height, width)
    groups = layer.channels if layer.is_depthwise else 1
    padding = (layer.padding, layer.padding, layer.padding, layer.padding)
    if layer.activation in ("none", "relu", "relu6"):
        result = nn.QuantizedTensor("c0", shape, _range(layer.activation))
        return (nn.Convolution(source, result, weights, 1, padding, groups, layer.activation),)
    middle = nn.QuantizedTensor("c0", shape, _range("none"))
    low = _LOWEST[layer.activation]
    scale = float(np.float32((_LARGEST + 0.5 - low) / 255))
    result = nn.QuantizedTensor("a0", shape, QuantParams(scale, round(-low / scale)))
    return (
        nn.Convolution(source, middle, weights, 1, padding, groups, "none"),
        nn.Activation(middle, result, layer.activation),
    )


def _input(depth: int) -> QuantParams:
    """The parameters with which sums of `depth` products have the spread that is wanted."""
    scale = np.float32(_SPREAD / (math.sqrt(depth) * _UNIFORM**2 * _WEIGHT_SCALE))
    return QuantParams(float(scale), _INPUT_ZERO_POINT)


def _range(clamp: nn.Clamp) -> QuantParams:
    """The parameters of a result; a zero point of 0 makes saturation the clamp at zero."""
    match clamp:
        case "none":
            return QuantParams(float(np.float32(2 * _LARGEST / 255)), _RESULT_ZERO_POINT)
        case "relu":
            return QuantParams(float(np.float32(_LARGEST / 255)), 0)
        case "relu6":
            return QuantParams(float(np.float32(6 / 255)), 0)


def _weights(shape: tuple[int, ...], random: np.random.Generator) -> nn.Weights:
    depth = math.prod(shape[1:])
    values = random.integers(-127, 128, shape).astype(np.int8)
    scales = (2 / 3 * _WEIGHT_SCALE * (1 + random.random(shape[0]))).astype(np.float32)
    # Some thirty typical products.
    bias = np.rint(random.standard_normal(shape[0]) * math.sqrt(depth) * _UNIFORM * 30).astype(np.int32)
    return nn.Weights(values, scales, bias)


def _random(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


# Workloads made of seeded numbers: files of layers, chains and whole networks.


def layer_sources() -> list[Source]:
    """Single layers and chains of them."""
    sources = [Source(name, "layer", partial(_prepare_layer, name, layer)) for name, layer in LAYERS.items()]
    return sources + [Source(name, "chain", partial(_prepare_chain, name, *chain)) for name, chain in CHAINS.items()]


def write_case(folder: Path, case: tuple[str, str, str], network: nn.Network, data: Array, answer: Array) -> Case:
    """The case (name, kind, text) of a network, as QDQ and TFLite models."""
    name, kind, text = case
    contents = {
        "qdq": lambda: write_qdq(network),
        "qdq_nhwc": lambda: write_qdq(network, channels_last=True),
        "tflite": lambda: write_tflite(network),
    }
    forms = _forms(folder, name, contents, data, answer)
    return Case(name, kind, text, network.macs, network.bytes_moved, network.weight_bytes, forms)


def _forms(
    folder: Path, name: str, contents: Mapping[str, Callable[[], bytes]], data: Array, answer: Array
) -> dict[str, Form]:
    """Writes forms of one network; those of one layout share their data."""
    found: dict[str, Form] = {}
    for form, content in contents.items():
        is_tflite = form.startswith("tflite")
        path = folder / f"{name}_{form}.{'tflite' if is_tflite else 'onnx'}"
        path.write_bytes(content())
        layout = "tflite" if is_tflite else "nhwc" if form.endswith("_nhwc") else "nchw"
        arrays = folder / f"{name}_{layout}.npz"
        if not arrays.exists():
            save(arrays, [_laid_out(data, layout)], [_laid_out(answer, layout)])
        found[form] = Form(str(path), str(arrays))
    return found


def _laid_out(array: Array, layout: str) -> Array:
    if layout == "tflite":
        return signed_channels_last(array)
    return array.transpose(0, 2, 3, 1) if layout == "nhwc" and array.ndim == 4 else array


def _prepare_layer(name: str, layer: Layer, folder: Path) -> Case:
    network = layer_network(name, layer)
    data = draw_input(network, name)
    forms = _forms(folder, name, _layer_forms(network), data, nn.evaluate(network, data))
    parameters = folder / f"{name}_parameters.npz"
    np.savez(parameters, allow_pickle=False, **layer_parameters(network))
    counts = network.macs, network.bytes_moved, network.weight_bytes
    return Case(name, "layer", layer.text, *counts, forms, str(parameters))


def _layer_forms(network: nn.Network) -> Mapping[str, Callable[[], bytes]]:
    forms = {
        "qdq": lambda: write_qdq(network),
        "qop": lambda: write_operators(network),
        "tflite": lambda: write_tflite(network),
    }
    if isinstance(network.nodes[0], nn.Convolution):
        forms["qdq_nhwc"] = lambda: write_qdq(network, channels_last=True)
        forms["qop_nhwc"] = lambda: write_operators(network, channels_last=True)
    last = network.nodes[-1]
    if isinstance(last, nn.Activation):
        forms["tflite_f32"] = lambda: write_tflite(network, f32_activations=True)
        forms["qdq_one_rounding"] = lambda: write_qdq(network, rounds_middle=False)
        if last.kind == "swish":
            forms["qop_three_roundings_nhwc"] = lambda: write_operators(
                network, channels_last=True, rounds_sigmoid=True
            )
    return forms


def layer_parameters(network: nn.Network) -> dict[str, Array]:
    """The numbers of a layer by name, as an engine without model files wants them."""
    first, last = network.nodes[0], network.nodes[-1]
    if not isinstance(first, nn.Convolution | nn.Dense):
        raise TypeError("a layer must be a convolution or a product")
    if isinstance(first, nn.Convolution):
        fields = {"padding": first.padding[0], "groups": first.groups, "clamp": first.clamp}
    else:
        fields = {"padding": 0, "groups": 1, "clamp": "none"}
    weights = first.weights
    fields |= {"activation": last.kind if isinstance(last, nn.Activation) else "none"}
    for name, tensor in (("x", first.source), ("c", first.result), ("a", last.result)):
        fields |= {f"{name}_scale": np.float32(tensor.params.scale), f"{name}_zero_point": tensor.params.zero_point}
    arrays = {"weights": weights.values, "weight_scales": weights.scales, "bias": weights.bias}
    return {name: np.asarray(value) for name, value in {**fields, **arrays}.items()}


def _prepare_chain(name: str, base: str, count: int, folder: Path) -> Case:
    layer = LAYERS[base]
    if not isinstance(layer, ConvolutionLayer):
        raise TypeError(f"{base} must be a convolution")
    network = chain_network(layer, count, base)
    data = draw_input(network, base)
    text = f"{count} layers of {base}"
    return write_case(folder, (name, "chain", text), network, data, nn.evaluate(network, data))


def network_sources() -> list[Source]:
    """Whole networks with random weights."""
    return [Source(name, "network", partial(_prepare_network, name)) for name in RANDOM_NETWORKS]


def _prepare_network(name: str, folder: Path) -> Case:
    network, data, answer = draw_network(name)
    return write_case(folder, (name, "network", RANDOM_NETWORKS[name][0]), network, data, answer)
