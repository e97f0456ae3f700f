"""How an op class declares its operands, attributes and result, and what reading them from an op gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, overload

from qdialect._mlir import ir
from qdialect.dialect.attribute_kinds import AttributeKind
from qdialect.dialect.type_constraints import TypeConstraint

if TYPE_CHECKING:
    from qdialect.dialect.op_base import QnnOp

T = TypeVar("T")


class AttributeField(Generic[T]):
    """A declared attribute; reading it from an op gives the Python value."""

    def __init__(self, kind: AttributeKind[T], default: T | None) -> None:
        self.kind = kind
        self.default = default
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, op: None, owner: type) -> AttributeField[T]: ...
    @overload
    def __get__(self, op: QnnOp, owner: type) -> T: ...
    def __get__(self, op: QnnOp | None, owner: type) -> AttributeField[T] | T:
        if op is None:
            return self
        return self.kind.from_attribute(op.operation.attributes[self.name])


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
    """Declare an attribute; `default` is what the builder writes when it is not given (the text always has it)."""
    return AttributeField(kind, default)


def result(constraint: TypeConstraint) -> ResultField:
    """Declare the result."""
    return ResultField(constraint)
