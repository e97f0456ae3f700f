"""Fields of an op class: its operands, attributes and result; how each kind of attribute is written and checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import index
from typing import Any, Generic, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect.type_constraints import TypeConstraint, element_name, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.ir.resources import is_resource, resolved

# The kinds of attributes a `qnn` op can have: how each is written, read and checked.
#
# Array attributes have no name in IRDL, so no kind is declared to it; `problem` is the check instead.

T = TypeVar("T")
TABLE_ENTRIES = 256
SMALLEST_SCALE, LARGEST_SCALE = 2.0**-60, 2.0**30


@dataclass(frozen=True)
class AttributeKind(Generic[T]):
    """A kind of attribute.

    `problem` gives what the attribute must be, or None where it is right; `from_attribute` may then be called.
    """

    description: str
    to_attribute: Callable[[T], ir.Attribute]
    from_attribute: Callable[[ir.Attribute], T]
    problem: Callable[[ir.Attribute], str | None]


def _is_f64(attr: ir.Attribute) -> bool:
    return isinstance(attr, ir.FloatAttr) and isinstance(attr.type, ir.F64Type)


def _is_i64(attr: ir.Attribute) -> bool:
    return isinstance(attr, ir.IntegerAttr) and element_name(attr.type) == "i64"


def _f64(value: float) -> ir.Attribute:
    return ir.FloatAttr.get(ir.F64Type.get(), float(value))


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _int64(value))


def _int64(value: int) -> int:
    integer = index(value)
    if not -(2**63) <= integer < 2**63:
        raise ValueError(f"integer must fit 64 bits, but got {integer}")
    return integer


def _float_value(attr: ir.Attribute) -> float:
    return ir.FloatAttr(attr).value


def _int_value(attr: ir.Attribute) -> int:
    return ir.IntegerAttr(attr).value


def is_scale(value: float) -> bool:
    """Whether `value` is in the range of the kind `SCALE`."""
    return SMALLEST_SCALE <= value <= LARGEST_SCALE


_SCALE = "an f64 in [2^-60, 2^30]"
_SCALES = "a non-empty array<f64> of positive scales up to 2^30"


def _scale_problem(attr: ir.Attribute) -> str | None:
    return None if _is_f64(attr) and is_scale(_float_value(attr)) else _SCALE


def _scales_problem(attr: ir.Attribute) -> str | None:
    # NaN passes neither comparison, and comparisons of an array take a tenth of those of its numbers.
    scales = np.array(list(attr) if isinstance(attr, ir.DenseF64ArrayAttr) else [])
    return None if scales.size and bool(((scales > 0) & (scales <= LARGEST_SCALE)).all()) else _SCALES


def _integers_problem(attr: ir.Attribute) -> str | None:
    return None if isinstance(attr, ir.DenseI64ArrayAttr) else "an array<i64>"


SCALE: AttributeKind[float] = AttributeKind(_SCALE, _f64, _float_value, _scale_problem)
"""A scale. An f32 scale of a framework is stored exactly.

The bounds keep every multiplier ``s_x * s_w / s_y`` finite in float32, so that no arithmetic has to define what an
infinite one means.
"""

F64: AttributeKind[float] = AttributeKind(
    "a finite f64",
    _f64,
    _float_value,
    lambda attr: None if _is_f64(attr) and math.isfinite(_float_value(attr)) else "a finite f64",
)

I64: AttributeKind[int] = AttributeKind("an i64", _i64, _int_value, lambda attr: None if _is_i64(attr) else "an i64")

SCALES: AttributeKind[tuple[float, ...]] = AttributeKind(
    _SCALES,
    lambda value: ir.DenseF64ArrayAttr.get([float(v) for v in value]),
    lambda attr: tuple(ir.DenseF64ArrayAttr(attr)),
    _scales_problem,
)
"""Scales of the channels. There is no lower bound but zero: a channel without weights may have any scale."""

INTEGERS: AttributeKind[tuple[int, ...]] = AttributeKind(
    "an array<i64>",
    lambda value: ir.DenseI64ArrayAttr.get([_int64(v) for v in value]),
    lambda attr: tuple(ir.DenseI64ArrayAttr(attr)),
    _integers_problem,
)

BOOL: AttributeKind[bool] = AttributeKind(
    "a bool",
    ir.BoolAttr.get,
    lambda attr: ir.BoolAttr(attr).value,
    lambda attr: None if isinstance(attr, ir.BoolAttr) else "a bool",
)

ELEMENTS: AttributeKind[ir.Attribute] = AttributeKind(
    "dense elements",
    lambda value: value,
    lambda attr: attr,
    lambda attr: None if isinstance(attr, ir.DenseElementsAttr) or is_resource(attr) else "dense elements",
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
    elements = resolved(attr)
    entries: Any = np.array(ir.DenseIntElementsAttr(elements), dtype=np.int8)
    return np.broadcast_to(entries, (TABLE_ENTRIES,)).view(np.uint8)


_TABLE = f"a dense tensor<{TABLE_ENTRIES}xi8>"

TABLE: AttributeKind[NDArray[np.uint8]] = AttributeKind(
    _TABLE, _table_to_attribute, _table_value, lambda attr: None if _is_table(attr) else _TABLE
)
"""A look-up table: 256 bit patterns, indexed by the unsigned bit pattern of the input byte."""

_ELEMENT_TYPE = "the type i8 or ui8"

ELEMENT_TYPE: AttributeKind[str] = AttributeKind(
    _ELEMENT_TYPE,
    lambda value: ir.TypeAttr.get(ir.Type.parse(value)),
    lambda attr: str(ir.TypeAttr(attr).value),
    lambda attr: None if isinstance(attr, ir.TypeAttr) and element_name(attr.value) in ("i8", "ui8") else _ELEMENT_TYPE,
)
"""Element type of 8-bit values, as its text."""

E = TypeVar("E", bound=StrEnum)


def choice(values: type[E], among: Iterable[E] | None = None) -> AttributeKind[E]:
    """A string attribute that names a member of `values`, which with `among` must be one of these."""
    known = [str(value) for value in (values if among is None else among)]
    wanted = "one of " + ", ".join(f'"{value}"' for value in known)

    def problem(attr: ir.Attribute) -> str | None:
        return None if isinstance(attr, ir.StringAttr) and attr.value in known else wanted

    return AttributeKind(
        wanted, lambda value: ir.StringAttr.get(str(value)), lambda attr: values(ir.StringAttr(attr).value), problem
    )


class AttributeField(Generic[T]):
    """A declared attribute; reading it from an op gives the Python value.

    One with a default may be left out of the text, and is where it has that value.
    """

    def __init__(self, kind: AttributeKind[T], default: T | None) -> None:
        self.kind: AttributeKind[T] = kind
        self.default = default
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def is_required(self) -> bool:
        """Whether the attribute must be written."""
        return self.default is None

    def value_in(self, attributes: Mapping[str, ir.Attribute] | ir.OpAttributeMap) -> T:
        """The Python value of the attribute; the default where it is left out."""
        if self.default is not None and self.name not in attributes:
            return self.default
        return self.kind.from_attribute(attributes[self.name])

    def is_default(self, encoded: ir.Attribute) -> bool:
        """Whether a written attribute equals its default."""
        return self.default is not None and encoded == self.kind.to_attribute(self.default)

    @overload
    def __get__(self, op: None, owner: type) -> AttributeField[T]: ...
    @overload
    def __get__(self, op: ir.OpView, owner: type) -> T: ...
    def __get__(self, op: ir.OpView | None, owner: type) -> AttributeField[T] | T:
        return self if op is None else self.value_in(op.operation.attributes)


class AnyOperandField:
    """A declared operand of any multiplicity."""

    def __init__(self, constraint: TypeConstraint) -> None:
        self.constraint = constraint
        self.name = ""
        self.index = 0

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class OperandField(AnyOperandField):
    """A declared operand; reading it from an op gives the value."""

    @overload
    def __get__(self, op: None, owner: type) -> OperandField: ...
    @overload
    def __get__(self, op: ir.OpView, owner: type) -> ir.Value: ...
    def __get__(self, op: ir.OpView | None, owner: type) -> OperandField | ir.Value:
        return self if op is None else op.operation.operands[self.index]


class OptionalOperandField(AnyOperandField):
    """The one operand of an op that may be missing; always the last."""

    @overload
    def __get__(self, op: None, owner: type) -> OptionalOperandField: ...
    @overload
    def __get__(self, op: ir.OpView, owner: type) -> ir.Value | None: ...
    def __get__(self, op: ir.OpView | None, owner: type) -> OptionalOperandField | ir.Value | None:
        if op is None:
            return self
        operands = op.operation.operands
        return operands[self.index] if len(operands) > self.index else None


class VariadicOperandField(AnyOperandField):
    """One or more operands of one kind; always the last."""

    @overload
    def __get__(self, op: None, owner: type) -> VariadicOperandField: ...
    @overload
    def __get__(self, op: ir.OpView, owner: type) -> list[ir.Value]: ...
    def __get__(self, op: ir.OpView | None, owner: type) -> VariadicOperandField | list[ir.Value]:
        return self if op is None else list(op.operation.operands)[self.index :]


class ResultField:
    """The declared result; reading it from an op gives the value."""

    def __init__(self, constraint: TypeConstraint) -> None:
        self.constraint = constraint
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, op: None, owner: type) -> ResultField: ...
    @overload
    def __get__(self, op: ir.OpView, owner: type) -> ir.Value: ...
    def __get__(self, op: ir.OpView | None, owner: type) -> ResultField | ir.Value:
        return self if op is None else op.operation.results[0]


def operand(constraint: TypeConstraint) -> OperandField:
    """Declare an operand."""
    return OperandField(constraint)


def optional_operand(constraint: TypeConstraint) -> OptionalOperandField:
    """Declare the last operand, which may be missing."""
    return OptionalOperandField(constraint)


def variadic_operand(constraint: TypeConstraint) -> VariadicOperandField:
    """Declare the last operand, which stands one or more times."""
    return VariadicOperandField(constraint)


def attribute(kind: AttributeKind[T], default: T | None = None) -> AttributeField[T]:
    """Declare an attribute; one with a `default` may be left out of the text, and is where it has that value."""
    return AttributeField(kind, default)


def result(constraint: TypeConstraint) -> ResultField:
    """Declare the result."""
    return ResultField(constraint)


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
        yield f"has no {_attributes_text(unknown)}; it has {names_text(declared)}"
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


def _attributes_text(names: Sequence[str]) -> str:
    return f"attribute{'s' * (len(names) > 1)} {names_text(names)}"
