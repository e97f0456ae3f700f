"""Builds the verified module of a plan: which values are held, in which order of dimensions, and constants."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from qdialect.dialect import ConstraintError
from qdialect.dialect.op_base import BuildError
from qdialect.frontends.building import checks
from qdialect.frontends.building.op_builder import OpBuilder
from qdialect.ir._mlir import func, ir
from qdialect.ir.context import file_location, make_context, verify
from qdialect.support.diagnostics import Diagnostic, ImportModelError, Severity, VerificationError


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor that the module holds, with the shape the model gives it: an argument, a constant or what ops compute.

    `name` is the model's for it; `data` is what a constant holds, `emission` builds what is computed.
    """

    name: str
    shape: checks.Shape
    element: str
    data: checks.Array | None = None
    emission: Emission | None = None


Emitted = tuple[ir.Value, bool]
"""The result of an emission, and whether its channels, dimension 1 of the model, come last."""


class Emitter(OpBuilder):
    """The values emitted so far, and the location of the value being emitted.

    Convolutions and pools want the channels last; element-wise ops take what they get.  So a value may be held both
    ways, and a transpose is built where the other way is wanted first.
    """

    def __init__(self, file_name: str, budget: checks.Budget | None) -> None:
        super().__init__(file_name, budget)
        self._channels_first: dict[Value, ir.Value] = {}
        self._channels_last: dict[Value, ir.Value] = {}

    def define(self, value: Value, held: ir.Value) -> None:
        """`held` is the argument `value`."""
        self._channels_first[value] = held

    def emit(self, value: Value) -> None:
        """Build what computes `value`; an argument or a constant needs nothing."""
        if value.emission is None:
            return
        self.enter(value.name)
        held, is_channels_last = value.emission(self)
        (self._channels_last if is_channels_last else self._channels_first)[value] = held

    def to_channels_first(self, value: Value) -> ir.Value:
        """`value` with the model's order of dimensions."""
        if value not in self._channels_first:
            if value.data is not None:
                self._channels_first[value] = self.constant(value.data)
            else:
                self._channels_first[value] = self.transpose(
                    self._channels_last[value], channels_first(len(value.shape))
                )
        return self._channels_first[value]

    def last(self, value: Value) -> ir.Value:
        """`value` with its channels last."""
        order = channels_last(len(value.shape))
        if value not in self._channels_last:
            if value.data is not None:
                self._channels_last[value] = self.constant(value.data.transpose(order))
            else:
                self._channels_last[value] = self.transpose(self._channels_first[value], order)
        return self._channels_last[value]

    def either(self, value: Value) -> Emitted:
        """`value` as it is held; with its channels last where it is held both ways."""
        return (
            (self._channels_last[value], True)
            if value in self._channels_last
            else (self.to_channels_first(value), False)
        )

    def alike(self, values: Sequence[Value]) -> tuple[list[ir.Value], bool]:
        """Operands that broadcast, all with their channels last where one of the highest rank is held so."""
        rank = max(len(value.shape) for value in values)
        is_channels_last = any(value in self._channels_last and len(value.shape) == rank for value in values)
        if not is_channels_last:
            return [self.to_channels_first(value) for value in values], False
        return [self._last_of_rank(value, rank) for value in values], True

    def _last_of_rank(self, value: Value, rank: int) -> ir.Value:
        if len(value.shape) == rank:
            return self.last(value)
        shape = (1,) * (rank - len(value.shape)) + value.shape
        if value.data is not None:
            return self.constant(value.data.reshape(shape).transpose(channels_last(rank)))
        return self.transpose(self.reshape(self.to_channels_first(value), shape), channels_last(rank))


Emission = Callable[[Emitter], Emitted]
"""Builds the ops of a value and gives its last one's result."""


def channels_last(rank: int) -> tuple[int, ...]:
    """The order of dimensions that puts dimension 1 last."""
    return (0, *range(2, rank), 1)


def channels_first(rank: int) -> tuple[int, ...]:
    """The order of dimensions that undoes `channels_last`."""
    return (0, rank - 1, *range(1, rank - 1))


# Values that are computed when they are asked for: once each, and without recursion over the graph.

Compute = Callable[[], Value]


class _WantedError(Exception):
    """A computation asks for a value that is not computed yet; it starts again when that is there."""

    def __init__(self, key: Hashable, compute: Compute) -> None:
        super().__init__()
        self.key = key
        self.compute = compute


@dataclass
class Demands:
    """The answers so far, and the values that computations have appended to `values`.

    A computation that asks for a value which is not known is abandoned, the value is computed, and the computation
    starts again; so the stack is a list, however long the chain of those that ask.  A computation may ask as often as
    it likes before it appends a value of its own; the ops of an abandoned one are removed.
    """

    values: list[Value]
    _answers: dict[Hashable, Value | str] = field(default_factory=dict[Hashable, "Value | str"])
    _is_running: bool = False

    def ask(self, key: Hashable, compute: Compute) -> Value:
        """The cached result of `compute` for `key`; raises the same `UnsupportedError` again if it raised one."""
        if key not in self._answers:
            if self._is_running:
                raise _WantedError(key, compute)
            self._run(key, compute)
        answer = self._answers[key]
        if isinstance(answer, str):
            raise checks.UnsupportedError(answer)
        return answer

    def _run(self, key: Hashable, compute: Compute) -> None:
        self._is_running = True
        waiting = [(key, compute)]
        try:
            while waiting:
                self._advance(waiting)
        finally:
            self._is_running = False

    def _advance(self, waiting: list[tuple[Hashable, Compute]]) -> None:
        """Compute what was asked for last, or put in front of it what it asks for itself."""
        key, compute = waiting[-1]
        before = len(self.values)
        try:
            self._answers[key] = compute()
        except _WantedError as wanted:
            del self.values[before:]
            waiting.append((wanted.key, wanted.compute))
            return
        except checks.UnsupportedError as error:
            del self.values[before:]
            self._answers[key] = str(error)
        waiting.pop()


# From a plan to a verified module.


class ValueRefusedError(ImportModelError):
    """A planned value cannot be built: `value` is its name, empty if that is not known."""

    value: str = ""

    @classmethod
    def of(cls, name: str, value: str, reason: str) -> ValueRefusedError:
        """The error for a model that messages call `name`."""
        what = f"'{value}' cannot be computed: {reason}" if value else reason
        message = f"'{name}': {what}"
        error = cls(message, (Diagnostic(Severity.ERROR, message, notes=(Diagnostic(Severity.NOTE, what),)),))
        error.value = value
        return error


@dataclass(frozen=True)
class Planned:
    """The function's arguments, every value it computes in order, and its results by the names of the model."""

    arguments: tuple[Value, ...]
    values: tuple[Value, ...]
    results: tuple[tuple[str, Value], ...]
    budget: checks.Budget | None = None
    """Of the constants that ops are built with; without one they are as large as they are."""
    states: Mapping[str, checks.State] = field(default_factory=dict[str, checks.State])
    """Arguments that are results of the call before."""


def module_of(planned: Planned, name: str, context: ir.Context | None) -> ir.Module:
    """A verified module with one public function ``@main``; `name` is what messages call the model.

    Raises `ValueRefusedError` where ops cannot represent the model's values.
    """
    with context or make_context(), file_location(name):
        try:
            module = _build(planned, name)
            verify(module)
        except VerificationError as error:
            raise ValueRefusedError.of(name, "", error.message) from error
    return module


def _build(planned: Planned, name: str) -> ir.Module:
    module = ir.Module.create()
    emitter = Emitter(name, planned.budget)
    inputs = [
        replace(_interface(value.name, value), state=planned.states.get(value.name)) for value in planned.arguments
    ]
    block = emitter.function(module, inputs, [_interface(*result) for result in planned.results])
    for value, argument in zip(planned.arguments, block.arguments, strict=True):
        emitter.define(value, argument)
    with ir.InsertionPoint(block):
        for value in planned.values:
            try:
                with checks.converting():
                    emitter.emit(value)
            except (ConstraintError, BuildError, checks.UnsupportedError) as error:
                raise ValueRefusedError.of(name, value.name, str(error)) from error
        func.ReturnOp([emitter.to_channels_first(value) for _, value in planned.results])
    return module


def _interface(name: str, value: Value) -> checks.Interface:
    return checks.Interface(name, value.shape, value.element)
