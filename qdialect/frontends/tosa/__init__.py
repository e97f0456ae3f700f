"""Text of MLIR, with networks in upstream's `tosa` dialect or in `qnn` already: from `tosa` ops to a `qnn` module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from qdialect.frontends.building.checks import GraphNode, refuse
from qdialect.ir._mlir import ir
from qdialect.ir.context import names_of, parse, verify
from qdialect.passes.import_tosa import UnsupportedOp, converted, has_tosa
from qdialect.passes.tosa import converted_ops
from qdialect.support.diagnostics import Diagnostic

__all__ = ["import_tosa", "nodes_of", "supported_operators"]


_CONSTANTS = ("tosa.const", "tosa.const_shape")


def import_tosa(source: str | Path, context: ir.Context | None = None) -> ir.Module:
    """A verified `qnn` module from MLIR text, or from a file, with functions of `tosa` ops.

    What is no `tosa` op stays as it is, so that a `qnn` module is itself.  Every op is located at the number of the
    value it computes, over its position in the text; `qdialect.passes.import_tosa` describes what becomes of it.

    Raises `ParseError` for text that is no MLIR and `ImportModelError` for ops that the dialect cannot express; then
    every such op is a note.
    """
    module = parse(source, context)
    with module.context:
        functions = [op.operation for op in module.body.operations if has_tosa(op.operation)]
        for function in functions:
            for name, op in _named(function):
                op.location = ir.Location.name(name, op.location)
    unsupported = converted(module)
    refuse(_name_of(source), [_note(one) for one in unsupported])
    if functions:
        verify(module)
    return module


def nodes_of(source: str | Path) -> tuple[GraphNode, ...]:
    """The `tosa` ops of a file but constants, supported or not; raises `ParseError` for text that is no MLIR."""
    module = parse(source)
    functions = [op.operation for op in module.body.operations if has_tosa(op.operation)]
    return tuple(node for function in functions for node in _nodes(function))


def supported_operators() -> Sequence[str]:
    """The names of the `tosa` ops that can be imported."""
    return [name.removeprefix("tosa.") for name in converted_ops()]


def _nodes(function: ir.Operation) -> Iterator[GraphNode]:
    arguments = function.regions[0].blocks[0].arguments
    names: dict[ir.Value, str] = {argument: f"%arg{number}" for number, argument in enumerate(arguments)}
    names.update((op.results[0], name) for name, op in _named(function))
    for name, op in _named(function):
        if op.name.startswith("tosa.") and op.name not in _CONSTANTS:
            inputs = tuple(names.get(operand, "") for operand in op.operands)
            yield GraphNode(f"{op.name} {name}", op.name, inputs, (name,))


def _named(function: ir.Operation) -> Iterator[tuple[str, ir.Operation]]:
    """The ops with a result, each with the number that the printed module gives it."""
    operations = [op.operation for op in function.regions[0].blocks[0].operations]
    for number, op in enumerate(op for op in operations if len(op.results) == 1):
        yield f"%{number}", op


def _note(one: UnsupportedOp) -> Diagnostic:
    return replace(one.note(), message=f"{_title(one.kind, one.location)}: {one.reason}")


def _title(kind: str, location: ir.Location) -> str:
    return " ".join((kind, *names_of(location)[:1]))


def _name_of(source: str | Path) -> str:
    return Path(source).name if isinstance(source, Path) or source.endswith(".mlir") else "model.mlir"
