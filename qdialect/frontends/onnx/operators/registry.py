"""How a node becomes tensors: a planner checks it and gives the meaning of its output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from qdialect.arithmetic.profiles import ORT
from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.frontends.building.checks import Array, NoAlternativeError, Shape, UnsupportedError, require
from qdialect.frontends.onnx.model import Node
from qdialect.frontends.onnx.qdq_groups import GroupKernel
from qdialect.frontends.onnx.schema import check_type, type_name
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.elementwise import value_of_tensor
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.movement import Movement, Reshaping, move_value
from qdialect.support.registry import Registry

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """A node with what its inputs stand for, None where one is omitted."""

    plan: tensors.Plan
    node: Node
    inputs: tuple[tensors.Tensor | None, ...]
    kernel: GroupKernel = GroupKernel.OF_TYPE
    """Of its QDQ group, if it is in one."""
    declared: Mapping[str, Shape] = field(default_factory=dict[str, Shape])
    """The shapes that the model declares for its outputs, where all extents are known or those of inputs."""

    @property
    def name(self) -> str:
        """The name of the first output that is not omitted."""
        return next(filter(None, self.node.outputs))

    def moved(self, value: Value, movement: Movement) -> Value:
        """Integers or floats, moved."""
        return move_value(self.plan, self.name, value, movement, None)

    def shaped(self, value: Value, shape: Shape) -> Value:
        """`value` with another shape of the same number of elements."""
        return self.moved(value, Reshaping(shape))

    def with_input(self, index: int, tensor: tensors.Tensor) -> Call:
        """The same node with another tensor as input `index`."""
        return replace(self, inputs=(*self.inputs[:index], tensor, *self.inputs[index + 1 :]))

    def count(self, minimum: int, maximum: int | None = None) -> None:
        """The node has `minimum` to `maximum` inputs."""
        maximum = maximum or minimum
        wanted = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
        found = len(self.inputs)
        require(minimum <= found <= maximum, f"must have {wanted} inputs, but got {found}")

    def optional(self, index: int) -> tensors.Tensor | None:
        """Input `index`, or None where it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def tensor(self, index: int) -> tensors.Tensor:
        """Input `index`, which must not be omitted."""
        tensor = self.optional(index)
        if tensor is None:
            raise UnsupportedError(f"input {index} must not be omitted")
        return tensor

    def f32(self, index: int) -> tensors.F32Tensor:
        """Input `index` as f32 values; a constant is computed by nothing."""
        tensor = self.tensor(index)
        if isinstance(tensor, tensors.Constant):
            require(tensor.array.dtype == "float32", f"input {index} must be f32, but got {tensor.array.dtype}")
            return tensors.Computed(tensor.array.shape, Value(self.name, tensor.array.shape, "f32", data=tensor.array))
        if isinstance(tensor, Value):
            raise UnsupportedError(f"input {index} must be f32, but got {tensor.element}")
        return tensor

    def quantized(self, index: int) -> Quantized:
        """Input `index`, which must be what a DequantizeLinear gives."""
        tensor = self.tensor(index)
        if not isinstance(tensor, Quantized):
            raise UnsupportedError(f"input {index} must come from a DequantizeLinear")
        return tensor

    def value(self, index: int) -> Value:
        """Input `index` as integers."""
        tensor = self.tensor(index)
        if isinstance(tensor, tensors.Constant):
            return tensors.known(self.name, tensor.array)
        if isinstance(tensor, tensors.F32Tensor):
            raise UnsupportedError(f"input {index} must be integers, but got f32")
        return tensor

    def constant(self, index: int) -> Array:
        """Input `index`, which must be known; constant quantized values that are dequantized are."""
        array = tensors.known_array(self.tensor(index))
        if array is None:
            raise UnsupportedError(f"input {index} must be constant")
        return array

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

    def flag(self, name: str, default: int) -> bool:
        """An attribute that must be 0 or 1: of other integers, some kernels take 1 alone for true."""
        value = self.attribute(name, default)
        require(value in (0, 1), f"attribute '{name}' must be 0 or 1, but is {value}")
        return value == 1

    def ignore(self, *names: str) -> None:
        """Attributes of these names do not change what the node gives."""
        for name in names:
            self.node.attributes.get(name)


def value_of(call: Call, index: int) -> Value:
    """Input `index` as a value of its own element type; the result of a DequantizeLinear is f32."""
    return value_of_tensor(call, call.tensor(index))


def number_of(tensor: tensors.Tensor, what: str) -> float:
    """The one entry of a tensor that must be known."""
    array = tensors.known_array(tensor)
    if array is None:
        raise UnsupportedError(f"{what} must be constant")
    require(array.size == 1, f"{what} must have 1 entry, but got {array.size}")
    require(array.dtype.kind in "biuf", f"{what} must be a number, but got {array.dtype}")
    return float(array.ravel()[0])


Planner = Callable[[Call], tensors.Tensor | tuple[tensors.Tensor, ...]]
"""Checks a node against what the front end can express and gives the meaning of its output, or of each of its outputs.

Raises `UnsupportedError`.
"""

F32Planner = Callable[[Call], tensors.Computed]
"""A planner that computes in float32 whatever the inputs are."""

_PLANNERS = Registry[Planner]("importer", "qdialect.frontends.onnx.operators")
_F32_PLANNERS = Registry[F32Planner]("float importer", "qdialect.frontends.onnx.operators")
_INTEGER_PLANNERS = Registry[Planner]("integer importer", "qdialect.frontends.onnx.operators")


imports = _PLANNERS.register
"""Registers the decorated planner for operators by their names, those of other domains with the domain in front."""
imports_f32 = _F32_PLANNERS.register
"""As `imports`, for what operators compute in float32 where no integer op expresses them."""
imports_integers = _INTEGER_PLANNERS.register
"""As `imports`, for what operators compute where input 0 is integers or booleans."""


def planner_of(kind: str) -> Planner:
    """The planner of an operator; raises `UnsupportedError` where there is none."""
    quantized, integers = _quantized_planner(kind), _INTEGER_PLANNERS.get(kind)
    return quantized if integers is None else _by_element(quantized, integers)


def _by_element(planner: Planner, integers: Planner) -> Planner:
    return lambda call: integers(call) if call.inputs and _is_integers(call.inputs[0]) else planner(call)


def _is_integers(tensor: tensors.Tensor | None) -> bool:
    return isinstance(tensor, Value) or (isinstance(tensor, tensors.Constant) and tensor.array.dtype.kind in "iub")


def _quantized_planner(kind: str) -> Planner:
    planner, f32 = _PLANNERS.get(kind), _F32_PLANNERS.get(kind)
    if planner is not None:
        return planner if f32 is None else _either(planner, f32)
    if f32 is None:
        raise UnsupportedError("operator is not supported")
    return f32


def _either(planner: Planner, f32: F32Planner) -> Planner:
    """An integer op where there is one for the node's inputs, else float32, which is also what floats are made by."""

    def plan(call: Call) -> tensors.Tensor | tuple[tensors.Tensor, ...]:
        if call.kernel is GroupKernel.F32:
            return f32(call)
        try:
            qdq_group = planner(call)
        except NoAlternativeError:
            raise
        except UnsupportedError as error:
            has_f32 = any(isinstance(tensor, tensors.Computed) for tensor in call.inputs)
            return f32(call) if has_f32 else _unless_refused(error, lambda: f32(call))
        if isinstance(qdq_group, Quantized) or not isinstance(qdq_group, tensors.F32Tensor):
            return qdq_group
        return Computable(qdq_group.shape, qdq_group, call, f32)

    return plan


def _unless_refused(error: UnsupportedError, alternative: Callable[[], T]) -> T:
    """The result of `alternative`; where it is refused too, the first reason stands."""
    try:
        return alternative()
    except UnsupportedError:
        raise error from None


@dataclass(frozen=True, eq=False)
class Computable(tensors.F32Tensor):
    """The result of a node: `qdq_group` where its quantized values are asked for, float32 where its f32 values are."""

    qdq_group: tensors.F32Tensor
    call: Call
    planner: F32Planner

    def nan_of(self, plan: tensors.Plan) -> Sequence[tensors.F32Tensor]:
        return (self.qdq_group,)

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        try:
            return self.qdq_group.quantized(plan, name, to)
        except UnsupportedError as error:
            return _unless_refused(error, lambda: tensors.quantize(plan, name, self._computed(), to))

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        try:
            return self.qdq_group.f32(plan, name)
        except UnsupportedError as error:
            return _unless_refused(error, self._computed)

    def _table(self) -> tensors.Table | None:
        return self.qdq_group.table()

    def _computed(self) -> Value:
        return self.planner(self.call).value


def supported_operators() -> tuple[str, ...]:
    """Names of all operators with a planner, sorted."""
    return tuple(sorted(_PLANNERS.keys() | _F32_PLANNERS.keys() | _INTEGER_PLANNERS.keys()))


# The kinds of planned tensors that only ONNX Runtime has.


class Quantized(tensors.Quantized):
    """The result of a DequantizeLinear."""

    profile = ORT


class AccumulatorBias(Quantized):
    """An i32 bias that an integer kernel adds to its accumulators as it is."""


def clamp_integers(plan: tensors.Plan, name: str, source: Value, minimum: float, maximum: float) -> Value:
    """8-bit integers between two bounds."""
    low, high = ELEMENT_RANGES[source.element]
    return tensors.clip(plan, name, source, *(int(min(max(bound, low), high)) for bound in (minimum, maximum)))


# Operators that are made of others: the result of one of these stands for a part of the node.

_VERSION = 13
"""The operator set whose form of the parts is meant."""


def part_of(call: Call, kind: str, operands: Sequence[tensors.Tensor], **attributes: Any) -> tensors.Tensor:
    """The result of the operator `kind` of operator set 13, which has one output, for `operands`."""
    node = replace(call.node, kind=kind, attributes=attributes, version=_VERSION)
    found = planner_of(kind)(Call(call.plan, node, tuple(operands)))
    assert not isinstance(found, tuple)
    return found


# What operators compute in float32.


def computed(call: Call, shape: Shape, operands: Sequence[int], build: tensors.BuildOrdered) -> tensors.Computed:
    """An f32 value that `build` makes of the inputs `operands`, in the model's order of dimensions."""
    values = [call.f32(index).f32(call.plan, call.name) for index in operands]
    return tensors.Computed(shape, call.plan.ordered(call.name, shape, "f32", values, build))
