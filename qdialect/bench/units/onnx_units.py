"""An ONNX network cut at its quantized tensors: each becomes an input of the units that read it.

The units of a network then lie side by side in one model, and no unit's error reaches another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto, NodeProto, ValueInfoProto, helper

from qdialect.bench.frameworks import Array, imported
from qdialect.bench.units import Cut

_GIVEN = ".given"
_QUANTIZATIONS = ("QuantizeLinear", "DequantizeLinear")
# Activations that end in a quantization and what moves elements belong to the kernel of the unit.
_COMPANIONS = (
    *("Clip", "Expand", "Flatten", "Gather", "Identity", "Pad", "Relu", "Reshape", "Slice", "Split", "Squeeze"),
    *("Tile", "Transpose", "Unsqueeze", "DepthToSpace", "SpaceToDepth", "MaxPool", "Dropout"),
)
_OF_GROUPS = ("Conv", "MatMul", "Gemm", "Add", "Mul", "Concat", "Sigmoid", "LeakyRelu", "GlobalAveragePool")
_OPERATORS = (
    *("QLinearConv", "QLinearMatMul", "QGemm", "QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearSigmoid"),
    *("QLinearLeakyRelu", "QLinearGlobalAveragePool"),
)


@dataclass(frozen=True)
class Units:
    """A model cut into units."""

    model: ModelProto
    integer: tuple[str, ...]
    """The quantized tensors that ONNX Runtime computes with an integer kernel or a table."""


@dataclass(frozen=True)
class OnnxNetwork:
    """A `Network` of a file."""

    model: ModelProto

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(value.name for value in self.model.graph.input)

    @property
    def quantized(self) -> tuple[str, ...]:
        return quantized_tensors(self.model)

    def write_exposed(self, path: Path, sample: Sequence[Array]) -> None:
        del sample
        path.write_bytes(exposed(self.model).SerializeToString())

    def write_units(self, path: Path, tensors: Mapping[str, Array]) -> Cut:
        units = cut(self.model, tensors)
        path.write_bytes(units.model.SerializeToString())
        names = tuple(value.name.removesuffix(_GIVEN) for value in units.model.graph.input)
        return Cut(names, units.integer)


def load(path: Path) -> OnnxNetwork:
    """The network of an .onnx file."""
    return OnnxNetwork(imported("onnx").load(str(path)))


def quantized_tensors(model: ModelProto) -> tuple[str, ...]:
    """The tensors that are computed from inputs and quantized."""
    computed = {value.name for value in model.graph.input} - {tensor.name for tensor in model.graph.initializer}
    found: list[str] = []
    for node in model.graph.node:
        if computed.isdisjoint(node.input):
            continue
        computed.update(node.output)
        # A QGemm without a scale of its output gives floats.
        is_quantized = node.op_type != "QGemm" or len(node.input) == 9
        if node.op_type == "QuantizeLinear" or (node.op_type.startswith(("QLinear", "QGemm")) and is_quantized):
            found.append(node.output[0])
    return tuple(found)


def exposed(model: ModelProto) -> ModelProto:
    """The same model, which gives its quantized tensors after its other outputs."""
    result = _copy(model)
    names = quantized_tensors(model)
    others = [value for value in model.graph.output if value.name not in names]
    result.graph.ClearField("output")
    result.graph.output.extend([*others, *(ValueInfoProto(name=name) for name in names)])
    return result


def cut(model: ModelProto, tensors: Mapping[str, Array]) -> Units:
    """The units of a model; `tensors` has its inputs and its quantized tensors in one run."""
    names = quantized_tensors(model)
    result = _copy(model)
    graph = result.graph
    for node in graph.node:
        node.input[:] = [f"{name}{_GIVEN}" if name in names else name for name in node.input]
    nodes = _needed(list(graph.node), names)
    read = {name for node in nodes for name in node.input}
    given = [name for name in (value.name for value in graph.input) if name in read and name in tensors]
    given += [f"{name}{_GIVEN}" for name in names if f"{name}{_GIVEN}" in read]
    infos = {name: _info(name, tensors[name.removesuffix(_GIVEN)]) for name in given}
    kept = [value for value in graph.input if value.name in read and value.name not in infos]
    result.graph.CopyFrom(
        helper.make_graph(
            nodes,
            graph.name,
            [*infos.values(), *kept],
            [_info(name, tensors[name]) for name in names],
            graph.initializer,
        )
    )
    return Units(result, tuple(name for name in names if _is_integer(nodes, name, tensors)))


def _copy(model: ModelProto) -> ModelProto:
    result = ModelProto()
    result.CopyFrom(model)
    return result


def _info(name: str, array: Array) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _needed(nodes: list[NodeProto], names: tuple[str, ...]) -> list[NodeProto]:
    """The nodes that `names` depend on."""
    wanted, kept = set(names), list[NodeProto]()
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            kept.append(node)
            wanted.update(node.input)
    return kept[::-1]


def _is_integer(nodes: list[NodeProto], name: str, tensors: Mapping[str, Array]) -> bool:
    """Whether one operator of the unit computes, with an integer kernel; those of groups take ui8."""
    unit = list(_unit(nodes, name))
    own = [node.op_type for node in unit if node.op_type not in (*_QUANTIZATIONS, *_COMPANIONS)]
    if not own:
        return True
    given = [one.removesuffix(_GIVEN) for node in unit for one in node.input if one.endswith(_GIVEN)]
    is_unsigned = all(tensors[one].dtype.name == "uint8" for one in (*given, name))
    return own[1:] == [] and (own[0] in _OPERATORS or (own[0] in _OF_GROUPS and is_unsigned))


def _unit(nodes: list[NodeProto], name: str) -> Iterator[NodeProto]:
    wanted = {name}
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted.update(node.input)
            yield node
