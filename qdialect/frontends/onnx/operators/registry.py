"""How a node becomes tensors: a planner checks it and says what its output stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from qdialect.frontends.common import Array, UnsupportedError, require
from qdialect.frontends.onnx.model import Node
from qdialect.frontends.onnx.schema import check_type, type_name
from qdialect.frontends.onnx.tensors import Computed, Parameters, Quantized, Real, Table, Tensor, quantize
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.tensors import Constant, Plan, known
from qdialect.registry import Registry

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """A node with what its inputs stand for, None where one is omitted."""

    plan: Plan
    node: Node
    inputs: tuple[Tensor | None, ...]

    @property
    def name(self) -> str:
        """The name of the first output that is not omitted."""
        return next(filter(None, self.node.outputs))

    def count(self, least: int, most: int | None = None) -> None:
        """The node has `least` to `most` inputs."""
        most = most or least
        wanted = str(least) if least == most else f"{least} to {most}"
        found = len(self.inputs)
        require(least <= found <= most, f"must have {wanted} inputs, but got {found}")

    def optional(self, index: int) -> Tensor | None:
        """Input `index`, or None where it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def tensor(self, index: int) -> Tensor:
        """Input `index`, which must not be omitted."""
        tensor = self.optional(index)
        if tensor is None:
            raise UnsupportedError(f"input {index} must not be omitted")
        return tensor

    def real(self, index: int) -> Real:
        """Input `index` as real numbers; a constant is computed by nothing."""
        tensor = self.tensor(index)
        if isinstance(tensor, Constant):
            require(tensor.array.dtype == "float32", f"input {index} must be f32, but got {tensor.array.dtype}")
            return Computed(tensor.array.shape, Value(self.name, tensor.array.shape, "f32", data=tensor.array))
        if isinstance(tensor, Value):
            raise UnsupportedError(f"input {index} must be f32, but got {tensor.element}")
        return tensor

    def quantized(self, index: int) -> Quantized:
        """Input `index`, which must be what a DequantizeLinear gives."""
        tensor = self.tensor(index)
        if not isinstance(tensor, Quantized):
            raise UnsupportedError(f"input {index} must come from a DequantizeLinear")
        return tensor

    def codes(self, index: int) -> Value:
        """Input `index` as integers."""
        tensor = self.tensor(index)
        if isinstance(tensor, Constant):
            return known(self.name, tensor.array)
        if isinstance(tensor, Real):
            raise UnsupportedError(f"input {index} must be integers, but got f32")
        return tensor

    def constant(self, index: int) -> Array:
        """Input `index`, which must be known."""
        tensor = self.tensor(index)
        if not isinstance(tensor, Constant):
            raise UnsupportedError(f"input {index} must be constant")
        return tensor.array

    def integers(self, index: int) -> tuple[int, ...]:
        """The entries of input `index`, which must be known integers."""
        array = self.constant(index)
        require(array.dtype.kind in "iu", f"input {index} must be integers, but got {array.dtype}")
        return tuple(array.ravel().tolist())

    def number(self, index: int) -> float:
        """The one entry of input `index`, which must be known."""
        return number_of(self.tensor(index), f"input {index}")

    def attribute(self, name: str, default: T) -> T:
        """An attribute of the node, which must have the type of `default`; an empty list is one of integers."""
        value = self.node.attributes.get(name, default)
        check_type(name, value, "INTS" if default == [] else type_name(default))
        return value


def number_of(tensor: Tensor, what: str) -> float:
    """The one entry of a tensor that must be known."""
    if not isinstance(tensor, Constant):
        raise UnsupportedError(f"{what} must be constant")
    require(tensor.array.size == 1, f"{what} must have 1 entry, but got {tensor.array.size}")
    require(tensor.array.dtype.kind in "biuf", f"{what} must be a number, but got {tensor.array.dtype}")
    return float(tensor.array.ravel()[0])


Planner = Callable[[Call], Tensor | tuple[Tensor, ...]]
"""Checks a node against what the front end can express and says what its output stands for, or each of its outputs.

Raises `UnsupportedError`.
"""

RealPlanner = Callable[[Call], Computed]
"""A planner that computes in float32 whatever the inputs are."""

_PLANNERS = Registry[Planner]("importer")
_REAL_PLANNERS = Registry[RealPlanner]("float importer")


def imports(*kinds: str) -> Callable[[Planner], Planner]:
    """Register the decorated planner for operators by their names, those of other domains with the domain in front."""

    def register(planner: Planner) -> Planner:
        _PLANNERS.add(kinds, planner)
        return planner

    return register


def imports_reals(*kinds: str) -> Callable[[RealPlanner], RealPlanner]:
    """Register the decorated planner for what operators compute in float32 where no integer op expresses them."""

    def register(planner: RealPlanner) -> RealPlanner:
        _REAL_PLANNERS.add(kinds, planner)
        return planner

    return register


def planner_of(kind: str) -> Planner:
    """The planner of an operator; raises `UnsupportedError` where there is none."""
    planner, real = _PLANNERS.get(kind), _REAL_PLANNERS.get(kind)
    if planner is not None:
        return planner if real is None else _either(planner, real)
    if real is None:
        raise UnsupportedError("operator is not supported")
    return real


def _either(planner: Planner, real: RealPlanner) -> Planner:
    """An integer op where there is one for the node's inputs, else float32, which is also what floats are made by."""

    def plan(call: Call) -> Tensor | tuple[Tensor, ...]:
        try:
            unit = planner(call)
        except UnsupportedError as error:
            has_reals = any(isinstance(tensor, Computed) for tensor in call.inputs)
            return real(call) if has_reals else _unless_refused(error, lambda: real(call))
        return Computable(unit.shape, unit, call, real) if isinstance(unit, Real) else unit

    return plan


def _unless_refused(error: UnsupportedError, alternative: Callable[[], T]) -> T:
    """What `alternative` gives; where it is refused too, the first reason stands."""
    try:
        return alternative()
    except UnsupportedError:
        raise error from None


@dataclass(frozen=True, eq=False)
class Computable(Real):
    """What a node gives: `unit` where its codes are asked for, float32 where its real numbers are."""

    unit: Real
    call: Call
    planner: RealPlanner

    def _quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        try:
            return self.unit.quantized(plan, name, to)
        except UnsupportedError as error:
            return _unless_refused(error, lambda: quantize(plan, name, self._computed(), to))

    def _real(self, plan: Plan, name: str) -> Value:
        try:
            return self.unit.real(plan, name)
        except UnsupportedError as error:
            return _unless_refused(error, self._computed)

    def _table(self) -> Table | None:
        return self.unit.table()

    def _computed(self) -> Value:
        return self.planner(self.call).value


def supported_operators() -> tuple[str, ...]:
    """Names of all operators with a planner, sorted."""
    return tuple(sorted(_PLANNERS.keys() | _REAL_PLANNERS.keys()))
