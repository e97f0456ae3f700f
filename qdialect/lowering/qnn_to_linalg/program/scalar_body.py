"""The scalar body of a `linalg.generic`: values that know their type, and the ops on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Value:
    """A scalar of a kernel: its SSA name and its type, such as ``i8``, ``f32`` or ``index``."""

    name: str
    type: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.type.startswith("f")

    @property
    def bits(self) -> int:
        """The width of its type, which is an integer or a floating-point number."""
        return int(self.type[1:])


class Table(Protocol):
    """A tensor of one dimension."""

    @property
    def name(self) -> str: ...

    @property
    def element(self) -> str: ...

    @property
    def type(self) -> str: ...


class Scope(Protocol):
    """The function around a body: it names values and holds constants."""

    def fresh(self) -> str: ...

    def constant(self, value: float, type_: str) -> Value: ...

    def table(self, values: NDArray[np.float32]) -> Table: ...


ROUNDED = "qnn.rounded"
"""Of a quotient: its divisor is between 2^-60 and 2^60, and it is clamped to 2^20 at most, then rounded to an integer.

A zero point may be added before. Where the quotient is NaN, and nowhere else, so must be what stands for it.
"""


class Body:
    """The body of a generic on `inputs` and on the element of the output; constants go to the top of the function.

    There vectorization finds them. A method raises `TypeError` where the types of its operands do not fit together.
    """

    def __init__(self, function: Scope, inputs: Sequence[Value], output: Value | None) -> None:
        self._function = function
        self._output = output
        self.inputs = tuple(inputs)
        """Elements of the inputs, in their order."""
        self.lines: list[str] = []

    @property
    def output(self) -> Value:
        """The element of the output before the generic: the accumulator of a reduction."""
        assert self._output is not None, "the body was declared with an output"
        return self._output

    def op(self, text: str, type_: str) -> Value:
        """Append ``%new = text``, an op with a result of type `type_`."""
        name = self._function.fresh()
        self.lines.append(f"{name} = {text}")
        return Value(name, type_)

    def constant(self, value: float, type_: str) -> Value:
        """A constant, shared by all bodies of the function."""
        return self._function.constant(value, type_)

    def table(self, values: NDArray[np.float32]) -> Table:
        """A table of constants, shared by all bodies of the function."""
        return self._function.table(values)

    def unary(self, op: str, value: Value) -> Value:
        """``op value``, of the same type."""
        return self.op(f"{op} {value} : {value.type}", value.type)

    def binary(self, op: str, lhs: Value, rhs: Value, *, attribute: str = "") -> Value:
        """``op lhs, rhs``, of the type of both; with the unit `attribute`, if any."""
        type_ = _common_type(op, lhs, rhs)
        return self.op(f"{op} {lhs}, {rhs}{_braced(attribute)} : {type_}", type_)

    def add(self, lhs: Value, rhs: Value) -> Value:
        """``lhs + rhs``; integers wrap around."""
        return self.binary("arith.addf" if lhs.is_float else "arith.addi", lhs, rhs)

    def subtract(self, lhs: Value, rhs: Value) -> Value:
        """``lhs - rhs``; integers wrap around."""
        return self.binary("arith.subf" if lhs.is_float else "arith.subi", lhs, rhs)

    def multiply(self, lhs: Value, rhs: Value) -> Value:
        """``lhs * rhs``; integers wrap around."""
        return self.binary("arith.mulf" if lhs.is_float else "arith.muli", lhs, rhs)

    def multiply_add(self, lhs: Value, rhs: Value, addend: Value, *, attribute: str = "") -> Value:
        """``lhs * rhs + addend`` of floating-point numbers, rounded once; with the unit `attribute`, if any."""
        type_ = _common_type("math.fma", lhs, rhs, addend)
        return self.op(f"math.fma {lhs}, {rhs}, {addend}{_braced(attribute)} : {type_}", type_)

    def divide(self, lhs: Value, rhs: Value) -> Value:
        """``lhs / rhs`` of floating-point numbers."""
        return self.binary("arith.divf", lhs, rhs)

    def cast(self, op: str, value: Value, target: str) -> Value:
        """``op value`` as a value of type `target`; the value itself where it has this type."""
        return value if value.type == target else self.op(f"{op} {value} : {value.type} to {target}", target)

    def compare(self, predicate: str, lhs: Value, rhs: Value) -> Value:
        """``lhs predicate rhs`` as an i1, by the predicates of `arith.cmpf` or `arith.cmpi`."""
        op = "arith.cmpf" if lhs.is_float else "arith.cmpi"
        return self.op(f"{op} {predicate}, {lhs}, {rhs} : {_common_type(op, lhs, rhs)}", "i1")

    def select(self, condition: Value, then: Value, other: Value) -> Value:
        """`then` where `condition` holds, else `other`."""
        if condition.type != "i1":
            raise TypeError(f"arith.select needs an i1, but got {condition.type}")
        type_ = _common_type("arith.select", then, other)
        return self.op(f"arith.select {condition}, {then}, {other} : {type_}", type_)

    def extract(self, table: Table, index: Value) -> Value:
        """The element of `table` at an index."""
        if index.type != "index":
            raise TypeError(f"tensor.extract needs an index, but got {index.type}")
        return self.op(f"tensor.extract {table.name}[{index}] : {table.type}", table.element)

    def narrow(self, value: Value) -> Value:
        """An integer of 0..255 as the byte of its low bits: one out of that range may become any byte."""
        return self.op(f"arith.trunci {value} overflow<nuw> : {value.type} to i8", "i8")

    def clamp(self, value: Value, low: Value, high: Value) -> Value:
        """`value` limited to [`low`, `high`]; floats by compare and select, which no rule for NaN slows down."""
        if value.is_float:
            value = self.select(self.compare("ogt", value, low), value, low)
            return self.select(self.compare("olt", value, high), value, high)
        return self.binary("arith.minsi", self.binary("arith.maxsi", value, low), high)


def _braced(attribute: str) -> str:
    return f" {{{attribute}}}" if attribute else ""


def _common_type(op: str, *operands: Value) -> str:
    types = list(dict.fromkeys(operand.type for operand in operands))
    if len(types) > 1:
        raise TypeError(f"{op} needs operands of one type, but got {' and '.join(types)}")
    return types[0]


# Functions that write a part of a kernel's scalar body.

Emit = Callable[[Body, Sequence[Value]], Value]
"""(body, operand values) -> result value."""

EmitRequantize = Callable[[Body, Value, Sequence[Value]], Value]
"""(body, accumulator as i32, per-channel parameters) -> quantized value as i32, before the clamp."""


def unchanged(_: Body, values: Sequence[Value]) -> Value:
    """The `Emit` of a copy."""
    return values[0]


def flipped(body: Body, quantized: Value) -> Value:
    """Between an `i8` value and its stored byte: plus or minus 128."""
    return body.binary("arith.xori", quantized, body.constant(-128, "i8"))
