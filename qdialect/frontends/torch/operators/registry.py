"""How a node becomes tensors: a planner checks it and gives the meanings of its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from qdialect.frontends.building.checks import Array, UnsupportedError, require
from qdialect.frontends.planning.block_weights import BlockQuantized
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Computed, Constant, F32Tensor, Plan, Tensor, known_array
from qdialect.frontends.torch.operators.tensors import Quantized
from qdialect.frontends.torch.program.model import Node, Output, Ref, held_element
from qdialect.frontends.torch.program.pytorch_operators import parameters_of, schema_of
from qdialect.support.registry import Registry

OF_NO_EFFECT = frozenset(
    [
        *("copy", "device", "layout", "memory_format", "non_blocking", "pin_memory"),
        *("cudnn_enable", "cudnn_enabled", "implicit", "sorted"),
        *("dropout", "generator", "momentum", "p", "scale_grad_by_freq", "sparse", "sparse_grad"),
    ]
)
"""Arguments that change no number of an inference: where results lie, who computes them, and what training needs."""
NOTED = frozenset(
    [
        *("dtype", "half_to_float", "out_dtype", "output_dtype"),
        *("chunks", "end_dim", "shape", "size", "sizes", "split_size", "split_sizes", "start_dim"),
    ]
)
"""Arguments that set the type and shape of results: programs record these for every result, and both are checked."""


@dataclass(frozen=True)
class Call:
    """A node with what the names among its arguments stand for."""

    plan: Plan
    node: Node
    results: Mapping[str, Result]
    noted: Mapping[str, Output]
    """The program's metadata of tensors, by their names."""
    taken: Collection[int] | None = None
    """Which results others read, of an operator that gives several; None where that is not known."""
    names_read: set[str] = field(default_factory=set[str])
    """The arguments that the planner has asked for."""

    @property
    def name(self) -> str:
        """The program's name of the node."""
        return self.node.label

    def given(self, name: str) -> Any:
        """An argument as the node has it, None where it is left out."""
        self.names_read.add(name)
        return self.node.arguments.get(name)

    def ignore(self, *names: str) -> None:
        """Arguments that the operator has and does not compute with."""
        self.names_read.update(names)

    def check_read(self) -> None:
        """Every argument that changes the result has been asked for, or is the one that is taken where none is given.

        Raises `UnsupportedError` for another, which names it.
        """
        if schema_of(self.node.kind) is None:
            return
        for parameter in parameters_of(self.node.kind):
            value = self.node.arguments.get(parameter.name, parameter.default)
            ignored = parameter.name in self.names_read or parameter.name in OF_NO_EFFECT or parameter.name in NOTED
            holds = ignored or parameter.is_default(value)
            wanted = f"be {parameter.default}" if parameter.has_default else "not be there"
            require(holds, f"argument '{parameter.name}' must {wanted}, but got {value}")

    def argument(self, name: str) -> Any:
        """An argument that is no tensor, None where it is left out."""
        value = self.given(name)
        require(not isinstance(value, Ref), f"argument '{name}' must be constant")
        return value

    def integers(self, name: str, count: int) -> tuple[int, ...]:
        """An argument of `count` integers; a single integer is repeated."""
        value = self.argument(name)
        values = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
        values = values * count if len(values) == 1 else values
        holds = len(values) == count and all(isinstance(entry, int) for entry in values)
        require(holds, f"argument '{name}' must be {count} integers, but got {value}")
        return values

    def dimensions(self, name: str) -> tuple[int, ...]:
        """An argument of one integer or several."""
        value = self.argument(name)
        values = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
        require(all(isinstance(one, int) for one in values), f"argument '{name}' must be integers, but got {value}")
        return values

    def reads(self, name: str) -> str | None:
        """The name of the tensor that an argument is; None where it is a number or left out."""
        value = self.given(name)
        return value.name if isinstance(value, Ref) else None

    def result(self, name: str) -> Result | None:
        """The value of an argument; None where it is left out."""
        value = self.given(name)
        if isinstance(value, Ref):
            return self.results[value.name]
        return None if value is None else Constant(np.asarray(value))

    def tensor(self, name: str) -> Tensor:
        """An argument that is one tensor; a number is a constant."""
        found = self.result(name)
        if found is None or isinstance(found, tuple):
            raise UnsupportedError(f"argument '{name}' must be a tensor")
        return found

    def tensors(self, name: str) -> tuple[Tensor, ...]:
        """An argument that is a list of tensors."""
        given = self.given(name)
        refs = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else ()
        found = [self.results[ref.name] for ref in refs if isinstance(ref, Ref)]
        require(len(found) == len(refs) > 0, f"argument '{name}' must be a list of tensors")
        return tuple(tensor for tensor in found if not isinstance(tensor, tuple))

    def f32(self, name: str) -> F32Tensor:
        """An argument as f32 values."""
        return as_f32(name, self.tensor(name))

    def quantized(self, name: str) -> Quantized:
        """An argument that has just been dequantized."""
        found = self.tensor(name)
        if not isinstance(found, Quantized):
            raise UnsupportedError(f"argument '{name}' must be what a dequantize gives, but it is computed in f32")
        return found

    def constant(self, name: str) -> Array:
        """An argument that is known."""
        found = self.tensor(name)
        array = known_array(found) if isinstance(found, Constant | BlockQuantized) else None
        if array is None:
            raise UnsupportedError(f"argument '{name}' must be constant")
        require(not array.dtype.names, f"argument '{name}' must not be {held_element(array)}")
        return array


def as_f32(name: str, tensor: Tensor) -> F32Tensor:
    """A tensor as f32 values; a constant is computed by nothing."""
    if isinstance(tensor, Constant):
        require(tensor.array.dtype == np.float32, f"argument '{name}' must be f32, but got {tensor.array.dtype}")
        return Computed(tensor.shape, Value(name, tensor.shape, "f32", data=tensor.array))
    if isinstance(tensor, Value):
        raise UnsupportedError(f"argument '{name}' must be f32, but got {tensor.element}")
    return tensor


Planner = Callable[[Call], Result]
"""Checks a node against what the front end can express; raises `UnsupportedError`."""

_PLANNERS = Registry[Planner]("importer", "qdialect.frontends.torch.operators")
_PLAIN_PLANNERS = Registry[Planner]("plain importer", "qdialect.frontends.torch.operators")


def imports(*kinds: str) -> Callable[[Planner], Planner]:
    """Register the decorated planner for operators by their names with overload; those without namespace are aten's."""
    return _PLANNERS.register(*(kind if kind.count(".") > 1 or "." not in kind else f"aten.{kind}" for kind in kinds))


def imports_plain(*kinds: str) -> Callable[[Planner], Planner]:
    """As `imports`, for what operators compute where a tensor among their operands is integers or booleans."""
    return _PLAIN_PLANNERS.register(*(f"aten.{kind}" for kind in kinds))


def planner_of(kind: str) -> Planner:
    """The planner of an operator; raises `UnsupportedError` where there is none."""
    planner, plain = _PLANNERS.get(kind), _PLAIN_PLANNERS.get(kind)
    if plain is not None:
        return plain if planner is None else _by_element(planner, plain)
    if planner is None:
        raise UnsupportedError("operator is not supported")
    return planner


def _by_element(planner: Planner, plain: Planner) -> Planner:
    return lambda call: plain(call) if any(map(_is_plain, call.results.values())) else planner(call)


def _is_plain(result: Result) -> bool:
    if isinstance(result, Constant):
        return result.array.dtype.kind in "iub"
    return isinstance(result, Value)


def is_supported(kind: str) -> bool:
    """Whether an operator has a planner."""
    return kind in _PLANNERS or kind in _PLAIN_PLANNERS


def supported_operators() -> tuple[str, ...]:
    """Names of all operators with a planner, sorted."""
    return tuple(sorted(_PLANNERS.keys() | _PLAIN_PLANNERS.keys()))
