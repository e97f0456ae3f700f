"""Whole transformers, and layers of language models, with seeded weights: T1 to T6."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdialect.bench import traced_graph
from qdialect.bench.cases import Case, Source, write_form
from qdialect.bench.traced_graph import Float, Quantized, T, TracedGraph, Weights

KIND = "transformer"
Built = tuple[TracedGraph, Sequence[Float | Quantized]]
"""A graph, and its outputs."""

_IMAGE, _PATCH, _CLASSES = 224, 16, 1000
_BY_HEAD, _KEY = (0, 2, 1, 3), (0, 2, 3, 1)


@dataclass(frozen=True)
class Shape:
    """The extents of a transformer."""

    layers: int
    width: int
    heads: int
    hidden: int
    tokens: int
    """Rows of the input; of a decoder the length of the cache with the new rows."""
    groups: int = 0
    """Heads of keys and values, where these are fewer."""
    rows: int = 1
    """New rows of a decoder."""

    @property
    def head_width(self) -> int:
        """Columns of a head."""
        return self.width // self.heads


@dataclass(frozen=True)
class Workload:
    """A network by name."""

    text: str
    build: Callable[[Shape, np.random.Generator], Built]
    shape: Shape
    tolerance: float = 0.2
    """How far a number may be from the float64 answer, where the numbers have a spread of 1.

    A tie that is rounded the other way moves many elements of every layer after it by a part of a quantized value.
    """


def transformer_sources() -> list[Source]:
    """T1 to T6, two forms of T5 and T6, and as variations their other forms."""
    sources = [Source(name, KIND, partial(prepare, name, load)) for name, load in WORKLOADS.items()]
    return sources + [
        Source(name, KIND, partial(prepare, name, load), name in _LANGUAGE_DEFAULTS)
        for name, load in LANGUAGE_LAYERS.items()
    ]


def prepare(name: str, workload: Workload, folder: Path) -> Case:
    """Write the workload into `folder`; its seed is the number in its name."""
    shape = workload.shape
    graph, outputs = workload.build(shape, np.random.default_rng(int(name[1:2])))
    data, answer = traced_graph.arrays(graph.inputs), traced_graph.arrays(outputs)
    form = write_form(folder / f"{name}.onnx", graph.content(outputs), data, answer)
    weight_bytes = sum(weights.nbytes for weights in graph.weights)
    moved = weight_bytes + sum(array.nbytes for array in (*data, *answer))
    text = f"{workload.text}, {shape.layers} layers of {shape.width}, {shape.tokens} tokens"
    return Case(name, KIND, text, graph.macs, moved, weight_bytes, {"onnx": form}, tolerance=workload.tolerance)


class _Drawing:
    """A graph, and the numbers that are drawn for it."""

    def __init__(self, shape: Shape, random: np.random.Generator) -> None:
        self.graph = TracedGraph()
        self.shape = shape
        self.random = random
        self.damping = (2 * shape.layers) ** -0.5
        """Of what is added to the residual stream, as GPT-2 starts with: a difference does not grow with the layers."""

    def weights(self, inputs: int, outputs: int, factor: float = 1.0) -> Weights:
        """Weights that keep the spread of their inputs, times `factor`."""
        values = self.random.standard_normal((inputs, outputs)) * (factor / np.sqrt(inputs))
        return traced_graph.quantized_weights(values, 0.1 * factor * self.random.standard_normal(outputs))

    def numbers(self, *extents: int, mean: float = 0.0, spread: float = 1.0) -> NDArray[np.float32]:
        return (mean + spread * self.random.standard_normal(extents)).astype(np.float32)

    def layer_norm(self, source: Float) -> Float:
        """LayerNormalization with numbers of its own."""
        width = self.shape.width
        return self.graph.layer_norm(source, self.numbers(width, mean=1, spread=0.1), self.numbers(width, spread=0.1))

    def projections(self) -> list[Weights]:
        """Of query, key and value; that of the query has the division by the root of the head's width in it."""
        width = self.shape.width
        return [self.weights(width, width, factor) for factor in (self.shape.head_width**-0.5, 1, 1)]

    def heads(self, source: T, order: Sequence[int] = _BY_HEAD) -> T:
        """[rows, width] as [1, rows, heads, columns of a head], its axes in another order."""
        shape = self.shape
        return self.graph.shaped(source, (1, len(source.values), shape.heads, shape.head_width), order)

    def merged(self, source: T) -> T:
        """[1, heads, rows, columns of a head] as [rows, width]."""
        rows = source.values.shape[2]
        return self.graph.shaped(self.graph.transposed(source, _BY_HEAD), (rows, self.shape.width), (0, 1))

    def rounded(self, source: Float) -> Float:
        """Quantized and dequantized."""
        return self.graph.dequantize(self.graph.quantize(source))

    def static_linear(self, source: Quantized, weights: Weights) -> Quantized:
        """A product whose result is quantized."""
        return self.graph.quantize(self.graph.linear(source, weights))

    def attend(self, query: Quantized, key: Quantized, value: Quantized) -> Quantized:
        """[1, heads, rows, columns], the key [1, heads, columns, rows]; every result is quantized."""
        graph = self.graph
        scores = self.rounded(graph.product(graph.dequantize(query), graph.dequantize(key)))
        shares = self.rounded(graph.softmax(scores))
        return graph.quantize(graph.product(shares, graph.dequantize(value)))

    def static_feed_forward(self, source: Quantized) -> Quantized:
        """Two products with a Gelu between them."""
        width, hidden = self.shape.width, self.shape.hidden
        middle = self.static_linear(source, self.weights(width, hidden))
        active = self.graph.quantize(self.graph.gelu(self.graph.dequantize(middle)))
        return self.static_linear(active, self.weights(hidden, width, self.damping))

    def static_attention(self, source: Quantized) -> Quantized:
        """Self-attention of all rows."""
        query, key, value = (self.static_linear(source, weights) for weights in self.projections())
        return self.output_projection(self.attend(self.heads(query), self.heads(key, _KEY), self.heads(value)))

    def output_projection(self, context: Quantized) -> Quantized:
        """The heads side by side, and a product."""
        return self.static_linear(self.merged(context), self.weights(self.shape.width, self.shape.width, self.damping))

    def sum(self, left: Quantized, right: Quantized) -> Quantized:
        return self.graph.quantize(self.graph.add(self.graph.dequantize(left), self.graph.dequantize(right)))


def static_encoder(shape: Shape, random: np.random.Generator) -> Built:
    """BERT's encoder: normalization behind each residual sum, every tensor quantized."""
    drawing = _Drawing(shape, random)
    graph = drawing.graph
    state = graph.quantize(graph.input("x", drawing.numbers(shape.tokens, shape.width)))
    for _ in range(shape.layers):
        for part in (drawing.static_attention, drawing.static_feed_forward):
            total = drawing.sum(state, part(state))
            state = graph.quantize(drawing.layer_norm(graph.dequantize(total)))
    return graph, [graph.dequantize(state)]


def dynamic_encoder(shape: Shape, random: np.random.Generator) -> Built:
    """The same encoder with products by constant weights quantized in each call, and all else float."""
    drawing = _Drawing(shape, random)
    graph = drawing.graph
    state = graph.input("x", drawing.numbers(shape.tokens, shape.width))
    for _ in range(shape.layers):
        query, key, value = (graph.dynamic_linear(state, weights) for weights in drawing.projections())
        scores = graph.product(drawing.heads(query), drawing.heads(key, _KEY))
        context = drawing.merged(graph.product(graph.softmax(scores), drawing.heads(value)))
        attended = graph.dynamic_linear(context, drawing.weights(shape.width, shape.width, drawing.damping))
        state = drawing.layer_norm(graph.add(state, attended))
        active = graph.gelu(graph.dynamic_linear(state, drawing.weights(shape.width, shape.hidden)))
        state = drawing.layer_norm(
            graph.add(state, graph.dynamic_linear(active, drawing.weights(shape.hidden, shape.width, drawing.damping)))
        )
    return graph, [state]


def _pre_normalized(drawing: _Drawing, state: Quantized, part: Callable[[Quantized], Quantized]) -> Quantized:
    """``state + part(normalized state)``."""
    graph = drawing.graph
    return drawing.sum(state, part(graph.quantize(drawing.layer_norm(graph.dequantize(state)))))


def vision_transformer(shape: Shape, random: np.random.Generator) -> Built:
    """ViT on one image: patches, a class token, positions; normalization before each part."""
    drawing = _Drawing(shape, random)
    graph = drawing.graph
    side = _PATCH * round((shape.tokens - 1) ** 0.5)
    image = graph.quantize(graph.input("x", drawing.numbers(1, 3, side, side)))
    patches = graph.quantize(graph.convolution(image, drawing.weights(3 * _PATCH**2, shape.width), _PATCH))
    rows = graph.shaped(patches, (shape.width, shape.tokens - 1), (1, 0))
    token = graph.quantize(graph.constant(drawing.numbers(1, shape.width)), rows.params)
    positions = graph.constant(drawing.numbers(shape.tokens, shape.width, spread=0.2))
    state = graph.quantize(graph.add(graph.dequantize(graph.concatenated(token, rows, 0)), positions))
    for _ in range(shape.layers):
        for part in (drawing.static_attention, drawing.static_feed_forward):
            state = _pre_normalized(drawing, state, part)
    last = graph.quantize(drawing.layer_norm(graph.dequantize(state)))
    classes = drawing.static_linear(graph.first_row(last), drawing.weights(shape.width, _CLASSES))
    return graph, [graph.dequantize(classes)]


def decoder_step(shape: Shape, random: np.random.Generator) -> Built:
    """GPT-2 for one new token: uint8 caches of keys and values are inputs, and with a row more outputs."""
    drawing = _Drawing(shape, random)
    graph = drawing.graph
    state = graph.quantize(graph.input("x", drawing.numbers(1, shape.width)))
    caches: list[Quantized] = []

    def attention(source: Quantized) -> Quantized:
        query, *new = (drawing.static_linear(source, weights) for weights in drawing.projections())
        past = (1, shape.heads, shape.tokens - 1, shape.head_width)
        held: list[Quantized] = []
        for name, row in zip(("key", "value"), new, strict=True):
            cache = graph.quantized_input(f"{name}{len(caches) // 2}", drawing.numbers(*past))
            added = drawing.heads(graph.quantize(graph.dequantize(row), cache.params))
            held.append(graph.concatenated(cache, added, 2))
        caches.extend(held)
        context = drawing.attend(drawing.heads(query), graph.transposed(held[0], (0, 1, 3, 2)), held[1])
        return drawing.output_projection(context)

    for _ in range(shape.layers):
        for part in (attention, drawing.static_feed_forward):
            state = _pre_normalized(drawing, state, part)
    return graph, [graph.dequantize(graph.quantize(drawing.layer_norm(graph.dequantize(state)))), *caches]


BLOCK = 32
"""Inputs of a weight's scale."""


def language_layer(shape: Shape, random: np.random.Generator, level: int | None = 0) -> Built:
    """A layer as Llama's, less the rotation of positions: caches of f32 are inputs, and with new rows outputs.

    Its weights have 4 bits, and `level` is that of MatMulNBits; without one they have 8 bits and a scale a channel.
    """
    drawing = _Drawing(shape, random)
    graph = drawing.graph
    columns, many = shape.groups * shape.head_width, shape.heads // shape.groups
    past, new = shape.tokens - shape.rows, shape.rows

    def linear(source: Float, outputs: int, factor: float = 1.0) -> Float:
        inputs = source.values.shape[1]
        if level is None:
            return graph.channel_linear(source, drawing.weights(inputs, outputs, factor))
        values = random.standard_normal((outputs, inputs), np.float32) * np.float32(factor * inputs**-0.5)
        return graph.block_linear(source, traced_graph.block_weights(values, BLOCK), level)

    def cached(name: str, source: Float) -> Float:
        rows = graph.shaped(source, (1, new, shape.groups, shape.head_width), _BY_HEAD)
        if not past:
            return rows
        cache = graph.input(name, drawing.numbers(1, shape.groups, past, shape.head_width))
        return graph.concatenated(cache, rows, 2)

    state = graph.input("x", drawing.numbers(new, shape.width))
    normal = graph.rms_norm(state, drawing.numbers(shape.width, mean=1, spread=0.1))
    query = linear(normal, shape.width, shape.head_width**-0.5)
    keys, values = (cached(name, linear(normal, columns)) for name in ("key", "value"))
    # Heads that share keys are rows of one product.
    heads = graph.shaped(query, (new, shape.groups, many, shape.head_width), (1, 2, 0, 3))
    rows = graph.shaped(heads, (1, shape.groups, many * new, shape.head_width), (0, 1, 2, 3))
    scores = graph.product(rows, graph.transposed(keys, (0, 1, 3, 2)))
    if new > 1:
        hidden = np.triu(np.full((new, shape.tokens), -1e4, np.float32), past + 1)
        scores = graph.add(scores, graph.constant(np.tile(hidden, (many, 1))))
    context = graph.product(graph.softmax(scores), values)
    merged = graph.shaped(context, (shape.groups, many, new, shape.head_width), (2, 0, 1, 3))
    attended = linear(graph.shaped(merged, (new, shape.width), (0, 1)), shape.width, drawing.damping)
    state = graph.add(state, attended)
    normal = graph.rms_norm(state, drawing.numbers(shape.width, mean=1, spread=0.1))
    active = graph.gated(linear(normal, shape.hidden), linear(normal, shape.hidden))
    return graph, [graph.add(state, linear(active, shape.width, drawing.damping)), keys, values]


WORKLOADS: Mapping[str, Workload] = {
    "T1": Workload("BERT encoder, static", static_encoder, Shape(12, 768, 12, 3072, 128), tolerance=1.0),
    "T2": Workload("BERT encoder, dynamic", dynamic_encoder, Shape(12, 768, 12, 3072, 128)),
    "T3": Workload("ViT-tiny, static", vision_transformer, Shape(12, 192, 3, 768, (_IMAGE // _PATCH) ** 2 + 1)),
    "T4": Workload("GPT-2 step with caches, static", decoder_step, Shape(12, 768, 12, 3072, 128)),
}

_BILLION, _EIGHT_BILLIONS = Shape(1, 2048, 32, 8192, 129, 8), Shape(1, 4096, 32, 14336, 129, 8)
# Of layers whose rows stay floats: rows of 8 bits or of bfloat16 are another function.
_FLOATS = 1e-3


def _language(text: str, shape: Shape, level: int | None = 0) -> Workload:
    build = partial(language_layer, level=level)
    return Workload(text, build, shape) if level else Workload(text, build, shape, _FLOATS)


LANGUAGE_LAYERS: Mapping[str, Workload] = {
    "T5": _language("layer of a language model of 1B, 4 bits, new token", _BILLION),
    "T5_level4": _language("the same with quantized rows", _BILLION, 4),
    "T5_int8": _language("the same with weights of 8 bits", _BILLION, None),
    "T5_long": _language("the same", replace(_BILLION, tokens=2049)),
    "T5_prefill": _language("the same, first tokens", replace(_BILLION, tokens=128, rows=128)),
    "T5_prefill512": _language("the same, first tokens", replace(_BILLION, tokens=512, rows=512)),
    "T5_prefill4": _language("the same, first tokens, quantized rows", replace(_BILLION, tokens=128, rows=128), 4),
    "T6": _language("layer of a language model of 8B, 4 bits, new token", _EIGHT_BILLIONS),
    "T6_level4": _language("the same with quantized rows", _EIGHT_BILLIONS, 4),
    "T6_int8": _language("the same with weights of 8 bits", _EIGHT_BILLIONS, None),
    "T6_long": _language("the same", replace(_EIGHT_BILLIONS, tokens=2049)),
    "T6_prefill": _language("the same, first tokens", replace(_EIGHT_BILLIONS, tokens=128, rows=128)),
    "T6_prefill4": _language(
        "the same, first tokens, quantized rows", replace(_EIGHT_BILLIONS, tokens=128, rows=128), 4
    ),
}
"""Layers of language models: with caches of 128 or 2,048 tokens, or the first 128 or 512 tokens."""
_LANGUAGE_DEFAULTS = ("T5", "T5_level4", "T6", "T6_level4")
