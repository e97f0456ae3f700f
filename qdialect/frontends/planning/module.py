"""From a plan to a verified module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qdialect._mlir import func, ir
from qdialect.context import make_context, verify
from qdialect.diagnostics import Diagnostic, ImportModelError, Severity, VerificationError
from qdialect.dialect import ConstraintError
from qdialect.dialect.op_base import BuildError
from qdialect.frontends.budget import Budget
from qdialect.frontends.common import Interface, UnsupportedError, converting, unsupported_interfaces
from qdialect.frontends.planning.emitter import Emitter, Value


class ValueRefusedError(ImportModelError):
    """What is planned cannot be built: `value` names it, and is empty where that is not known."""

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
    """What the function takes, every value it computes in order, and what it gives by the names of the model."""

    arguments: tuple[Value, ...]
    values: tuple[Value, ...]
    results: tuple[tuple[str, Value], ...]
    budget: Budget | None = None
    """Of the constants that ops are built with; without one they are as large as they are."""


def arguments_of(
    inputs: Sequence[Interface], elements: Sequence[str], unsupported: list[str], *, may_be_empty: bool = False
) -> tuple[Value, ...]:
    """The values of a graph's inputs; those of other types than `elements` are added to `unsupported`."""
    unsupported += unsupported_interfaces("input", inputs, elements, may_be_empty=may_be_empty)
    return tuple(Value(tensor.name, tensor.shape, tensor.element) for tensor in inputs)


def result_of(
    name: str,
    plan: Callable[[], Value],
    elements: Sequence[str],
    unsupported: list[str],
    *,
    may_be_empty: bool = False,
) -> tuple[tuple[str, Value], ...]:
    """The output `name` that `plan` gives; one that is unsupported is added to `unsupported` instead."""
    try:
        value = plan()
    except UnsupportedError as error:
        unsupported.append(f"output '{name}': {error}")
        return ()
    unsupported += unsupported_interfaces("output", [_interface(name, value)], elements, may_be_empty=may_be_empty)
    return ((name, value),)


def module_of(planned: Planned, name: str, context: ir.Context | None) -> ir.Module:
    """A verified module with one public function ``@main``; `name` is what messages call the model.

    Raises `ValueRefusedError` where ops do not hold what the model says.
    """
    with context or make_context(), ir.Location.file(name, 0, 0):
        try:
            module = _build(planned, name)
            verify(module)
        except VerificationError as error:
            raise ValueRefusedError.of(name, "", error.message) from error
    return module


def _build(planned: Planned, name: str) -> ir.Module:
    module = ir.Module.create()
    emitter = Emitter(name, planned.budget)
    inputs = [_interface(value.name, value) for value in planned.arguments]
    block = emitter.function(module, inputs, [_interface(*result) for result in planned.results])
    for value, argument in zip(planned.arguments, block.arguments, strict=True):
        emitter.define(value, argument)
    with ir.InsertionPoint(block):
        for value in planned.values:
            _emit(emitter, value, name)
        func.ReturnOp([emitter.to_channels_first(value) for _, value in planned.results])
    return module


def _emit(emitter: Emitter, value: Value, name: str) -> None:
    try:
        with converting():
            emitter.emit(value)
    except (ConstraintError, BuildError, UnsupportedError) as error:
        raise ValueRefusedError.of(name, value.name, str(error)) from error


def _interface(name: str, value: Value) -> Interface:
    return Interface(name, value.shape, value.element)
