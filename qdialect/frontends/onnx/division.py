"""An .onnx model divided between this compiler and ONNX Runtime."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from qdialect.arithmetic.profiles import ORT
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends import frameworks
from qdialect.frontends.building.checks import Array, Interface, Shape, Source
from qdialect.frontends.building.extents import NO_DIMS, Dims, Extents
from qdialect.frontends.onnx.importer import OnnxPlanner, read_model
from qdialect.frontends.onnx.inlining import NO_BRANCHES, Branches, captured, graphs_of
from qdialect.frontends.onnx.model import ELEMENTS, Graph, Node
from qdialect.frontends.planning.partition import OpenInterface, Part, PartitionNode, Runner, with_copies
from qdialect.frontends.planning.planner import PlannedDivision
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import ImportModelError

if TYPE_CHECKING:
    import onnx


_NUMBERS = {element: number for number, element in ELEMENTS.items()}


class OnnxDivision(PlannedDivision):
    """A model, judged node by node with the types that ONNX Runtime infers."""

    framework = frameworks.ONNX_RUNTIME.name

    def __init__(
        self,
        source: Source,
        *,
        profile: str = ORT.name,
        batch: int = 1,
        dims: Dims = NO_DIMS,
        branches: Branches = NO_BRANCHES,
    ) -> None:
        """Raises `ImportModelError` for a file that cannot be read."""
        read = read_model(source, Extents(batch, dims), branches)
        self.name, self._size, self._profile = read.name, read.size, profile or ORT.name
        self._models = SubModels(read.proto, read.graph.inputs)
        self._graph = self._with_types(read.graph)
        self.judged = self._judged(self._graph)
        for name in self.judged.results:
            tensor = self.interface(name)
            if tensor is not None:
                self._models.declare_tensor(tensor, _NUMBERS[tensor.element])
        self.known = {name: array for name in self.judged.results if (array := self.array_of(name)) is not None}
        self._nodes = self._wanted()
        computed = {tensor.name for tensor in self._graph.inputs} | {n for node in self._nodes for n in node.outputs}
        self.nodes = with_copies(self._partition_node(node, computed) for node in self._nodes)
        self.inputs = [self._open(tensor.name, tensor) for tensor in self._graph.inputs]
        self.outputs = [self._open(name, self.interface(name)) for name in self._graph.outputs]
        self.constants = {name: self.known[name] for name in self._graph.outputs if name in self.known}

    def module(self, part: Part) -> ir.Module:
        nodes = tuple(self._nodes[index] for index in part.nodes)
        read = {name for node in nodes for name in node.inputs}
        constants = {name: self.known[name] for name in read if name in self.known}
        inputs = tuple(tensor for name in part.inputs if (tensor := self.interface(name)) is not None)
        planner = OnnxPlanner(Graph(nodes, inputs, part.outputs, constants, {}), self.name, self._size, self._profile)
        planned = planner.judge()
        return self.module_of(part, planner, planned)

    def runner(self, part: Part, threads: int) -> Runner:
        gives = [name for index in part.nodes for name in self._nodes[index].outputs if name]
        content = self._models.extract(gives, part.inputs, part.outputs, self.known)
        return frameworks.load_onnx_runtime(content, part.inputs, part.outputs, threads)

    def _judged(self, graph: Graph) -> OnnxPlanner:
        planner = OnnxPlanner(graph, self.name, self._size, self._profile)
        planner.judge()
        return planner

    def _with_types(self, graph: Graph) -> Graph:
        """`graph` with ONNX Runtime's types of values whose types are not known otherwise."""
        results = self._judged(graph).results
        unknown = [name for node in graph.nodes for name in node.outputs if name and results[name] is None]
        infos = frameworks.onnx_runtime_types(lambda: self._models.whole(unknown, graph.constants)) if unknown else []
        self._models.declare(infos)
        return graph.declaring(infos)

    def _wanted(self) -> list[Node]:
        """The nodes of which the outputs of the model that are not known are made."""
        wanted = set(self._graph.outputs)
        found: list[Node] = []
        for node in reversed(self._graph.nodes):
            asked = wanted.intersection(node.outputs) - self.known.keys()
            if asked:
                found.append(node)
                wanted.update(self._models.reads(asked.pop()))
        return found[::-1]

    def _partition_node(self, node: Node, computed: Container[str]) -> PartitionNode:
        gives = tuple(filter(None, node.outputs))
        shapes = {name: self.shape_of(name) for name in (*node.inputs, *gives) if name}
        given = [shapes[name] for name in gives]
        reason = self.judged.reasons.get(node.title, "")
        is_dequantization = node.kind.endswith("DequantizeLinear")
        return PartitionNode(
            node.title,
            tuple(n for n in self._models.reads(gives[0]) if n in computed and n not in self.known),
            gives,
            products(node, [shapes.get(name) for name in node.inputs], given[0]),
            sum(math.prod(shape) for shape in given if shape is not None),
            reason,
            is_copied=not reason and is_dequantization,
            ends_group=node.kind.endswith("QuantizeLinear") and not is_dequantization,
            is_narrow=all((tensor := self.interface(name)) is not None and tensor.element != "f32" for name in gives),
        )

    def _open(self, name: str, tensor: Interface | None) -> OpenInterface:
        if tensor is not None and tensor.element in NUMPY_DTYPES:
            return OpenInterface(name, tensor.shape, NUMPY_DTYPES[tensor.element].name)
        if name in self.known:
            return OpenInterface(name, self.known[name].shape, self.known[name].dtype.name)
        return self._models.open_interface(name)


# Parts of an .onnx model as models of their own, for the framework to run.

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
        """An input or output as the caller sees it, with -1 for extents that are not known before it runs.

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
        """The model of the nodes that give these names, in their order; `constants` are added to the file's.

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


# How many products a node sums up, from the shapes of what it reads and gives.

Shapes = Sequence[Shape | None]
"""Of the inputs, None where it is not known."""


def _of_outputs(weight: int) -> Callable[[Node, Shapes, Shape], int]:
    """A convolution: every output element has the products of one output channel's weights."""
    return lambda _, inputs, output: math.prod(output) * math.prod(_shape(inputs, weight)[1:])


def _of_rows(node: Node, inputs: Shapes, output: Shape) -> int:
    """A product of matrices; rows of the first may be its columns."""
    data = _shape(inputs, 0)
    is_transposed = bool(node.attributes.get("transA", 0) == 1)
    return math.prod(output) * data[len(data) - 1 - is_transposed]


def _of_sequence(_: Node, inputs: Shapes, output: Shape) -> int:
    """A recurrent layer: every step of the sequence meets both weights."""
    del output
    return math.prod(_shape(inputs, 0)[:2]) * (math.prod(_shape(inputs, 1)) + math.prod(_shape(inputs, 2)))


def _shape(inputs: Shapes, index: int) -> Shape:
    """Raises `LookupError` where it is not known."""
    shape = inputs[index]
    if not shape:
        raise LookupError
    return shape


_MICROSOFT = "com.microsoft."
_PRODUCTS: dict[str, Callable[[Node, Shapes, Shape], int]] = {
    "Conv": _of_outputs(1),
    "ConvInteger": _of_outputs(1),
    "QLinearConv": _of_outputs(3),
    "ConvTranspose": lambda _, inputs, output: math.prod(_shape(inputs, 0)) * math.prod(_shape(inputs, 1)[1:]),
    "MatMul": _of_rows,
    "MatMulInteger": _of_rows,
    "QLinearMatMul": _of_rows,
    "Gemm": _of_rows,
    "LSTM": _of_sequence,
    "GRU": _of_sequence,
    "RNN": _of_sequence,
    **dict.fromkeys(
        (f"{_MICROSOFT}{kind}" for kind in ("QGemm", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "FusedMatMul")),
        _of_rows,
    ),
    f"{_MICROSOFT}DynamicQuantizeLSTM": _of_sequence,
}


def products(node: Node, inputs: Shapes, output: Shape | None) -> int:
    """Of one call, 0 for a node that sums up none and for one whose shapes are not known."""
    count = _PRODUCTS.get(node.kind)
    try:
        return count(node, inputs, output) if count and output is not None else 0
    except LookupError:
        return 0
