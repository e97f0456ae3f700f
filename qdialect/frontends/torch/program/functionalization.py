"""Operators that work in place become those that give a new tensor, which later readers of the old one read instead.

That is the same where nothing else that is read later shares the memory.  Where something does, and where a caller's or
a constant's memory is written to, the operator keeps its name, which the front end does not support.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from qdialect.frontends.building.checks import Array, Interface
from qdialect.frontends.torch.program import pytorch_operators
from qdialect.frontends.torch.program.model import Element, Graph, Node, Output, Ref, held_element, memory_groups

_SCATTERS = {"aten.select.int": "aten.select_scatter.default", "aten.slice.Tensor": "aten.slice_scatter.default"}
"""The operator that puts a part back into a tensor, by the one that takes it."""
_SAME = ("aten.to.", "aten.alias.", "aten.detach.")
"""Views that are the tensor itself where shape and type are."""


def functional(
    nodes: Sequence[Node], outputs: Sequence[str], held: Mapping[str, Output] = MappingProxyType({})
) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The nodes, in order of execution, with those in place replaced, and the names of what they give for `outputs`.

    Where a part of a tensor is written, nodes that put it back follow.  Constants that are `held` may be written to.
    Takes time in proportion to the nodes and, for each that works in place, the tensors in the memory it writes to.
    """
    last_reads = {name: index for index, node in enumerate(nodes) for name in node.refs()}
    last_reads.update(dict.fromkeys(outputs, len(nodes)))
    memory = _Memory(last_reads)
    for name, output in held.items():
        memory.hold(name, output)
    found = tuple(pure for index, node in enumerate(nodes) for pure in memory.step(index, node))
    return found, tuple(memory.now.get(name, name) for name in outputs)


def graph_of(
    nodes: Sequence[Node],
    inputs: Sequence[Interface],
    outputs: Sequence[str],
    constants: Mapping[str, Array],
    written: Mapping[str, str] | None = None,
) -> Graph:
    """The graph of nodes that may work in place; a constant is `written` where it holds another value afterwards.

    So are those that nodes write to, where it is not None.
    """
    flat, renamed = _without_regions(nodes)
    results = [renamed.get(name, name) for name in outputs]
    kept = {name: renamed.get(value, value) for name, value in (written or {}).items()}
    may_write = written is not None and any(is_in_place(node.kind) for node in flat)
    others = {name: array for name, array in constants.items() if name not in kept} if may_write else {}
    held = {name: Output(array.shape, held_element(array)) for name, array in others.items()}
    pure, names = functional(flat, (*results, *kept.values(), *held), held)
    count, ends = len(results), kept | {name: name for name in held}
    now = dict(zip(ends, names[count:], strict=True))
    found = {name: value for name, value in now.items() if name in kept or value != name}
    is_impure = bool(found) or any(is_in_place(node.kind) for node in pure)
    original = (tuple(flat), (*results, *(ends[name] for name in found))) if is_impure else None
    return Graph(pure, tuple(inputs), names[:count], constants, found, original, _entangled(constants, found))


def _entangled(constants: Mapping[str, Array], written: Collection[str]) -> str:
    """The first constant that is written to and has the memory of another one, as a message; empty where none has."""
    for group in memory_groups(constants) if written else ():
        changed = next((name for name in group if name in written), None)
        if changed is not None and len(group) > 1:
            other = next(name for name in group if name != changed)
            return f"'{changed}' is written to and shares memory with '{other}'"
    return ""


# What is computed in a region of these is what is computed outside: they mark what a gradient needs, that a region is
# the same as another, or that operands are cast, which nodes do then.  Behind so many arguments come the operands.
_AUTOCAST = "higher_order.wrap_with_autocast"
_REGIONS = {
    "higher_order.wrap_with_set_grad_enabled": (1, 2),
    "higher_order.invoke_subgraph": (0, 2),
    _AUTOCAST: (4, 5),
}
"""By the operator: where the graph stands among the arguments, and where operands begin."""


def _without_regions(nodes: Sequence[Node]) -> tuple[list[Node], dict[str, str]]:
    """The nodes with those of regions in their place, and what results are called now."""
    found: list[Node] = []
    names: dict[str, str] = {}
    given: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        read = node.renamed(lambda name: names.get(name, name))
        source, place = next(iter(node.refs()), ""), node.arguments.get("1", -1)
        graph, operands = _region(read)
        if graph is not None:
            graph = _with_casts(graph) if node.kind == _AUTOCAST else graph
            inner = {one.name: operand.name for one, operand in zip(graph.inputs, operands, strict=True)}
            inner |= {part.name: f"{node.name}.{part.name}" for part in graph.nodes}
            taken = _taking(inner)
            found += [replace(part.renamed(taken), name=inner[part.name]) for part in graph.nodes]
            given[node.name] = tuple(map(taken, graph.outputs))
        elif node.kind == "getitem" and source in given and place in range(len(given[source])):
            names[node.name] = given[source][place]
        else:
            found.append(read)
    return found, names


def _region(node: Node) -> tuple[Graph | None, tuple[Ref, ...]]:
    """The graph of a region that does not change the results, and its operands; None for any other node."""
    if node.kind not in _REGIONS:
        return None, ()
    place, begin = _REGIONS[node.kind]
    graph, *operands = (node.arguments.get(str(i)) for i in (place, *range(begin, len(node.arguments))))
    refs = tuple(operand for operand in operands if isinstance(operand, Ref))
    fits = isinstance(graph, Graph) and not graph.constants and len(refs) == len(operands) == len(graph.inputs)
    return (graph, refs) if fits else (None, ())


def _with_casts(graph: Graph) -> Graph:
    """A region of `torch.autocast` with its casts of operands as nodes.

    The types that were noted tell them: an operator that gives a float of 16 bits takes such ones, and one that gives
    float32 numbers takes these, unless its arguments name the type of its result.
    """
    noted = {one.name: Output(one.shape, one.element) for one in graph.inputs}
    nodes: list[Node] = []
    for node in graph.nodes:
        casts = _casts(node, noted) if node.outputs else ()
        noted.update((one.name, one.outputs[0]) for one in (*casts, node) if one.outputs)
        names = {one.refs()[0]: one.name for one in casts}
        nodes += (*casts, node.renamed(_taking(names)))
    return replace(graph, nodes=tuple(nodes))


_CAST = "aten._to_copy.default"
_FLOATS = ("f16", "bf16", "f32")


def _casts(node: Node, noted: Mapping[str, Output]) -> tuple[Node, ...]:
    """The nodes that cast the operands of one in a region; none where PyTorch's promotion gives its type as well."""
    wanted = node.outputs[0].element
    floats = {name: noted[name] for name in node.refs() if name in noted and noted[name].element in _FLOATS}
    found = {output.element for output in floats.values()}
    promoted = "f32" if len(found) > 1 else "".join(found)
    is_said = any(isinstance(argument, Element) for argument in node.arguments.values())
    if is_said or wanted not in _FLOATS or wanted == promoted:
        return ()
    dtype = {"dtype": Element(wanted)}
    defaults = pytorch_operators.defaults_of(pytorch_operators.schema_of(_CAST), {"self": None, **dtype})
    return tuple(
        Node(
            f"{node.name}.{name}", _CAST, {"self": Ref(name), **dtype, **defaults}, (Output(output.shape, wanted),), ""
        )
        for name, output in floats.items()
    )


def _taking(names: Mapping[str, str]) -> Callable[[str], str]:
    return lambda name: names.get(name, name)


def is_in_place(kind: str) -> bool:
    """Whether an operator writes to the memory of an operand."""
    schema = pytorch_operators.schema_of(kind)
    return schema is not None and bool(schema.is_mutable)


def written_operand(node: Node) -> str | None:
    """The name of the first operand, where the operator writes to it."""
    schema, operand = pytorch_operators.schema_of(node.kind), next(iter(node.arguments.values()), None)
    is_written = schema is not None and _writes_first(schema)
    return operand.name if is_written and isinstance(operand, Ref) else None


@dataclass
class _Memory:
    """Which tensors share memory, and what names stand for since it was written to."""

    last_reads: Mapping[str, int]
    now: dict[str, str] = field(default_factory=dict[str, str])
    """By the names of the program: the node whose result they are, where it is another."""
    _owner: dict[str, str] = field(default_factory=dict[str, str])
    """Of each tensor whose memory an operator has made: the first tensor in it."""
    _shares: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By the first: all tensors in that memory."""
    _apart: set[str] = field(default_factory=set[str])
    """Nodes with several results, each in memory of its own."""
    _nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    """As the program has them."""

    def hold(self, name: str, output: Output) -> None:
        """Own the memory of a constant."""
        self._join(name, name)
        self._nodes[name] = Node(name, "", {}, (output,), "")

    def step(self, index: int, node: Node) -> list[Node]:
        """The node as it reads now, and what makes a whole tensor of a part that it writes."""
        schema, operand = pytorch_operators.schema_of(node.kind), next(iter(node.arguments.values()), None)
        read = node.renamed(lambda name: self.now.get(name, name))
        self._nodes[node.name] = node
        if node.kind == "getitem":
            self._take(node)
        if schema is None:
            return [read]
        if not _writes_first(schema):
            self._define(node, schema)
            return [read]
        if not isinstance(operand, Ref):
            return [node]
        pure = _pure(read)
        if self._may_write(index, operand.name):
            self._overwrite(index, operand.name, node.name)
            return [pure]
        parts = self._written_part(index, operand.name, node)
        return [pure, *parts] if parts else [node]

    def _written_part(self, index: int, name: str, node: Node) -> list[Node]:
        """The whole tensors of which `name` is a part of a part, with what `node` gives in its place.

        Nothing where something else in that memory is read later.
        """
        path = self._path(name)
        if not path:
            return []
        base = path[-1].arguments["self"].name
        whole, part = self.now.get(base, base), self.now.get(name, name)
        others = (other for other in self._shares[self._owner[name]] if self.now.get(other, other) not in (whole, part))
        if any(self.last_reads.get(other, -1) > index for other in others) or base not in self._nodes:
            return []
        found: list[Node] = []
        value = node.name
        for view in path:
            source: str = view.arguments["self"].name
            held = {**view.arguments, "self": Ref(self.now.get(source, source)), "src": Ref(value)}
            value = f"{node.name}.{source}"
            outputs = self._nodes[source].outputs
            found.append(Node(value, _SCATTERS[view.kind], held, outputs, node.where, node.label))
        names = self._shares[self._owner[name]]
        self.now.update({other: value for other in names if self.now.get(other, other) == whole})
        self.now.update({other: node.name for other in names if self.now.get(other, other) == part})
        for other in (value, node.name):
            self._join(other, self._owner[name])
        return found

    def _path(self, name: str) -> list[Node]:
        """The parts of parts that lead from `name` to the tensor whose memory it is."""
        found: list[Node] = []
        while (view := self._nodes.get(name)) is not None and view.kind in _SCATTERS:
            found.append(view)
            name = view.arguments["self"].name
        return found if self._owner.get(name) == name else []

    def _define(self, node: Node, schema: Any) -> None:
        """A view lies in the memory of the one tensor that it reads; what others own is not followed."""
        if not pytorch_operators.is_view(schema):
            self._join(node.name, node.name)
            if [str(result.type) for result in schema.returns] != ["Tensor"]:
                self._apart.add(node.name)
            return
        owners = {self._owner.get(name) for name in node.refs()}
        owner = owners.pop() if len(owners) == 1 else None
        if owner is None:
            return
        self._join(node.name, owner)
        (source,) = node.refs()
        if self._is_same(node, source):
            self.now[node.name] = self.now.get(source, source)

    def _is_same(self, node: Node, source: str) -> bool:
        """Whether a view is the tensor itself, as a conversion to its own type is."""
        if source not in self._nodes or not node.kind.startswith(_SAME):
            return False
        return self._nodes[source].outputs == node.outputs and not node.arguments.get("copy", False)

    def _take(self, node: Node) -> None:
        """A result of several lies in memory of its own, or where all views of a tensor lie."""
        source = next(iter(node.refs()), "")
        owner = f"{source}[{node.arguments['1']}]" if source in self._apart else self._owner.get(source)
        if owner is not None:
            self._join(node.name, owner)

    def _join(self, name: str, owner: str) -> None:
        self._owner[name] = owner
        self._shares[owner].append(name)

    def _may_write(self, index: int, name: str) -> bool:
        """Whether all that is read later of the memory of `name` is that whole tensor."""
        owner = self._owner.get(name)
        if owner is None:
            return False
        whole = self.now.get(name, name)
        others = (other for other in self._shares[owner] if self.now.get(other, other) != whole)
        return all(self.last_reads.get(other, -1) <= index for other in others)

    def _overwrite(self, index: int, name: str, result: str) -> None:
        """`result` is what every name of the same tensor stands for from now on; no other in its memory is read."""
        owner = self._owner[name]
        read_later = [other for other in self._shares[owner] if self.last_reads.get(other, -1) > index]
        self.now.update(dict.fromkeys(read_later, result))
        self._shares[owner] = read_later
        self._join(result, owner)


def _writes_first(schema: Any) -> bool:
    """Whether an operator writes to its first operand."""
    aliases = schema.arguments[0].alias_info if schema.arguments else None
    return bool(aliases is not None and aliases.is_write)


def _pure(node: Node) -> Node:
    """`node` by the operator that writes to none; some name their arguments otherwise, as `dropout_` does."""
    kind = _functional(node.kind)
    taken, wanted = ([one.name for one in pytorch_operators.parameters_of(each)] for each in (node.kind, kind))
    # Those of `polygamma_` have the same names in another order.
    names = {own: name for own, name in zip(taken, wanted, strict=False) if own not in wanted}
    return replace(node, kind=kind, arguments={names.get(name, name): one for name, one in node.arguments.items()})


def _functional(kind: str) -> str:
    """The operator that takes the same arguments and writes to none: `transpose.int` for `transpose_`."""
    package, name, overload = kind.split(".")
    plain = f"{package}.{name.removesuffix('_')}"
    taken = [(one.name, one.kind) for one in pytorch_operators.parameters_of(kind)]
    others = (f"{plain}.{one}" for one in pytorch_operators.overloads_of(plain))
    alike = (
        one
        for one in others
        if taken == [(a.name, a.kind) for a in pytorch_operators.parameters_of(one)] and not is_in_place(one)
    )
    same = f"{plain}.{overload}"
    return same if pytorch_operators.schema_of(same) is not None else next(alike, same)
