"""Parts of an .onnx model as models of their own, for the framework to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.common import Array, Interface, Shape
from qdialect.frontends.onnx.functions import captured, graphs_of
from qdialect.frontends.planning.division import OpenInterface

if TYPE_CHECKING:
    import onnx

_LARGEST_MESSAGE = (1 << 31) - 1


class SubModels:
    """The nodes of a model by the names of what they give."""

    def __init__(self, model: onnx.ModelProto, inputs: Sequence[Interface]) -> None:
        """`inputs` are those of the model with all their extents, whatever the file leaves open."""
        self._model = model
        self._nodes = {name: node for node in model.graph.node for name in node.output if name}
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        shapes = {tensor.name: tensor.shape for tensor in inputs}
        given = (value for value in model.graph.input if value.name in shapes)
        self._infos = {value.name: _with_shape(value, shapes[value.name]) for value in given}

    def reads(self, output: str) -> tuple[str, ...]:
        """All names that the node which gives `output` reads, those that graphs inside it read among them."""
        return tuple(dict.fromkeys(_reads(self._nodes[output])))

    def declare(self, infos: Iterable[onnx.ValueInfoProto]) -> None:
        """Types of values between nodes; those that are known stay."""
        for info in infos:
            self._infos.setdefault(info.name, info)

    def declare_tensor(self, tensor: Interface, number: int) -> None:
        """The type of a value between nodes; `number` is that of the element type in the schema."""
        from onnx import helper

        self._infos.setdefault(tensor.name, helper.make_tensor_value_info(tensor.name, number, tensor.shape))

    def open_interface(self, name: str) -> OpenInterface:
        """What the caller sees of an input or output, with -1 for extents that are not known before it runs.

        Raises `ImportModelError` where its type is not known.
        """
        from onnx import helper

        info = self._infos.get(name) or next(value for value in self._model.graph.output if value.name == name)
        tensor = info.type.tensor_type
        if not tensor.elem_type:
            raise ImportModelError(f"type of '{name}' is not known")
        shape = tuple(entry.dim_value if entry.HasField("dim_value") else -1 for entry in tensor.shape.dim)
        return OpenInterface(name, shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type).name)

    def extract(
        self, gives: Sequence[str], inputs: Sequence[str], outputs: Sequence[str], constants: Mapping[str, Array]
    ) -> bytes:
        """The model of the nodes that give these names, in their order; `constants` are known beside the file's.

        Raises `ImportModelError` where the type of an input is not known, and for more than 2 GB.
        """
        from onnx import helper

        # A node that gives several names is there once.
        nodes = list({id(self._nodes[name]): self._nodes[name] for name in gives}.values())
        unknown = next((name for name in inputs if name not in self._infos), None)
        if unknown is not None:
            raise ImportModelError(f"type of '{unknown}', which leaves its region, is not known")
        read = dict.fromkeys(name for node in nodes for name in _reads(node))
        held = [self._constant(name, constants) for name in read if name in constants or name in self._constants]
        results = [self._infos.get(name, helper.make_empty_tensor_value_info(name)) for name in outputs]
        graph = helper.make_graph(nodes, "region", [self._infos[name] for name in inputs], results, held)
        return self._serialized(graph)

    def whole(self, outputs: Sequence[str], constants: Mapping[str, Array]) -> bytes:
        """The whole model with all extents of its inputs, which gives `outputs` too; raises as `extract`."""
        from onnx import helper

        graph = self._model.graph
        given = [self._infos[value.name] for value in graph.input if value.name in self._infos]
        results = [*graph.output, *(helper.make_empty_tensor_value_info(name) for name in outputs)]
        held = [self._constant(name, constants) for name in self._constants]
        made = helper.make_graph(graph.node, graph.name or "graph", given, results, held)
        return self._serialized(made)

    def _constant(self, name: str, constants: Mapping[str, Array]) -> onnx.TensorProto:
        from onnx import numpy_helper

        held = self._constants.get(name)
        is_inside = held is not None and held.data_location != held.EXTERNAL
        return held if held is not None and is_inside else numpy_helper.from_array(constants[name], name)

    def _serialized(self, graph: onnx.GraphProto) -> bytes:
        from onnx import helper

        source = self._model
        _check_inside(graph)
        model = helper.make_model(graph, opset_imports=source.opset_import, functions=source.functions)
        model.ir_version = source.ir_version
        size = model.ByteSize()
        if size > _LARGEST_MESSAGE:
            raise ImportModelError(f"model of a region must have at most {_LARGEST_MESSAGE} bytes, but has {size}")
        return model.SerializeToString()


def _reads(node: onnx.NodeProto) -> list[str]:
    """Names that a node reads, in graphs inside it too."""
    return [*filter(None, node.input), *captured(node)]


def _check_inside(graph: onnx.GraphProto) -> None:
    """Raise `ImportModelError` for a tensor in another file: the framework would look for that by itself."""
    waiting = [graph]
    while waiting:
        held = waiting.pop()
        attributes = [attribute for node in held.node for attribute in node.attribute]
        tensors = [*held.initializer, *(attribute.t for attribute in attributes)]
        outside = next((tensor.name for tensor in tensors if tensor.data_location == tensor.EXTERNAL), None)
        if outside is not None:
            raise ImportModelError(f"constant '{outside}' of a node lies in another file, which is not supported")
        waiting += [inner for node in held.node for inner in graphs_of(node)]


def _with_shape(value: onnx.ValueInfoProto, shape: Shape) -> onnx.ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, shape)
