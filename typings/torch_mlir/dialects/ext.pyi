"""Dialects defined in Python."""

from collections.abc import Callable
from typing import Any, ClassVar

from torch_mlir import ir

class DialectAlreadyLoadedError(RuntimeError): ...

Operand = ir.Value
Result = ir.OpResult
Region = ir.Region

def result(*, default_factory: Callable[[], Any] | None = None, kw_only: bool = False) -> Any: ...
def infer_result() -> Any: ...
def operand(*, kw_only: bool = False) -> Any: ...
def attribute(*, default_factory: Callable[[], Any] | None = None, kw_only: bool = False) -> Any: ...

class Operation(ir.OpView):
    Adaptor: ClassVar[type]
    # The builder of each subclass is generated from its annotations.
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @classmethod
    def __init_subclass__(
        cls, *, name: str | None = None, traits: list[type] | None = None, dialect: type | None = None, **kwargs: Any
    ) -> None: ...
    @classmethod
    def _attach_traits(cls) -> None: ...

class Type(ir.DynamicType):
    @classmethod
    def __init_subclass__(cls, *, name: str | None = None, dialect: type | None = None, **kwargs: Any) -> None: ...

class Attribute(ir.DynamicAttr):
    @classmethod
    def __init_subclass__(cls, *, name: str | None = None, dialect: type | None = None, **kwargs: Any) -> None: ...

_OperationBase = Operation
_TypeBase = Type
_AttributeBase = Attribute

class Dialect(ir.Dialect):
    name: ClassVar[str]
    DIALECT_NAMESPACE: ClassVar[str]
    operations: ClassVar[list[type[_OperationBase]]]
    types: ClassVar[list[type[_TypeBase]]]
    attributes: ClassVar[list[type[_AttributeBase]]]

    class Operation(_OperationBase): ...
    class Type(_TypeBase): ...
    class Attribute(_AttributeBase): ...

    @classmethod
    def __init_subclass__(cls, name: str, **kwargs: Any) -> None: ...
    @classmethod
    def load(cls) -> None: ...
    @classmethod
    def _emit_module(cls) -> ir.Module: ...

class Pure:
    @staticmethod
    def attach(op_name: str) -> None: ...
