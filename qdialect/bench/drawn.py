"""Workloads made of seeded numbers: files of layers, chains and whole networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from qdialect.bench.answer import evaluate
from qdialect.bench.cases import Array, Case, Form, Source, save
from qdialect.bench.layers import (
    CHAINS,
    LAYERS,
    VARIATIONS,
    ConvolutionLayer,
    Layer,
    chain_network,
    draw_input,
    layer_network,
)
from qdialect.bench.network import Activation, Convolution, Dense, Network
from qdialect.bench.onnx_operators import write_operators
from qdialect.bench.onnx_writer import write_qdq
from qdialect.bench.random_networks import RANDOM_NETWORKS, draw_network
from qdialect.bench.tflite_writer import signed_channels_last, write_tflite


def layer_sources() -> list[Source]:
    """Single layers and chains of them."""
    layers = {**LAYERS, **VARIATIONS}
    sources = [
        Source(name, "layer", partial(_prepare_layer, name, layer), name in LAYERS) for name, layer in layers.items()
    ]
    return sources + [Source(name, "chain", partial(_prepare_chain, name, *chain)) for name, chain in CHAINS.items()]


def write_case(folder: Path, case: tuple[str, str, str], network: Network, data: Array, answer: Array) -> Case:
    """The case (name, kind, text) of a network, as QDQ and TFLite models."""
    name, kind, text = case
    writer = _FormWriter(folder, name, data, answer)
    writer.add("qdq", lambda: write_qdq(network))
    writer.add("qdq_nhwc", lambda: write_qdq(network, channels_last=True))
    writer.add("tflite", lambda: write_tflite(network))
    return Case(name, kind, text, network.macs, network.bytes_moved, network.weight_bytes, writer.forms)


class _FormWriter:
    """Writes forms of one network; those of one layout share their data."""

    def __init__(self, folder: Path, name: str, data: Array, answer: Array) -> None:
        self.forms: dict[str, Form] = {}
        self._folder = folder
        self._name = name
        self._arrays = (data, answer)

    def add(self, form: str, content: Callable[[], bytes]) -> None:
        is_tflite = form.startswith("tflite")
        path = self._folder / f"{self._name}_{form}.{'tflite' if is_tflite else 'onnx'}"
        path.write_bytes(content())
        layout = "tflite" if is_tflite else "nhwc" if form.endswith("_nhwc") else "nchw"
        data = self._folder / f"{self._name}_{layout}.npz"
        if not data.exists():
            source, result = (_laid_out(array, layout) for array in self._arrays)
            save(data, [source], [result])
        self.forms[form] = Form(str(path), str(data))


def _laid_out(array: Array, layout: str) -> Array:
    if layout == "tflite":
        return signed_channels_last(array)
    return array.transpose(0, 2, 3, 1) if layout == "nhwc" and array.ndim == 4 else array


def _prepare_layer(name: str, layer: Layer, folder: Path) -> Case:
    network = layer_network(name, layer)
    data = draw_input(network, name)
    answer = evaluate(network, data)
    writer = _FormWriter(folder, name, data, answer)
    for form, content in _layer_forms(network).items():
        writer.add(form, content)
    parameters = folder / f"{name}_parameters.npz"
    np.savez(parameters, allow_pickle=False, **layer_parameters(network))
    counts = network.macs, network.bytes_moved, network.weight_bytes
    return Case(name, "layer", layer.text, *counts, writer.forms, str(parameters))


def _layer_forms(network: Network) -> Mapping[str, Callable[[], bytes]]:
    forms = {
        "qdq": lambda: write_qdq(network),
        "qop": lambda: write_operators(network),
        "tflite": lambda: write_tflite(network),
    }
    if isinstance(network.nodes[0], Convolution):
        forms["qdq_nhwc"] = lambda: write_qdq(network, channels_last=True)
        forms["qop_nhwc"] = lambda: write_operators(network, channels_last=True)
    last = network.nodes[-1]
    if isinstance(last, Activation):
        forms["tflite_f32"] = lambda: write_tflite(network, f32_activations=True)
        forms["qdq_one_rounding"] = lambda: write_qdq(network, rounds_middle=False)
        if last.kind == "swish":
            forms["qop_three_roundings_nhwc"] = lambda: write_operators(
                network, channels_last=True, rounds_sigmoid=True
            )
    return forms


def layer_parameters(network: Network) -> dict[str, Array]:
    """The numbers of a layer by name, as an engine without model files wants them."""
    first, last = network.nodes[0], network.nodes[-1]
    if not isinstance(first, Convolution | Dense):
        raise TypeError("a layer must be a convolution or a product")
    if isinstance(first, Convolution):
        fields = {"padding": first.padding[0], "groups": first.groups, "clamp": first.clamp}
    else:
        fields = {"padding": 0, "groups": 1, "clamp": "none"}
    weights = first.weights
    fields |= {"activation": last.kind if isinstance(last, Activation) else "none"}
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
    return write_case(folder, (name, "chain", text), network, data, evaluate(network, data))


def network_sources() -> list[Source]:
    """Whole networks with random weights."""
    return [Source(name, "network", partial(_prepare_network, name)) for name in RANDOM_NETWORKS]


def _prepare_network(name: str, folder: Path) -> Case:
    network, data, answer = draw_network(name)
    return write_case(folder, (name, "network", RANDOM_NETWORKS[name][0]), network, data, answer)
