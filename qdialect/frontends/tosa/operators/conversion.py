"""Shared by the converters: values made so far, constants, shapes, scales, and the registry."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.dialect.constants import elements_array
from qdialect.dialect.type_constraints import COMPUTED, NUMPY_DTYPES, element_of, shape_of
from qdialect.frontends.building.checks import Array, UnsupportedError, require
from qdialect.frontends.building.op_builder import OpBuilder
from qdialect.ir._mlir import ir
from qdialect.passes.quant_types import storage_type
from qdialect.support.registry import Registry

Lengths = tuple[int, ...]

_BINARY: dict[str, Callable[[int, int], int]] = {
    "tosa.add_shape": lambda a, b: a + b,
    "tosa.sub_shape": lambda a, b: a - b,
    "tosa.mul_shape": lambda a, b: a * b,
    "tosa.div_ceil_shape": lambda a, b: -(-a // b),
    "tosa.div_floor_shape": lambda a, b: a // b,
    "tosa.mod_shape": lambda a, b: a % b,
    "tosa.max_shape": max,
    "tosa.min_shape": min,
}
_UNARY: dict[str, Callable[[int], int]] = {
    "tosa.exp2_shape": lambda a: 1 << a,
    "tosa.log2_ceil_shape": lambda a: (a - 1).bit_length(),
    "tosa.log2_floor_shape": lambda a: a.bit_length() - 1,
}
_MAX_LENGTH = 2**62
SHAPE_OPS = (*_BINARY, *_UNARY, "tosa.concat_shape", "tosa.dim", "tosa.slice_shape")
"""The ops of which `computed` knows the result."""


def shape_op(value: ir.Value) -> ir.Operation | None:
    """The one of `SHAPE_OPS` that gives `value`; None where none does."""
    owner = value.owner
    return owner.operation if isinstance(owner, ir.Operation | ir.OpView) and owner.name in SHAPE_OPS else None


def computed(op: ir.Operation, lengths: Callable[[ir.Value], Lengths]) -> Lengths | None:
    """The result of one of `SHAPE_OPS`; None where it is without one, as a quotient by 0 is.

    `lengths` gives what an operand is.
    """
    if op.name == "tosa.dim":
        return (shape_of(op.operands[0].type)[ir.IntegerAttr(op.attributes["axis"]).value],)
    operands = [lengths(operand) for operand in op.operands]
    try:
        found = _of_operands(op.name, operands)
    except (ArithmeticError, ValueError):
        return None
    return found if all(abs(one) < _MAX_LENGTH for one in found) else None


def _of_operands(name: str, operands: list[Lengths]) -> Lengths:
    if name == "tosa.concat_shape":
        return tuple(one for operand in operands for one in operand)
    if name == "tosa.slice_shape":
        values, (start,), (size,) = operands
        return values[start : start + size]
    if name == "tosa.exp2_shape" and max(operands[0], default=0) >= _MAX_LENGTH.bit_length():
        raise OverflowError
    if name in _UNARY:
        return tuple(_UNARY[name](one) for one in operands[0])
    return tuple(_BINARY[name](lhs, rhs) for lhs, rhs in zip(*operands, strict=True))


_CONSTANTS = ("tosa.const", "tosa.const_shape")


@dataclass(frozen=True)
class Plan:
    """The scales that accumulators and their rescale agree on, so that both can become one kernel."""

    input_scale: float
    weight_scales: tuple[float, ...]
    output_scale: float


class Conversion(OpBuilder):
    """One function on its way; values of the `tosa` function are keys, those of the new one are what they became.

    TOSA has zero points and multipliers but no scales.  `rescale.py` chooses some; it is the multipliers alone that
    decide the quantized values.
    """

    def __init__(self) -> None:
        super().__init__("tosa")
        self.plans: dict[ir.Value, Plan] = {}
        self.scales: dict[ir.Value, float] = {}
        self._values: dict[ir.Value, ir.Value] = {}

    def define(self, old: ir.Value, new: ir.Value) -> None:
        """`new` holds what `old` held."""
        self._values[old] = new

    def at(self, location: ir.Location) -> None:
        """Emit the following ops at `location`."""
        self._location = location

    def knows(self, old: ir.Value) -> bool:
        """Whether `old` has become something, is a constant, or a shape that is computed of such."""
        return old in self._values or self.is_constant(old) or shape_op(old) is not None

    def is_constant(self, old: ir.Value) -> bool:
        """Whether `old` is a constant."""
        return isinstance(old.owner, ir.Operation | ir.OpView) and old.owner.name in _CONSTANTS

    def value(self, old: ir.Value) -> ir.Value:
        """The new value of `old`; a constant is built where it is first asked for."""
        if old not in self._values:
            self._values[old] = self.constant(self.array(old, "operand"))
        return self._values[old]

    def array(self, old: ir.Value, what: str) -> Array:
        """The values of a constant; `what` is named in the error for what is not constant."""
        attribute = _elements(old, what)
        type_ = storage_type(old.type)
        require(element_of(type_) in NUMPY_DTYPES, f"{what} must be of a known element type, but got {type_}")
        return elements_array(attribute, NUMPY_DTYPES[element_of(type_)], shape_of(type_))

    def integers(self, old: ir.Value, what: str) -> tuple[int, ...]:
        """The values of a constant shape, or of one that is computed from constants; `what` is named in the error."""
        op = shape_op(old)
        if op is not None:
            found = computed(op, lambda operand: self.integers(operand, what))
            require(found is not None, f"{what} must be a shape, but '{op.name}' of these operands gives none")
            return found or ()
        attribute = _elements(old, what)
        return tuple(elements_array(attribute, np.dtype(np.int64), (len(attribute),)).tolist())

    def zero_point(self, old: ir.Value, what: str, *, is_unsigned: bool = False) -> int:
        """The one entry of a constant; with `is_unsigned` its bits are those of an unsigned number."""
        array = self.array(old, what)
        require(array.size == 1, f"{what} must have 1 entry, but got {array.size}")
        return int(array.astype(np.int64).item()) & (0xFF if is_unsigned and array.itemsize == 1 else -1)

    def scale(self, old: ir.Value) -> float:
        """The scale that the quantized values of `old` have."""
        return self.scales.get(old, 1.0)


def _elements(old: ir.Value, what: str) -> ir.DenseElementsAttr:
    owner = old.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name not in _CONSTANTS:
        raise UnsupportedError(f"{what} must be a constant, but got a value that is known at run time only")
    attribute = owner.attributes["values"]
    if not isinstance(attribute, ir.DenseElementsAttr):
        raise UnsupportedError(f"{what} must have its elements in the text, but got a resource")
    return attribute


Converter = Callable[[Conversion, ir.Operation], ir.Value]
"""Builds, at the current insertion point, what gives the result of a `tosa` op."""

_CONVERTERS = Registry[Converter]("converter")


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Register the converter of the `tosa` ops called `names`."""
    return _CONVERTERS.register(*names)


def converted_ops() -> Sequence[str]:
    """The names of all ops with a converter, sorted."""
    return sorted((*_CONVERTERS, *_CONSTANTS, *SHAPE_OPS))


def convert(conversion: Conversion, op: ir.Operation) -> None:
    """Build what `op` becomes; raises `UnsupportedError` where it has no counterpart.

    An op below an unsupported one has no operands to work on: all that is asked then is whether it has a converter.
    """
    if op.name in (*_CONSTANTS, *SHAPE_OPS):
        return
    require(op.name in _CONVERTERS, "has no counterpart in qnn")
    _check_types(op)
    if not all(conversion.knows(operand) for operand in op.operands):
        return
    result, wanted = _CONVERTERS[op.name](conversion, op), storage_type(op.results[0].type)
    require(result.type == wanted, f"result must be {wanted}, but its counterpart gives {result.type}")
    conversion.define(op.results[0], result)


def _check_types(op: ir.Operation) -> None:
    types = [value.type for value in (*op.operands, *op.results)]
    tensors = [storage_type(type_) for type_ in types if not str(type_).startswith("!tosa.shape")]
    unknown = [type_ for type_ in tensors if COMPUTED.problem(type_)]
    require(not unknown, f"must have operands and results of {COMPUTED}, but got {unknown[0] if unknown else ''}")


def result_element(op: ir.Operation) -> str:
    """Element type of what the result of a `tosa` op is stored in."""
    return element_of(storage_type(op.results[0].type))


def integer(op: ir.Operation, name: str) -> int:
    """An integer attribute."""
    return int(ir.IntegerAttr(op.attributes[name]).value)


def flag(op: ir.Operation, name: str) -> bool:
    """A bool attribute."""
    return bool(ir.BoolAttr(op.attributes[name]).value)


def mode(op: ir.Operation, name: str) -> str:
    """The name of an enumeration's value (``"IGNORE"``); empty where the op leaves it out."""
    return re.sub(r".*<(\w+)>", r"\1", str(op.attributes[name])) if name in op.attributes else ""


def window(op: ir.Operation, name: str) -> tuple[int, ...]:
    """An attribute of several integers."""
    return tuple(ir.DenseI64ArrayAttr(op.attributes[name]))


def padding(op: ir.Operation) -> tuple[int, int, int, int]:
    """`pad`, which is top, bottom, left, right, as top, left, bottom, right."""
    top, bottom, left, right = window(op, "pad")
    return top, left, bottom, right
