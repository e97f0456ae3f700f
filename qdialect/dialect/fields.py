"""How an op class declares its operands, attributes and result, and what reading them from an op gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from qdialect._mlir import ir
from qdialect.dialect.attribute_kinds import AttributeKind
from qdialect.dialect.type_constraints import TypeConstraint

if TYPE_CHECKING:
    from qdialect.dialect.op_base import QnnOp

T = TypeVar("T")


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
        """Whether a written attribute says what its absence says."""
        return self.default is not None and encoded == self.kind.to_attribute(self.default)

    @overload
    def __get__(self, op: None, owner: type) -> AttributeField[T]: ...
    @overload
    def __get__(self, op: QnnOp, owner: type) -> T: ...
    def __get__(self, op: QnnOp | None, owner: type) -> AttributeField[T] | T:
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
    def __get__(self, op: QnnOp, owner: type) -> ir.Value: ...
    def __get__(self, op: QnnOp | None, owner: type) -> OperandField | ir.Value:
        return self if op is None else op.operation.operands[self.index]


class OptionalOperandField(AnyOperandField):
    """The one operand of an op that may be missing; always the last."""

    @overload
    def __get__(self, op: None, owner: type) -> OptionalOperandField: ...
    @overload
    def __get__(self, op: QnnOp, owner: type) -> ir.Value | None: ...
    def __get__(self, op: QnnOp | None, owner: type) -> OptionalOperandField | ir.Value | None:
        if op is None:
            return self
        operands = op.operation.operands
        return operands[self.index] if len(operands) > self.index else None


class VariadicOperandField(AnyOperandField):
    """One or more operands of one kind; always the last."""

    @overload
    def __get__(self, op: None, owner: type) -> VariadicOperandField: ...
    @overload
    def __get__(self, op: QnnOp, owner: type) -> list[ir.Value]: ...
    def __get__(self, op: QnnOp | None, owner: type) -> VariadicOperandField | list[ir.Value]:
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
    def __get__(self, op: QnnOp, owner: type) -> ir.Value: ...
    def __get__(self, op: QnnOp | None, owner: type) -> ResultField | ir.Value:
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
    """What the verifier asks about an attribute."""

    @property
    def kind(self) -> AttributeKind[Any]:
        """What it may be."""
        ...

    @property
    def is_required(self) -> bool:
        """Whether it must be written."""
        ...


def attribute_violations(found: Mapping[str, ir.Attribute], declared: Mapping[str, DeclaredAttribute]) -> Iterator[str]:
    """What is wrong with written attributes: those unknown, those missing, those of another kind.

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
