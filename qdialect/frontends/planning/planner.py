"""Plans a whole graph: the meaning of every name, and every unsupported op in one error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building import checks
from qdialect.frontends.building.checks import Array, Interface, Shape, UnsupportedError
from qdialect.frontends.planning.emitter import Planned, Value, module_of
from qdialect.frontends.planning.partition import Division, Part, PartRefusedError, refused_nodes
from qdialect.frontends.planning.tensors import Computed, Constant, F32Tensor, Plan, Tensor, known
from qdialect.ir._mlir import ir

Result = Tensor | tuple[Tensor, ...]
"""The meaning of a name; several tensors if a node gives them under one name."""


class PlannedNode(Protocol):
    """A node of a graph; `title` is how messages call it."""

    @property
    def title(self) -> str: ...


N = TypeVar("N", bound=PlannedNode)


class Planner(ABC, Generic[N]):
    """Finds what every name of a graph stands for; None is what an unsupported node gives.

    `name` is what messages call the model, `elements` are the types that arguments and results may have.
    """

    takes_empty: ClassVar[bool] = False
    """Whether arguments and results may have no elements."""

    def __init__(self, name: str, elements: Sequence[str], plan: Plan) -> None:
        self.name = name
        self.plan = plan
        self.results: dict[str, Result | None] = {}
        self.unsupported: list[str] = []
        self.reasons: dict[str, str] = {}
        """Why nodes are not planned, by their titles: those that are supported read a tensor that is unknown."""
        self._other_types: dict[str, str] = {}
        """Of what unsupported nodes give: why it has no type here."""
        self.interface_reasons: dict[str, str] = {}
        """Why names cannot be inputs or outputs."""
        self._elements = elements

    def planned(
        self,
        inputs: Sequence[Interface],
        constants: Mapping[str, Array],
        nodes: Sequence[N],
        outputs: Sequence[str],
        hints: Sequence[str] = (),
    ) -> Planned:
        """The plan of a graph; raises `ImportModelError` with a note for each unsupported node, then `hints`."""
        planned = self.judged(inputs, constants, nodes, outputs)
        checks.refuse(self.name, self.unsupported, hints)
        return planned

    def judged(
        self, inputs: Sequence[Interface], constants: Mapping[str, Array], nodes: Sequence[N], outputs: Sequence[str]
    ) -> Planned:
        """The plan of a graph as far as it can be planned; the rest is in `reasons` and `interface_reasons`.

        What an unsupported node gives is taken for an input, where its type and shape are known, so that the nodes
        behind it are judged too.
        """
        self.results.update({name: Constant(array) for name, array in constants.items()})
        arguments = tuple(map(self._input, inputs))
        refused = self.interface_reasons
        self.results.update({value.name: None if value.name in refused else _argument(value) for value in arguments})
        for node in nodes:
            self._visit(node)
        results = tuple(result for name in outputs for result in self._output(name))
        return Planned(arguments, tuple(self.plan.values), results, self.plan.budget)

    @abstractmethod
    def reads(self, node: N) -> Sequence[str]:
        """The names that a node reads."""

    @abstractmethod
    def gives(self, node: N) -> Sequence[str]:
        """The names that a node defines."""

    @abstractmethod
    def check_operator(self, node: N) -> None:
        """Raise `UnsupportedError` where nothing imports the operator, whatever it reads."""

    @abstractmethod
    def results_of(self, node: N) -> Mapping[str, Result]:
        """The meanings of the names that a node defines; all that it reads is known.  Raises `UnsupportedError`."""

    def types_of(self, node: N) -> Sequence[Interface]:
        """The known meanings of the results of a node that is not planned; none, unless a format overrides this."""
        del node
        return ()

    def _visit(self, node: N) -> None:
        reads = self.reads(node)
        self.results.update(dict.fromkeys(self.gives(node)))
        try:
            with checks.converting():
                planned = self._planned_results(node, reads)
        except UnsupportedError as error:
            self.reasons[node.title] = str(error)
            self.unsupported.append(f"{node.title}: {error}")
            planned = None
        self.results.update(self._assumed(node) if planned is None else planned)

    def _planned_results(self, node: N, reads: Sequence[str]) -> Mapping[str, Result] | None:
        unknown = next((name for name in reads if self.results[name] is None), None)
        if unknown is None:
            return self.results_of(node)
        # Nodes that depend on an unsupported one may not be planned, but their operators can be unsupported too.
        self.check_operator(node)
        reasons = {**self._other_types, **self.interface_reasons}
        reason = reasons.get(unknown, "its type and shape are not known")
        self.reasons[node.title] = f"reads '{unknown}': {reason}"
        return None

    def _assumed(self, node: N) -> Mapping[str, Result]:
        try:
            with checks.converting():
                types = self.types_of(node)
        except UnsupportedError:
            return {}
        unsupported = {tensor.name: self._unsupported_interface("", tensor) for tensor in types}
        self._other_types.update((name, found[0].partition(": ")[2]) for name, found in unsupported.items() if found)
        known = (tensor for tensor in types if not unsupported[tensor.name])
        values = (Value(tensor.name, tensor.shape, tensor.element) for tensor in known)
        return {value.name: found for value in values if (found := _argument(value)) is not None}

    def _unsupported_interface(self, what: str, tensor: Interface) -> list[str]:
        return checks.unsupported_interfaces(what, [tensor], self._elements, may_be_empty=self.takes_empty)

    def _input(self, tensor: Interface) -> Value:
        self._refuse_interface(tensor.name, self._unsupported_interface("input", tensor))
        return Value(tensor.name, tensor.shape, tensor.element)

    def _output(self, name: str) -> tuple[tuple[str, Value], ...]:
        result = self.results[name]
        if result is None:
            return ()
        try:
            value = self._value(name, result)
        except UnsupportedError as error:
            self._refuse_interface(name, [f"output '{name}': {error}"])
            return ()
        self._refuse_interface(name, self._unsupported_interface("output", Interface(name, value.shape, value.element)))
        return ((name, value),)

    def _refuse_interface(self, name: str, unsupported: Sequence[str]) -> None:
        self.unsupported += unsupported
        if unsupported:
            self.interface_reasons[name] = unsupported[0].partition(": ")[2]

    def _value(self, name: str, result: Result) -> Value:
        if isinstance(result, tuple):
            raise UnsupportedError("must be one tensor")
        if isinstance(result, Constant):
            return known(name, result.array)
        return result.f32(self.plan, name) if isinstance(result, F32Tensor) else result


def _argument(value: Value) -> Tensor | None:
    """The meaning of an input; None if no tensor has its shape, which `_input` has found.

    Of a tensor without elements all are known.
    """
    if 0 in value.shape and checks.is_shape(value.shape):
        return Constant(np.empty(value.shape, NUMPY_DTYPES[value.element]))
    if value.element != "f32":
        return value
    return Computed(value.shape, value) if checks.is_shape(value.shape) else None


class PlannedDivision(Division):
    """A division whose nodes a planner has judged, and what it knows of names."""

    judged: Planner[Any]
    known: Mapping[str, Array]
    """The values that are known when the model is read, by name."""

    def array_of(self, name: str) -> Array | None:
        """The known content of `name`."""
        result = self.judged.results[name]
        if isinstance(result, Constant):
            return result.array
        return result.data if isinstance(result, Value) else None

    def interface(self, name: str) -> Interface | None:
        """The tensor that crosses as `name`, as far as the plan knows it."""
        result = self.judged.results.get(name)
        if result is None or isinstance(result, tuple | Constant):
            return None
        return Interface(name, result.shape, result.element if isinstance(result, Value) else "f32")

    def shape_of(self, name: str) -> Shape | None:
        """That of `name`, None where it is not known."""
        known = self.interface(name)
        if known is not None:
            return known.shape
        return self.known[name].shape if name in self.known else None

    def module_of(self, part: Part, planner: Planner[Any], planned: Planned) -> ir.Module:
        """The module of a part that `planner` has planned; raises as `Division.module`."""
        if planner.unsupported:
            reasons = refused_nodes(part, self.nodes, planner.reasons, planner.interface_reasons)
            raise PartRefusedError(reasons or dict.fromkeys(part.nodes, planner.unsupported[0]))
        return module_of(planned, self.name, None)
