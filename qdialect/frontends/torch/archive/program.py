"""From the JSON of a program to a `Graph`: what the schema of PyTorch's exported programs, version 8, calls a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdialect.frontends.building.checks import Array, Interface, Shape
from qdialect.frontends.building.extents import Extents
from qdialect.frontends.torch.archive.members import (
    Field,
    Members,
    Weights,
    declared_extent,
    dtype_name,
    part_of,
    shown,
)
from qdialect.frontends.torch.program.functionalization import graph_of
from qdialect.frontends.torch.program.model import ELEMENTS, UNKNOWN, Graph, Node, Output, Ref, is_contiguous
from qdialect.frontends.torch.program.pytorch_operators import defaults_of, element_of, is_check, schema_of
from qdialect.frontends.torch.program.symbolic_shapes import Number, Range, extent_of, number, open_shape, sizes_of
from qdialect.support.diagnostics import ImportModelError

_PROGRAM = "models/model.json"
_BYTE_ORDER = "byteorder"
_VERSION = 8
_PREFIX = "torch.ops."
_MAX_DEPTH = 8
_HIGHER_ORDER = "higher_order."
_PART_OPERANDS = 2
_PART = "export.access_subclass_inner_tensor.default"
_CONSTANTS = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}


def read_members(members: Members, extents: Extents) -> Graph:
    """The graph of the program in an archive, parameters, buffers and constants among it.

    `extents` sets the extents that inputs leave open.

    Takes time and memory in proportion to the members that it reads.  Raises `ImportModelError` for a program that is
    not as the schema requires, one that changes its buffers, has inputs that are no tensors or unknown extents.
    """
    order = members.read(_BYTE_ORDER) if _BYTE_ORDER in members else b"little"
    if order != b"little":
        found = shown(order.decode(errors="replace"))
        raise ImportModelError(f"member '{_BYTE_ORDER}' must be little, but got {found}")
    root = _root(members)
    module = root["graph_module"]
    sizes = sizes_of(_declared_shapes(module), extents, _ranges(root))
    return _Reader(Weights(members), module["graph"], sizes).run(module["signature"])


def open_shapes(members: Members) -> dict[str, tuple[int | str, ...]]:
    """The shapes of the inputs of a program that was read before, with names of the extents that it leaves open."""
    shapes = _declared_shapes(_root(members)["graph_module"])
    return {name: open_shape(shape) for name, shape in shapes.items()}


def _declared_shapes(module: Field) -> dict[str, tuple[int | str, ...]]:
    """The shapes of inputs, with the expressions of extents that are open."""
    tensors = dict(module["graph"]["tensor_values"].entries())
    found: dict[str, tuple[int | str, ...]] = {}
    for spec in module["signature"]["input_specs"].items():
        kind, held = spec.union()
        part, value = held["arg"].union() if kind == "user_input" else (kind, held)
        name = value["name"].name() if part == "as_tensor" else ""
        if name in tensors:
            found[name] = tuple(declared_extent(size) for size in tensors[name]["sizes"].items())
    return found


def _root(members: Members) -> Field:
    root = members.json(_PROGRAM)
    version = root["schema_version"]["major"]
    if version.integer() != _VERSION:
        version.refuse(f"must be {_VERSION}, but got {version.integer()}")
    return root


def _ranges(root: Field) -> dict[str, Range]:
    """The least and the largest size of each symbol."""
    constraints = root.get("range_constraints")
    entries = () if constraints is None else constraints.entries()
    return {name: (_end(held, "min_val", 0), _end(held, "max_val", math.inf)) for name, held in entries}


def _end(held: Field, name: str, default: float) -> float:
    end = held.get(name)
    return default if end is None else end.integer()


@dataclass
class _Reader:
    """Collects what a graph holds, in order; a name is defined once, before it is read."""

    weights: Weights
    graph: Field
    sizes: Mapping[str, int]
    """Of each symbol."""
    depth: int = 0
    """How many graphs this one lies in."""
    defined: set[str] = field(default_factory=set[str])
    nodes: list[Node] = field(default_factory=list[Node])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    wrapped: dict[str, Any] = field(default_factory=dict[str, Any])
    """Constants that are made of others."""
    targets: dict[str, str] = field(default_factory=dict[str, str])
    """By name in the graph: the program's name of a constant."""

    def __post_init__(self) -> None:
        self.tensors: Mapping[str, Field] = dict(self.graph["tensor_values"].entries())
        parts = (self.graph.get(f"sym_{kind}_values") for kind in ("int", "float", "bool"))
        self.numbers = {name: held for part in parts if part is not None for name, held in part.entries()}

    def run(self, signature: Field) -> Graph:
        inputs: list[Interface] = []
        for spec in signature["input_specs"].items():
            self._input(spec, inputs, self.constants)
        for node in self.graph["nodes"].items():
            self.node(node)
        buffers = {target: name for name, target in self.targets.items()}
        written: dict[str, str] = {}
        outputs: list[str] = []
        results = list(self.graph["outputs"].items())
        specs = list(signature["output_specs"].items())
        if len(specs) != len(results):
            signature["output_specs"].refuse(f"must have an entry for each of {len(results)} outputs, not {len(specs)}")
        for spec, one in zip(specs, results, strict=True):
            kind, held = spec.union()
            if kind == "buffer_mutation" and held["buffer_name"].text() in buffers:
                written[buffers[held["buffer_name"].text()]] = self.output(one)
            elif kind != "user_output":
                names = [shown(value.text()) for name, value in held.entries() if name != "arg"]
                raise ImportModelError(f"model must not change '{', '.join(names) or shown(kind)}' when it runs")
            elif one.union()[0] != "as_none":
                outputs.append(self.output(one))
        return graph_of(self.nodes, inputs, outputs, self.constants, written)

    def _subgraph(self, graph: Field) -> Graph:
        """A graph that an operator runs; inputs that are not tensors have no name."""
        if self.depth == _MAX_DEPTH:
            graph.refuse(f"must not be nested more than {_MAX_DEPTH} deep")
        inner = _Reader(self.weights, graph, self.sizes, self.depth + 1)
        inputs: list[Interface] = []
        for given in graph["inputs"].items():
            kind, value = given.union()
            name = inner.define(value["name"]) if kind == "as_tensor" else ""
            output = inner.tensor(name) if name else Output((), UNKNOWN)
            inputs.append(Interface(name, output.shape, output.element))
        for node in graph["nodes"].items():
            inner.node(node)
        outputs = [inner.output(one) for one in graph["outputs"].items()]
        return graph_of(inner.nodes, inputs, outputs, inner.constants)

    def _input(self, spec: Field, inputs: list[Interface], constants: dict[str, Array]) -> None:
        kind, held = spec.union()
        if kind in _CONSTANTS:
            target, name = held[_CONSTANTS[kind]], self.define(held["arg"]["name"])
            self.targets[name] = target.text()
            self._hold(name, self.weights.tensor(target.text(), target))
            return
        found, value = held["arg"].union() if kind == "user_input" else (kind, held)
        if found != "as_tensor":
            value.refuse(f"must be a tensor, but is {shown(found)}")
        name = self.define(value["name"])
        output = self.tensor(name)
        inputs.append(Interface(name, output.shape, output.element))

    def output(self, output: Field) -> str:
        """The name of a result."""
        kind, value = output.union()
        if kind != "as_tensor":
            output.refuse(f"must be a tensor, but got {shown(kind)}")
        return self._known(value["name"])

    def node(self, node: Field) -> None:
        """Add what a node of the program is."""
        kind = shown(node["target"].text().removeprefix(_PREFIX))
        # Symbolic numbers alone, or a check of them.
        kinds = [output.union()[0] for output in node["outputs"].items()]
        if (bool(kinds) and all(one.startswith("as_sym_") for one in kinds)) or is_check(kind):
            # Extents are computed, and checked, when they are chosen.
            return
        where = _where(node)
        if kind == _PART:
            self._part(node)
            return
        # Operators without a schema have arguments without names.
        arguments = {
            (given["name"].text() or str(index)): argument_of(given["arg"], self._known, self._number, self._subgraph)
            for index, given in enumerate(node["inputs"].items())
        }
        schema = schema_of(kind)
        if schema is not None:
            arguments |= defaults_of(schema, arguments)
        single = _single(node["outputs"])
        if single is not None and kind.startswith(_HIGHER_ORDER):
            # It gives a list of one.
            source = f"{single.name()}.all"
            output = self.tensor(self.define(single))
            self.nodes.append(Node(source, kind, arguments, (output,), where))
            self.nodes.append(Node(single.name(), "getitem", {"0": Ref(source), "1": 0}, (output,), where))
            return
        if single is not None:
            name = self.define(single)
            self.nodes.append(Node(name, kind, arguments, (self.tensor(name),), where))
            return
        # As tracers write it: a node of several results, and one that takes each of them.
        source = self.define(node["name"])
        names = [None if result is None else self.define(result) for result in _results(node["outputs"])]
        outputs = tuple(Output((), UNKNOWN) if name is None else self.tensor(name) for name in names)
        self.nodes.append(Node(source, kind, arguments, outputs, where))
        for index, (name, output) in enumerate(zip(names, outputs, strict=True)):
            if name is not None:
                self.nodes.append(Node(name, "getitem", {"0": Ref(source), "1": index}, (output,), where))

    def _hold(self, name: str, constant: Any) -> None:
        (self.constants if isinstance(constant, np.ndarray) else self.wrapped)[name] = constant

    def _part(self, node: Field) -> None:
        """One of the tensors that a constant is made of."""
        operands = [one["arg"].union()[1] for one in node["inputs"].items()]
        if len(operands) != _PART_OPERANDS:
            node["inputs"].refuse(f"must have {_PART_OPERANDS} entries, but got {len(operands)}")
        source, attribute = operands
        name = source["name"].name()
        found = part_of(self.wrapped.get(name), attribute.text())
        if found is None:
            node.refuse(
                f"must take a tensor of which a constant is made, but '{name}' has no '{shown(attribute.text())}'"
            )
        single = _single(node["outputs"])
        self._hold(self.define(single if single is not None else node["name"]), found)

    def define(self, name: Field) -> str:
        """A name, which is defined once."""
        text = name.name()
        if text in self.defined:
            name.refuse(f"must be defined once, but '{text}' is defined before")
        self.defined.add(text)
        return text

    def _known(self, name: Field) -> str:
        text = name.name()
        if text in self.wrapped:
            name.refuse(f"must be a plain tensor, but '{text}' is made of others")
        return text if text in self.defined else name.refuse(f"must be defined before, but '{text}' is not")

    def tensor(self, name: str) -> Output:
        """The program's metadata of a tensor."""
        meta = self.tensors.get(name)
        if meta is None:
            return Output((), UNKNOWN)
        dtype = dtype_name(meta["dtype"])
        shape, strides = (self._shape(meta[part], name) for part in ("sizes", "strides"))
        if len(strides) != len(shape):
            meta["strides"].refuse(f"must have a stride for each of {len(shape)} sizes, but got {len(strides)}")
        return Output(shape, ELEMENTS.get(dtype, dtype), is_contiguous(shape, strides))

    def _shape(self, sizes: Field, name: str) -> Shape:
        return tuple(self._extent(declared_extent(size), name) for size in sizes.items())

    def _extent(self, declared: int | str, name: str) -> int:
        """An extent of a tensor, -1 where it depends on data."""
        return declared if isinstance(declared, int) else extent_of(declared, self.sizes, name)

    def _number(self, name: Field) -> Number:
        """A symbolic number by its name."""
        text = name.name()
        held = self.numbers.get(text)
        if held is None:
            name.refuse(f"must be known, but '{text}' is not")
        kind, value = held.union()
        if kind == "as_expr":
            return number(value["expr_str"].text(), self.sizes, text)
        return value.number() if kind == "as_float" else value.integer()


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


# Arguments of nodes, each an object whose one part names its kind.

Known = Callable[[Field], str]
"""The name of a tensor; refuses one that is not defined before."""
NumberOf = Callable[[Field], Number]
"""The value of a number with a name."""
GraphOf = Callable[[Field], Graph]
"""A graph that an operator runs."""

_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_LAYOUTS = {7: "strided"}


def argument_of(argument: Field, known: Known, number_of: NumberOf, graph_of: GraphOf) -> Any:
    """A `Ref`, `Element`, number, string, None, `Graph` or tuple of these, as the arguments of a `Node`.

    Objects, operators and complex numbers are strings that describe them: no operator that the front end knows
    takes them.  Raises `ImportModelError` for what the schema of the format does not have.
    """
    kind, value = argument.union()
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind in _LISTS:
        return tuple(_SCALARS[_LISTS[kind]](part) for part in value.items())
    if kind == "as_graph":
        return graph_of(value["graph"])
    if kind == "as_tensor":
        return Ref(known(value["name"]))
    if kind == "as_tensors":
        return tuple(Ref(known(part["name"])) for part in value.items())
    if kind in ("as_optional_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
        return _one(value, known, number_of)
    if kind in ("as_optional_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools"):
        return tuple(_one(part, known, number_of) for part in value.items())
    return shown(kind)


def _one(value: Field, known: Known, number_of: NumberOf) -> Any:
    """A number, perhaps by its name, or a tensor, or none."""
    kind, held = value.union()
    if kind == "as_tensor":
        return Ref(known(held["name"]))
    if kind == "as_name":
        return number_of(held)
    return _SCALARS[kind](held) if kind in _SCALARS else value.refuse(f"must be known, but got {shown(kind)}")


def _numbered(names: dict[int, str]) -> Callable[[Field], Any]:
    def element(code: Field) -> Any:
        number = code.integer()
        return element_of(names[number]) if number in names else code.refuse(f"must be known, but got {number}")

    return element


_SCALARS: dict[str, Callable[[Field], Any]] = {
    "as_none": lambda _: None,
    "as_bool": Field.boolean,
    "as_int": Field.integer,
    "as_float": Field.number,
    "as_string": lambda text: shown(text.text()),
    "as_scalar_type": lambda code: element_of(dtype_name(code)),
    "as_memory_format": _numbered(_FORMATS),
    "as_layout": _numbered(_LAYOUTS),
    "as_device": lambda device: shown(device["type"].text()),
}
_LISTS = {"as_ints": "as_int", "as_floats": "as_float", "as_bools": "as_bool", "as_strings": "as_string"}
