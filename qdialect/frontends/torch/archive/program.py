"""From the JSON of a program to a `Graph`: what the schema of PyTorch's exported programs, version 8, calls a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.common import Array, Interface, Shape
from qdialect.frontends.extents import Extents, OpenShape
from qdialect.frontends.torch.archive.arguments import argument_of
from qdialect.frontends.torch.archive.fields import Field, shown
from qdialect.frontends.torch.archive.members import Members
from qdialect.frontends.torch.archive.sizes import gives_tensors, input_shapes, with_known_sizes
from qdialect.frontends.torch.archive.weights import Weights, dtype_name, extent
from qdialect.frontends.torch.inplace import functional
from qdialect.frontends.torch.model import ELEMENTS, UNKNOWN, Graph, Node, Output, Ref
from qdialect.frontends.torch.schemas import defaults_of, schema_of

_PROGRAM = "models/model.json"
_BYTE_ORDER = "byteorder"
_VERSION = 8
_PREFIX = "torch.ops."
_CONSTANTS = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
}


def read_members(members: Members, extents: Extents) -> Graph:
    """The graph of the program in an archive, parameters, buffers and constants among it, for sizes as `extents` says.

    Takes time and memory in proportion to the members that it reads.  Raises `ImportModelError` for a program that is
    not as the schema says, one that changes its buffers, has inputs that are no tensors or an open extent.
    """
    _check_byte_order(members)
    module = with_known_sizes(_program(members), extents)["graph_module"]
    return _Reader(Weights(members), module["graph"]).run(module["signature"])


def declared_shapes(members: Members) -> Mapping[str, OpenShape]:
    """The sizes of the inputs of the program in an archive, and the names of those that are open."""
    return input_shapes(_program(members))


def _program(members: Members) -> Field:
    root = members.json(_PROGRAM)
    version = root["schema_version"]["major"]
    if version.integer() != _VERSION:
        version.refuse(f"must be {_VERSION}, but got {version.integer()}")
    return root


def _check_byte_order(members: Members) -> None:
    order = members.read(_BYTE_ORDER) if _BYTE_ORDER in members else b"little"
    if order != b"little":
        raise ImportModelError(
            f"member '{_BYTE_ORDER}' must be little, but got {shown(order.decode(errors='replace'))}"
        )


@dataclass
class _Reader:
    """Collects what a graph holds, in order; a name is defined once, before it is read."""

    weights: Weights
    graph: Field
    defined: set[str] = field(default_factory=set[str])
    nodes: list[Node] = field(default_factory=list[Node])

    def __post_init__(self) -> None:
        self.tensors: Mapping[str, Field] = dict(self.graph["tensor_values"].entries())

    def run(self, signature: Field) -> Graph:
        constants: dict[str, Array] = {}
        inputs: list[Interface] = []
        for spec in signature["input_specs"].items():
            self._input(spec, inputs, constants)
        for spec in signature["output_specs"].items():
            _check_output(spec)
        for node in self.graph["nodes"].items():
            # Sizes that depend on data, and what is asserted of them: a node that reads one is refused.
            if gives_tensors(node):
                self._node(node)
        outputs = tuple(self._output(output) for output in self.graph["outputs"].items())
        pure, results = functional(self.nodes, outputs)
        return Graph(pure, tuple(inputs), results, constants)

    def _input(self, spec: Field, inputs: list[Interface], constants: dict[str, Array]) -> None:
        kind, held = spec.union()
        if kind in _CONSTANTS:
            target = held[_CONSTANTS[kind]]
            constants[self._define(held["arg"]["name"])] = self.weights.tensor(target.text(), target)
            return
        found, value = held["arg"].union() if kind == "user_input" else (kind, held)
        if found != "as_tensor":
            value.refuse(f"must be a tensor, but is {shown(found)}")
        name = self._define(value["name"])
        output = self._tensor(name)
        inputs.append(Interface(name, output.shape, output.element))

    def _output(self, output: Field) -> str:
        kind, value = output.union()
        if kind != "as_tensor":
            output.refuse(f"must be a tensor, but got {shown(kind)}")
        return self._known(value["name"])

    def _node(self, node: Field) -> None:
        kind = shown(node["target"].text().removeprefix(_PREFIX))
        where = _where(node)
        arguments = {
            _argument_name(given, index): argument_of(given["arg"], self._known)
            for index, given in enumerate(node["inputs"].items())
        }
        schema = schema_of(kind)
        if schema is not None:
            arguments |= defaults_of(schema, arguments)
        single = _single(node["outputs"])
        if single is not None:
            name = self._define(single)
            self.nodes.append(Node(name, kind, arguments, (self._computed(name),), where))
            return
        # As tracers write it: a node of several results, and one that takes each of them.
        source = self._define(node["name"])
        names = [None if result is None else self._define(result) for result in _results(node["outputs"])]
        outputs = tuple(Output((), UNKNOWN) if name is None else self._computed(name) for name in names)
        self.nodes.append(Node(source, kind, arguments, outputs, where))
        for index, (name, output) in enumerate(zip(names, outputs, strict=True)):
            if name is not None:
                self.nodes.append(Node(name, "getitem", {"0": Ref(source), "1": index}, (output,), where))

    def _define(self, name: Field) -> str:
        text = name.name()
        if text in self.defined:
            name.refuse(f"must be defined once, but '{text}' is defined before")
        self.defined.add(text)
        return text

    def _known(self, name: Field) -> str:
        text = name.name()
        return text if text in self.defined else name.refuse(f"must be defined before, but '{text}' is not")

    def _tensor(self, name: str) -> Output:
        """What the program notes of a tensor."""
        meta = self.tensors.get(name)
        if meta is None:
            return Output((), UNKNOWN)
        dtype = dtype_name(meta["dtype"])
        return Output(_shape(meta["sizes"], name), ELEMENTS.get(dtype, dtype))

    def _computed(self, name: str) -> Output:
        """The same of what a node gives; sizes that depend on data are -1."""
        meta = self.tensors.get(name)
        is_open = meta is not None and any(size.union()[0] == "as_expr" for size in meta["sizes"].items())
        if meta is None or not is_open:
            return self._tensor(name)
        dtype = dtype_name(meta["dtype"])
        sizes = tuple(-1 if size.union()[0] == "as_expr" else extent(size) for size in meta["sizes"].items())
        return Output(sizes, ELEMENTS.get(dtype, dtype))


def _shape(sizes: Field, name: str) -> Shape:
    try:
        return tuple(extent(size) for size in sizes.items())
    except ImportModelError as error:
        raise ImportModelError(f"'{name}' must have known extents: {error}") from error


def _check_output(spec: Field) -> None:
    kind, held = spec.union()
    if kind != "user_output":
        names = [shown(value.text()) for name, value in held.entries() if name != "arg"]
        raise ImportModelError(f"model must not change '{', '.join(names) or shown(kind)}' when it runs")


def _argument_name(given: Field, index: int) -> str:
    """Operators without a schema have arguments without names."""
    return given["name"].text() or str(index)


def _results(outputs: Field) -> Iterator[Field | None]:
    """The names of a node's results, None for one that is left out."""
    for output in outputs.items():
        kind, value = output.union()
        if kind == "as_tensor":
            yield value["name"]
        elif kind == "as_tensors":
            yield from (part["name"] for part in value.items())
        elif kind == "as_none":
            yield None
        else:
            output.refuse(f"must be tensors, but got {shown(kind)}")


def _single(outputs: Field) -> Field | None:
    """The name of the result of a node that gives one tensor; None for one that gives a list or several."""
    kinds = [output.union() for output in outputs.items()]
    return kinds[0][1]["name"] if len(kinds) == 1 and kinds[0][0] == "as_tensor" else None


def _where(node: Field) -> str:
    """The path of the innermost module that the call came from."""
    metadata = node.get("metadata")
    stack = None if metadata is None else metadata.get("nn_module_stack")
    if stack is None:
        return ""
    # Each entry is "key,path,type".
    innermost = stack.text().rpartition(";")[2].split(",", 2)
    path = innermost[1] if len(innermost) > 1 else ""
    return shown(path.removeprefix("L['self']").lstrip("."))
