"""Models of float16 and bfloat16 tensors, written anew with float32 ones, as ONNX Runtime's CPU provider runs them.

It has no kernels of most operators for these types: it computes in float32, from inputs and constants that it converts
to what it rounds where the graph ends.  Nothing between is rounded but what the model itself casts to a small type, and
not even that where an operator that computes reads it: the two conversions cancel out.  Operators that have a kernel of
float16 read rounded numbers, unless all that is before and behind them computes in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from qdialect.frontends.onnx.inlining import graphs_of
from qdialect.frontends.onnx.schema import inferred_graph
from qdialect.support.diagnostics import ImportModelError

if TYPE_CHECKING:
    import onnx

_F32, _HALF, _SMALL = 1, 10, (10, 16)
"""The numbers of float32, and of float16 and bfloat16, in the schema."""
_TYPES = ("to", "dtype", "output_dtype", "output_datatype", "precision")
"""Attributes that are the number of a type."""
_OF_F32, _OF_CAST, _OF_ROUNDED, _OF_READ, _OF_HALF, _OF_EXACT = "/f32", "/cast", "/rounded", "/read", "/half", "/exact"
"""Ends of names that are new."""
_IS_ROUNDED = (
    *("Cast", "CastLike", "Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze"),
    *("Tile", "Transpose", "Unsqueeze"),
)
"""The operators that read a small float as it is."""
_HAS_KERNEL = (
    *_IS_ROUNDED,
    *("Clip", "GatherElements", "GatherND", "IsNaN", "Max", "Min", "ReverseSequence", "Round", "Sign"),
)
"""The operators with a kernel of float16 whose results are rounded where their operands are."""
_ROUNDS = ("LayerNormalization", "Mod", "Shrink", "SimplifiedLayerNormalization", "SkipLayerNormalization")
"""Those with a kernel of float16 that rounds."""
_OF_FLOATS = "Softmax"
"""ONNX Runtime does not use its kernel of quantized values for it, which has other results for rows of one element."""


def in_f32(model: onnx.ModelProto) -> None:
    """Replace the small floats of `model`, in place, by float32 numbers; its inputs and outputs keep their types."""
    graph = model.graph
    if any(map(_is_made_here, graph.node)) or not any(map(_is_small_graph, _graphs(graph))):
        return
    _tell_types(model)
    names = _Names({value.name for value in graph.input} | {tensor.name for tensor in graph.initializer})
    computed = [value for value in graph.output if _is_small(value) and value.name not in names.given]
    names.now.update((value.name, _wide(value.name)) for value in computed)
    reading = _reading_halves(model)
    _widen(graph, names, is_main=True, reading=reading)
    for value in computed:
        graph.node.append(_cast(_wide(value.name), value.name, value.type.tensor_type.elem_type))


def _tell_types(model: onnx.ModelProto) -> None:
    """Add the types of outputs that state none; raises `ImportModelError` for one that is not known."""
    untyped = [value for value in model.graph.output if not value.type.tensor_type.elem_type]
    if not untyped:
        return
    from onnx import shape_inference

    outputs = list(model.graph.output)
    del model.graph.output[:]
    inferred: dict[str, onnx.TypeProto] = {}
    # Types are inferred of what is no output.
    with suppress(shape_inference.InferenceError):
        inferred = {value.name: value.type for value in shape_inference.infer_shapes(model).graph.value_info}
    for value in outputs:
        if value in untyped:
            if value.name not in inferred:
                raise ImportModelError(f"output '{value.name}' must state its type, which may be a small float")
            value.type.CopyFrom(inferred[value.name])
    model.graph.output.extend(outputs)


def _reading_halves(model: onnx.ModelProto) -> dict[int, set[str]]:
    """By the places of nodes that run in a kernel of float16: computed tensors that they read, and results they round.

    ONNX Runtime runs one in float32 that reads what only float32 kernels give and gives what only they read.
    """
    graph: onnx.GraphProto = model.graph
    inferred = inferred_graph(model)
    values = (*inferred.input, *inferred.value_info, *inferred.output)
    types: dict[str, int] = {value.name: value.type.tensor_type.elem_type for value in values}
    for node in graph.node:
        # Operators of other domains give what they read.
        for name in list(node.output) if node.input else []:
            types.setdefault(name, types.get(node.input[0], 0))
    outputs = {value.name for value in graph.output}
    kernels = {place for place, node in enumerate(graph.node) if node.op_type in (*_HAS_KERNEL, *_ROUNDS)}
    made = {name: place for place, node in enumerate(graph.node) for name in node.output}
    readers: dict[str, list[int]] = {}
    for place, node in enumerate(graph.node):
        for name in node.input:
            readers.setdefault(name, []).append(place)
    found: dict[int, set[str]] = {}
    for place in kernels:
        node = graph.node[place]
        if node.op_type.startswith("Cast"):
            # It cancels out.
            continue
        halves = {name for name in node.input if types.get(name) == _HALF and name in made}
        behind = [reader for name in node.output for reader in readers.get(name, [])]
        around = [*behind, *(made[name] for name in halves)]
        if not halves or outputs & set(node.output) or not kernels.isdisjoint(around):
            rounded = list(node.output) if node.op_type in _ROUNDS else list[str]()
            found[place] = halves | {name for name in rounded if types.get(name) == _HALF}
            if node.op_type == "Clip" and types.get(node.input[0]) == _HALF and not node.attribute:
                _bound(graph, node)
    return found


def _bound(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
    """A bound that a Clip is not given is the largest float16 number."""
    from onnx import numpy_helper

    inputs, largest = [*node.input, "", ""][:3], np.finfo(np.float16).max
    for index, bound in ((1, -largest), (2, largest)):
        if not inputs[index]:
            inputs[index] = f"{node.output[0]}/bound{index}"
            graph.initializer.append(numpy_helper.from_array(np.array(bound, np.float16), inputs[index]))
    node.input[:] = inputs


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and all inside it."""
    waiting = [graph]
    while waiting:
        held = waiting.pop()
        yield held
        waiting += [inner for node in held.node for inner in graphs_of(node)]


def _is_small_graph(graph: onnx.GraphProto) -> bool:
    values = (*graph.input, *graph.output, *graph.value_info)
    attributes = (attribute for node in graph.node for attribute in node.attribute)
    return (
        any(map(_is_small, values))
        or any(tensor.data_type in _SMALL for tensor in graph.initializer)
        or any(one.i in _SMALL and one.name in _TYPES for one in attributes)
    )


def _is_made_here(node: onnx.NodeProto) -> bool:
    """Whether a part of a model that was written anew is read again."""
    return node.op_type == "Cast" and bool(node.output) and node.name == f"{node.output[0]}{_OF_CAST}"


def _is_small(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type in _SMALL


def _wide(name: str) -> str:
    return f"{name}{_OF_F32}"


def _cast(source: str, result: str, number: int) -> onnx.NodeProto:
    from onnx import helper

    return helper.make_node("Cast", [source], [result], name=f"{result}{_OF_CAST}", to=number)


@dataclass
class _Names:
    """The names of the new model by those of the old one."""

    given: set[str]
    """Inputs and constants, whose types stay."""
    now: dict[str, str] = field(default_factory=dict[str, str])
    unrounded: dict[str, str] = field(default_factory=dict[str, str])
    """By the results of casts to small floats: the float32 tensors that are cast."""
    floats: set[str] = field(default_factory=set[str])
    """Those known to be float32."""
    small: dict[str, int] = field(default_factory=dict[str, int])
    """Constants of small floats, and what is dequantized by them and moved: the number of the type."""
    read: set[str] = field(default_factory=set[str])
    """Rounded tensors that kernels of float16 read."""


def _widen(
    graph: onnx.GraphProto, names: _Names, *, is_main: bool, reading: Mapping[int, set[str]] = MappingProxyType({})
) -> None:
    held = {tensor.name for tensor in graph.initializer}
    values = (*graph.input, *graph.value_info)
    names.small.update((tensor.name, tensor.data_type) for tensor in graph.initializer if tensor.data_type in _SMALL)
    names.floats |= {value.name for value in values if value.type.tensor_type.elem_type == _F32}
    nodes = [_cast(tensor.name, _wide(tensor.name), _F32) for tensor in graph.initializer if tensor.data_type in _SMALL]
    for value in graph.input if is_main else ():
        if _is_small(value) and value.name not in held:
            nodes.append(_cast(value.name, _wide(value.name), _F32))
    names.now.update((node.input[0], node.output[0]) for node in nodes)
    for value in (*graph.value_info, *(() if is_main else (*graph.input, *graph.output))):
        if _is_small(value):
            value.type.tensor_type.elem_type = _F32
    for place, node in enumerate(graph.node):
        halves = reading.get(place, set())
        nodes += _rounded_inputs(node, halves, names)
        nodes += _rounded_results(node, halves, names)
    del graph.node[:]
    graph.node.extend(nodes)
    for value in () if is_main else graph.output:
        value.name = names.now.get(value.name, value.name)


def _rounded_inputs(node: onnx.NodeProto, halves: set[str], names: _Names) -> list[onnx.NodeProto]:
    """The nodes that round the `halves` that `node` reads, once for all of their readers."""
    found: list[onnx.NodeProto] = []
    for index, name in enumerate(node.input):
        if name not in halves:
            continue
        node.input[index] = read = f"{name}{_OF_HALF}"
        if read not in names.read:
            names.read.add(read)
            found += _rounding(names.now.get(name, name), read, _HALF, names)
    return found


def _rounded_results(node: onnx.NodeProto, halves: set[str], names: _Names) -> list[onnx.NodeProto]:
    """The nodes that take the place of `node`, and those that round its results among the `halves`."""
    results = [name for name in node.output if name in halves]
    for index, name in enumerate(node.output):
        node.output[index] = f"{name}{_OF_EXACT}" if name in halves else name
    rounding = [_rounding(f"{name}{_OF_EXACT}", name, _HALF, names) for name in results]
    return [*_widened(node, names), *(one for nodes in rounding for one in nodes)]


def _widened(node: onnx.NodeProto, names: _Names) -> list[onnx.NodeProto]:
    """The nodes that take the place of a node."""
    reads = {} if node.op_type in _IS_ROUNDED else names.unrounded
    small = _type_of(node, names)
    for index, name in enumerate(node.input):
        node.input[index] = names.now.get(reads.get(name, name), reads.get(name, name))
    found: list[onnx.NodeProto] = []
    if small and node.op_type == _OF_FLOATS:
        read = f"{node.output[0]}{_OF_READ}"
        found = _rounding(node.input[0], read, small, names)
        node.input[0] = read
    rounds = next((one.i for one in node.attribute if one.name in ("to", "output_dtype")), 0)
    # The reader tells of nodes that lack one.
    is_whole = bool(node.input) and bool(node.output)
    if node.op_type == "Cast" and rounds in _SMALL and is_whole:
        source, result = node.input[0], node.output[0]
        if source in names.floats:
            names.unrounded[result] = source
        return _rounding(source, result, rounds, names)
    if node.op_type == "DequantizeLinear" and rounds in _SMALL and is_whole:
        # A kernel of its own, which rounds.
        result, exact = node.output[0], f"{node.output[0]}{_OF_EXACT}"
        node.output[0] = exact
        for attribute in node.attribute:
            _widen_attribute(attribute)
        return [node, *_rounding(exact, result, rounds, names)]
    for index, name in enumerate(node.output):
        node.output[index] = names.now.get(name, name)
    for attribute in node.attribute:
        _widen_attribute(attribute)
    for inner in graphs_of(node):
        _widen(inner, _Names(names.given, dict(names.now), dict(names.unrounded), set(names.floats)), is_main=False)
    return [*found, node]


def _type_of(node: onnx.NodeProto, names: _Names) -> int:
    """The number of the small type of what a node dequantizes, or of what it reads; 0 for another one or none."""
    at = 1 if node.op_type == "DequantizeLinear" else 0
    found = names.small.get(node.input[at], 0) if len(node.input) > at and node.output else 0
    if found and (at or (node.op_type in _IS_ROUNDED and "Cast" not in node.op_type)):
        names.small.update(dict.fromkeys(node.output, found))
    return found


def _rounding(source: str, result: str, number: int, names: _Names) -> list[onnx.NodeProto]:
    """The nodes that round `source` to a small type, and widen it to be `result`."""
    rounded = f"{result}{_OF_ROUNDED}"
    return [_cast(source, rounded, number), _cast(rounded, names.now.get(result, result), _F32)]


def _widen_attribute(attribute: onnx.AttributeProto) -> None:
    from onnx import numpy_helper

    if attribute.name in _TYPES and attribute.i in _SMALL:
        attribute.i = _F32
    for tensor in (attribute.t, attribute.sparse_tensor.values):
        if tensor.data_type in _SMALL and tensor.data_location != tensor.EXTERNAL:
            # The reader tells of one that is damaged.
            with suppress(ValueError, TypeError):
                array = numpy_helper.to_array(tensor).astype(np.float32)
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
