"""`qnn-import-tosa`: functions of upstream's `tosa` dialect become functions of `qnn` ops, with the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from qdialect.dialect import ConstraintError
from qdialect.frontends.building.checks import GraphNode, UnsupportedError, refuse
from qdialect.frontends.tosa.operators import Conversion, convert, converted_ops
from qdialect.frontends.tosa.operators.rescale import give_scales
from qdialect.ir._mlir import func, ir, ops_in
from qdialect.ir.context import functions, location_of, name_of, names_of, parse, verify
from qdialect.passes.pattern import apply_patterns
from qdialect.passes.quant_types import interface_with_parameters, is_quantized, storage_type
from qdialect.passes.registry import Pass, register
from qdialect.support.diagnostics import Diagnostic, PassError, Severity


@register
@dataclass(frozen=True)
class ImportTosa(Pass):
    """Convert `tosa` ops to `qnn` ops and upstream's element-wise ops with the same results.

    TOSA has no scales: RESCALE's multiplier and shift become `weight_scales` that quantize back to them, everything
    else has the scale 1 unless an argument's or result's type is `!quant.uniform`; such types become `i8` or `ui8`,
    with `qnn.scale` and `qnn.zero_point` on arguments and results.  SINGLE_ROUND and INEXACT_ROUND are `fixed64_up`,
    DOUBLE_ROUND is `fixed64_double`; a RESCALE that no requantization can express becomes arithmetic on 64-bit
    integers.  Signless bytes that a rescale reads or writes as unsigned pass through a table.  Integers, booleans and
    floats that are not quantized become upstream ops. A function with unsupported ops is not changed; one error lists
    all of these ops as notes.
    """

    name: ClassVar[str] = "qnn-import-tosa"
    dependent_dialects = ()

    def run(self, module: ir.Module) -> None:
        unsupported = converted(module)
        if unsupported:
            message = f"{self.name}: {len(unsupported)} ops have no counterpart in qnn"
            notes = tuple(
                Diagnostic(Severity.NOTE, f"'{one.kind}' op {one.reason}", *location_of(one.location))
                for one in unsupported
            )
            raise PassError(message, (Diagnostic(Severity.ERROR, message, notes=notes),))


class UnsupportedOp(NamedTuple):
    """An op without a counterpart, which may be gone."""

    kind: str
    location: ir.Location
    reason: str


def converted(module: ir.Module) -> list[UnsupportedOp]:
    """Convert every function of `module` that has `tosa` ops, in place; one with unsupported ops stays as it is."""
    found = list(filter(has_tosa, functions(module)))
    with module.context, ir.Location.unknown():
        unsupported = [one for function in found for one in _convert_function(function)]
        # Ops that two ops of one kernel have made superfluous.
        apply_patterns(module, ())
    return unsupported


def has_tosa(operation: ir.Operation) -> bool:
    """Whether a function has one block, with `tosa` ops or quantized arguments."""
    if len(operation.regions[0].blocks) != 1:
        return False
    block = operation.regions[0].blocks[0]
    quantized = any(is_quantized(argument.type) for argument in block.arguments)
    return quantized or any(op.operation.name.startswith("tosa.") for op in block.operations)


def _convert_function(function: ir.Operation) -> list[UnsupportedOp]:
    """Replace `function` by the converted one; if ops have no counterpart, leave it and return them."""
    created, conversion = _declared(function)
    unsupported: list[UnsupportedOp] = []
    *body, last = [op.operation for op in function.regions[0].blocks[0].operations]
    block = created.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        for op in body:
            unsupported += _converted(conversion, op)
        if not unsupported:
            with last.location:
                func.ReturnOp([conversion.value(value) for value in last.operands])
    (created.operation if unsupported else function).erase()
    return unsupported


def _declared(old: ir.Operation) -> tuple[func.FuncOp, Conversion]:
    """A function with the interface of `old` on storage types, and a conversion that knows its arguments."""
    type_ = ir.FunctionType(ir.TypeAttr(old.attributes["function_type"]).value)
    sides = ("arg_attrs", list(type_.inputs)), ("res_attrs", list(type_.results))
    types = [[storage_type(one) for one in found] for _, found in sides]
    with ir.InsertionPoint(old), old.location:
        created = func.FuncOp(name_of(old), (types[0], types[1]))
    for name, attribute in old.attributes.items():
        if name != "function_type":
            created.attributes[name] = attribute
    for name, found in sides:
        if name in old.attributes or any(map(is_quantized, found)):
            created.attributes[name] = interface_with_parameters(old, name, found)
    conversion = Conversion()
    give_scales(conversion, old)
    arguments = old.regions[0].blocks[0].arguments
    block = created.add_entry_block([argument.location for argument in arguments])
    for before, after in zip(arguments, block.arguments, strict=True):
        conversion.define(before, after)
    return created, conversion


def _converted(conversion: Conversion, op: ir.Operation) -> Iterator[UnsupportedOp]:
    conversion.at(op.location)
    with op.location:
        try:
            if op.name.startswith("tosa."):
                convert(conversion, op)
            else:
                _cloned(conversion, op)
        except (UnsupportedError, ConstraintError, TypeError) as error:
            yield UnsupportedOp(op.name, op.location, str(error).removeprefix(f"'{op.name}' op "))


def _cloned(conversion: Conversion, op: ir.Operation) -> None:
    """An op of another dialect goes along, with what its regions read from around it."""
    if not all(conversion.knows(operand) for operand in op.operands):
        return
    # Constants are built where they are first asked for, which is before their use.
    new = {
        old: conversion.value(old)
        for inner in ops_in(op, ir.WalkOrder.POST_ORDER)
        for old in inner.operands
        if conversion.knows(old)
    }
    clone = op.clone()
    for inner in ops_in(clone, ir.WalkOrder.POST_ORDER):
        for index, old in enumerate(inner.operands):
            if old in new:
                inner.operands[index] = new[old]
    for before, after in zip(op.results, clone.results, strict=True):
        conversion.define(before, after)


_CONSTANTS = ("tosa.const", "tosa.const_shape")


def import_tosa(source: str | Path, context: ir.Context | None = None) -> ir.Module:
    """A verified `qnn` module from MLIR text, or from a file, with functions of `tosa` ops.

    What is no `tosa` op stays as it is, so that a `qnn` module is itself.  Every op is located at the number of the
    value it computes, over its position in the text; `ImportTosa` describes what becomes of it.

    Raises `ParseError` for text that is no MLIR and `ImportModelError` for ops that the dialect cannot express; then
    every such op is a note.
    """
    module = parse(source, context)
    with module.context:
        found = list(filter(has_tosa, functions(module)))
        for function in found:
            for name, op in _named(function):
                op.location = ir.Location.name(name, op.location)
    unsupported = converted(module)
    is_file = isinstance(source, Path) or source.endswith(".mlir")
    refuse(Path(source).name if is_file else "model.mlir", [_note(*one) for one in unsupported])
    if found:
        verify(module)
    return module


def nodes_of(source: str | Path) -> tuple[GraphNode, ...]:
    """The `tosa` ops of a file but constants, supported or not; raises `ParseError` for text that is no MLIR."""
    module = parse(source)
    return tuple(node for function in functions(module) if has_tosa(function) for node in _nodes(function))


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


def _note(kind: str, location: ir.Location, reason: str) -> Diagnostic:
    title = " ".join((kind, *names_of(location)[:1]))
    return Diagnostic(Severity.NOTE, f"{title}: {reason}", *location_of(location))
