"""Fields of an op class: its operands, attributes and result; how each kind of attribute is written and checked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import index
from typing import Any, Generic, Protocol, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.quantization import QuantParams
from qdialect.dialect.type_constraints import TypeConstraint, element_name, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.ir.resources import is_resource, resolved

# Array attributes have no name in IRDL, so no kind is declared to it; `problem` is the check instead.

T = TypeVar("T")
TABLE_ENTRIES = 256
SMALLEST_SCALE, LARGEST_SCALE = 2.0**-60, 2.0**30


@dataclass(frozen=True)
class AttributeKind(Generic[T]):
    """A kind of attribute; `from_attribute` may be called for one that has no `problem`."""

    description: str
    to_attribute: Callable[[T], ir.Attribute]
    from_attribute: Callable[[ir.Attribute], T]
    holds: Callable[[ir.Attribute], bool]

    def problem(self, attr: ir.Attribute) -> str | None:
        """What the attribute must be, or None where it is right."""
        return None if self.holds(attr) else self.description


def _is_f64(attr: ir.Attribute) -> bool:
    return isinstance(attr, ir.FloatAttr) and isinstance(attr.type, ir.F64Type)


def _f64(value: float) -> ir.Attribute:
    return ir.FloatAttr.get(ir.F64Type.get(), float(value))


def _int64(value: int) -> int:
    integer = index(value)
    if not -(2**63) <= integer < 2**63:
        raise ValueError(f"integer must fit 64 bits, but got {integer}")
    return integer


def _float_value(attr: ir.Attribute) -> float:
    return ir.FloatAttr(attr).value


def is_scale(value: float) -> bool:
    """Whether `value` is in the range of the kind `SCALE`."""
    return SMALLEST_SCALE <= value <= LARGEST_SCALE


def _are_scales(attr: ir.Attribute) -> bool:
    # NaN passes neither comparison, and comparisons of an array take a tenth of those of its numbers.
    scales = np.array(list(attr) if isinstance(attr, ir.DenseF64ArrayAttr) else [])
    return scales.size > 0 and bool(((scales > 0) & (scales <= LARGEST_SCALE)).all())


SCALE: AttributeKind[float] = AttributeKind(
    "an f64 in [2^-60, 2^30]", _f64, _float_value, lambda attr: _is_f64(attr) and is_scale(_float_value(attr))
)
"""A scale. An f32 scale of a framework is stored exactly.

The bounds keep every multiplier ``s_x * s_w / s_y`` finite in float32, so that no arithmetic has to define what an
infinite one means.
"""

F64: AttributeKind[float] = AttributeKind(
    "a finite f64", _f64, _float_value, lambda attr: _is_f64(attr) and math.isfinite(_float_value(attr))
)

I64: AttributeKind[int] = AttributeKind(
    "an i64",
    lambda value: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _int64(value)),
    lambda attr: ir.IntegerAttr(attr).value,
    lambda attr: isinstance(attr, ir.IntegerAttr) and element_name(attr.type) == "i64",
)

SCALES: AttributeKind[tuple[float, ...]] = AttributeKind(
    "a non-empty array<f64> of positive scales up to 2^30",
    lambda value: ir.DenseF64ArrayAttr.get([float(v) for v in value]),
    lambda attr: tuple(ir.DenseF64ArrayAttr(attr)),
    _are_scales,
)
"""Scales of the channels. There is no lower bound but zero: a channel without weights may have any scale."""

INTEGERS: AttributeKind[tuple[int, ...]] = AttributeKind(
    "an array<i64>",
    lambda value: ir.DenseI64ArrayAttr.get([_int64(v) for v in value]),
    lambda attr: tuple(ir.DenseI64ArrayAttr(attr)),
    lambda attr: isinstance(attr, ir.DenseI64ArrayAttr),
)

BOOL: AttributeKind[bool] = AttributeKind(
    "a bool", ir.BoolAttr.get, lambda attr: ir.BoolAttr(attr).value, lambda attr: isinstance(attr, ir.BoolAttr)
)

ELEMENTS: AttributeKind[ir.Attribute] = AttributeKind(
    "dense elements",
    lambda value: value,
    lambda attr: attr,
    lambda attr: isinstance(attr, ir.DenseElementsAttr) or is_resource(attr),
)


def _is_table(attr: ir.Attribute) -> bool:
    elements = resolved(attr)
    type_ = elements.type if isinstance(elements, ir.DenseElementsAttr) else None
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is not None:
        return False
    return shape_of(type_) == (TABLE_ENTRIES,) and element_of(type_) == "i8"


def _table_to_attribute(value: NDArray[np.uint8]) -> ir.Attribute:
    if value.dtype != np.uint8 or value.shape != (TABLE_ENTRIES,):
        raise ValueError(f"table must be uint8[{TABLE_ENTRIES}], but got {value.dtype}{list(value.shape)}")
    signed = np.ascontiguousarray(value).view(np.int8)
    return ir.DenseElementsAttr.get(signed, type=ir.IntegerType.get_signless(8), shape=[TABLE_ENTRIES])


def _table_value(attr: ir.Attribute) -> NDArray[np.uint8]:
    entries: Any = np.array(ir.DenseIntElementsAttr(resolved(attr)), dtype=np.int8)
    return np.broadcast_to(entries, (TABLE_ENTRIES,)).view(np.uint8)


TABLE: AttributeKind[NDArray[np.uint8]] = AttributeKind(
    f"a dense tensor<{TABLE_ENTRIES}xi8>", _table_to_attribute, _table_value, _is_table
)
"""A look-up table: 256 bit patterns, indexed by the unsigned bit pattern of the input byte."""

ELEMENT_TYPE: AttributeKind[str] = AttributeKind(
    "the type i8 or ui8",
    lambda value: ir.TypeAttr.get(ir.Type.parse(value)),
    lambda attr: str(ir.TypeAttr(attr).value),
    lambda attr: isinstance(attr, ir.TypeAttr) and element_name(attr.value) in ("i8", "ui8"),
)
"""Element type of 8-bit values, as its text."""

E = TypeVar("E", bound=StrEnum)


def choice(values: type[E], among: Iterable[E] | None = None) -> AttributeKind[E]:
    """A string attribute that names a member of `values`, which with `among` must be one of these."""
    known = [str(value) for value in (values if among is None else among)]
    return AttributeKind(
        "one of " + ", ".join(f'"{value}"' for value in known),
        lambda value: ir.StringAttr.get(str(value)),
        lambda attr: values(ir.StringAttr(attr).value),
        lambda attr: isinstance(attr, ir.StringAttr) and attr.value in known,
    )


class Field(ABC, Generic[T]):
    """A declared part of an op; reading it from an op gives its value."""

    name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @abstractmethod
    def read(self, op: ir.OpView) -> T:
        """The value that `op` has."""

    @overload
    def __get__(self, op: None, owner: type) -> Self: ...
    @overload
    def __get__(self, op: ir.OpView, owner: type) -> T: ...
    def __get__(self, op: ir.OpView | None, owner: type) -> Self | T:
        return self if op is None else self.read(op)


class AttributeField(Field[T]):
    """A declared attribute, as a Python value.

    One with a default may be left out of the text, and is where it has that value.
    """

    def __init__(self, kind: AttributeKind[T], default: T | None) -> None:
        self.kind: AttributeKind[T] = kind
        self.default = default

    @property
    def is_required(self) -> bool:
        """Whether the attribute must be written."""
        return self.default is None

    def read(self, op: ir.OpView) -> T:
        return self.value_in(op.operation.attributes)

    def value_in(self, attributes: Mapping[str, ir.Attribute] | ir.OpAttributeMap) -> T:
        """The Python value of the attribute; the default where it is left out."""
        if self.default is not None and self.name not in attributes:
            return self.default
        return self.kind.from_attribute(attributes[self.name])

    def is_default(self, encoded: ir.Attribute) -> bool:
        """Whether a written attribute equals its default."""
        return self.default is not None and encoded == self.kind.to_attribute(self.default)


class ParamsField(Field[QuantParams]):
    """The quantization that two attributes are: of a field called ``lhs_params``, `lhs_scale` and `lhs_zero_point`."""

    def read(self, op: ir.OpView) -> QuantParams:
        tensor = self.name.removesuffix("_params")
        return QuantParams(getattr(op, f"{tensor}_scale"), getattr(op, f"{tensor}_zero_point"))


class AnyOperandField(Field[T]):
    """A declared operand of any multiplicity."""

    index = 0

    def __init__(self, constraint: TypeConstraint) -> None:
        self.constraint = constraint


class OperandField(AnyOperandField[ir.Value]):
    """A declared operand."""

    def read(self, op: ir.OpView) -> ir.Value:
        return op.operation.operands[self.index]


class OptionalOperandField(AnyOperandField[ir.Value | None]):
    """The one operand of an op that may be missing; always the last."""

    def read(self, op: ir.OpView) -> ir.Value | None:
        operands = op.operation.operands
        return operands[self.index] if len(operands) > self.index else None


class VariadicOperandField(AnyOperandField[list[ir.Value]]):
    """One or more operands of one kind; always the last."""

    def read(self, op: ir.OpView) -> list[ir.Value]:
        return list(op.operation.operands)[self.index :]


class ResultField(Field[ir.Value]):
    """The declared result."""

    def __init__(self, constraint: TypeConstraint) -> None:
        self.constraint = constraint

    def read(self, op: ir.OpView) -> ir.Value:
        return op.operation.results[0]


# How op classes declare them.
operand, params, result = OperandField, ParamsField, ResultField
optional_operand, variadic_operand = OptionalOperandField, VariadicOperandField


def attribute(kind: AttributeKind[T], default: T | None = None) -> AttributeField[T]:
    """Declare an attribute; one with a `default` may be left out of the text, and is where it has that value."""
    return AttributeField(kind, default)


class DeclaredAttribute(Protocol):
    """The declaration of an attribute, as the verifier reads it."""

    @property
    def kind(self) -> AttributeKind[Any]:
        """The kind of its values."""
        ...

    @property
    def is_required(self) -> bool:
        """Whether it must be written."""
        ...


def attribute_violations(found: Mapping[str, ir.Attribute], declared: Mapping[str, DeclaredAttribute]) -> Iterator[str]:
    """The problems of written attributes: unknown ones, missing ones, those of another kind.

    All unknown ones are one finding, all missing ones another; a name with a dot belongs to another dialect.
    """
    unknown = [name for name in found if name not in declared and "." not in name]
    if unknown:
        yield f"has no attribute{'s' * (len(unknown) > 1)} {names_text(unknown)}; it has {names_text(declared)}"
    missing = {name: one.kind for name, one in declared.items() if one.is_required and name not in found}
    if missing:
        kinds = ", ".join(f"'{name}' ({kind.description})" for name, kind in missing.items())
        yield f"must have attribute{'s' * (len(missing) > 1)} {kinds}"
    for name, one in declared.items():
        problem = one.kind.problem(found[name]) if name in found else None
        if problem:
            yield f"{name} must be {problem}, but got {found[name]}"


def names_text(names: Iterable[str]) -> str:
    """Quoted names, separated by commas."""
    return ", ".join(f"'{name}'" for name in names) or "none"
