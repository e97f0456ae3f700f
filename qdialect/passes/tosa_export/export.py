"""Shared by the exporters: values made so far, constants, the interface, and the registry.

TOSA's ops know signed bytes alone, so that a `ui8` tensor is held as `i8`, less 128, as are its zero points.  Arguments
and results stay `ui8`: a RESCALE by one reads or writes them as unsigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from qdialect.dialect import QnnOp
from qdialect.dialect.constants import CONSTANT_OPS, constant_value, missing_elements
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.builder import Array
from qdialect.support.registry import Registry

Op = TypeVar("Op", bound=QnnOp)
ELEMENTS = ("i1", "i8", "ui8", "i16", "i32", "f32")
"""The element types that a `tosa` function may have here."""
SIGN = 128


class Export:
    """One function on its way; values of the `qnn` function are keys, those of the new one are what they became."""

    def __init__(self) -> None:
        self.bounds: dict[ir.Value, int] = {}
        """The largest magnitude of accumulators, where their weights are known."""
        self._values: dict[ir.Value, ir.Value] = {}

    def define(self, old: ir.Value, new: ir.Value) -> None:
        """`new` holds what `old` held."""
        self._values[old] = new

    def knows(self, old: ir.Value) -> bool:
        """Whether `old` has become something, or is a constant."""
        return old in self._values or constant_value(old) is not None

    def value(self, old: ir.Value) -> ir.Value:
        """The new value of `old`; a constant is built where it is asked for."""
        array = constant_value(old)
        return self._values[old] if array is None else builder.const(signed(array))

    def constant(self, old: ir.Value, what: str) -> Array:
        """The values of a constant; `what` is named in the error for what is not constant."""
        array = constant_value(old)
        if array is None:
            raise UnsupportedError(f"{what} must be a constant, but got a value that is known at run time only")
        return array

    def bound(self, old: ir.Value, zero_point: int = 0) -> int:
        """The largest magnitude that elements of `old` less `zero_point` may have."""
        low, high = ELEMENT_RANGES[element_of(old.type)]
        return self.bounds.get(old, max(abs(low - zero_point), abs(high - zero_point)))


def sign_of(type_: ir.Type) -> int:
    """By how much values of this type are held lower: 128 for `ui8`, else 0."""
    return SIGN if element_of(type_) == "ui8" else 0


def signed(array: Array) -> Array:
    """An array as it is held."""
    return (array.astype(np.int16) - SIGN).astype(np.int8) if array.dtype == np.uint8 else array


class UnsupportedError(Exception):
    """An op has no counterpart in `tosa`; the text gives the reason."""


def require(condition: bool, reason: str) -> None:
    """Raise `UnsupportedError` with `reason` unless `condition` holds."""
    if not condition:
        raise UnsupportedError(reason)


Exporter = Callable[[Export, Any], ir.Value]
"""Builds, at the current insertion point, what gives the result of an op, as it is held."""

EXPORTERS = Registry[Exporter]("exporter to tosa")
"""By op name."""


def exports(*op_classes: type[Op]) -> Callable[[Callable[[Export, Op], ir.Value]], Callable[[Export, Op], ir.Value]]:
    """Register the exporter of op classes."""

    def add(exporter: Callable[[Export, Op], ir.Value]) -> Callable[[Export, Op], ir.Value]:
        EXPORTERS.add([op_class.OPERATION_NAME for op_class in op_classes], exporter)
        return exporter

    return add


def export_function(old: ir.Operation, block: ir.Block) -> Iterator[tuple[ir.Operation, str]]:
    """Export the ops of the function `old` to the end of `block`, which has its arguments.

    Yields every op that TOSA cannot express, with the reason; the return is built where there is none.
    """
    export = Export()
    unsupported: list[tuple[ir.Operation, str]] = []
    *body, last = [op.operation for op in old.regions[0].blocks[0].operations]
    with ir.InsertionPoint(block):
        for before, after in zip(old.regions[0].blocks[0].arguments, block.arguments, strict=True):
            export.define(before, _read(after))
        for op in body:
            with op.location:
                unsupported += [(op, reason) for reason in _export(export, op)]
        if not unsupported:
            with last.location:
                values = [_written(export.value(value), value.type) for value in last.operands]
                ir.Operation.create("func.return", operands=values)
    yield from unsupported


def _export(export: Export, op: ir.Operation) -> Iterator[str]:
    """Build what `op` becomes; a reason where that is impossible.

    An op below such a one has no operands to work on: all that is asked then is whether it has an exporter.
    """
    try:
        _check(op)
        if op.name not in CONSTANT_OPS and all(export.knows(operand) for operand in op.operands):
            export.define(op.results[0], EXPORTERS[op.name](export, op.opview))
    except UnsupportedError as error:
        yield str(error)


def _check(op: ir.Operation) -> None:
    problem = missing_elements(op)
    require(problem is None, problem or "")
    if op.name in CONSTANT_OPS:
        return
    require(op.name in EXPORTERS, "has no counterpart in tosa")
    # A constant operand is what its exporter makes of it.
    types = [value.type for value in (*op.operands, *op.results) if constant_value(value) is None]
    unknown = [type_ for type_ in types if element_of(type_) not in ELEMENTS]
    wanted = f"must have operands and results of {', '.join(ELEMENTS[:-1])} or {ELEMENTS[-1]}"
    require(not unknown, f"{wanted}, but got {unknown[0] if unknown else ''}")


def _read(argument: ir.Value) -> ir.Value:
    if element_of(argument.type) != "ui8":
        return argument
    return builder.rescale(argument, "i8", [builder.IDENTITY], (SIGN, 0), unsigned=(True, False))


def _written(value: ir.Value, type_: ir.Type) -> ir.Value:
    if element_of(type_) != "ui8":
        return value
    return builder.rescale(value, "ui8", [builder.IDENTITY], (0, SIGN), unsigned=(False, True))


def shape_of_result(op: QnnOp) -> tuple[int, ...]:
    """The shape of an op's result."""
    return shape_of(op.operation.results[0].type)
