"""Tensors that are made of others, such as the weights that torchao's ``quantize_`` puts into a model.

PyTorch calls them traceable wrapper subclasses.  A graph holds what they are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any


def is_wrapper(tensor: Any) -> bool:
    """Whether a tensor is made of others."""
    return bool(import_module("torch.utils._python_dispatch").is_traceable_wrapper_subclass(tensor))


def without_wrappers(program: Any) -> Any:
    """An exported program whose parameters and buffers are plain tensors."""
    held = (*program.state_dict.values(), *program.constants.values())
    return program.run_decompositions({}) if any(map(is_wrapper, held)) else program


@dataclass(frozen=True)
class Wrapper:
    """How an argument of a call is made of plain ones."""

    kind: Any
    """Its class, None for an argument that is plain itself."""
    parts: tuple[tuple[str, Wrapper], ...] = ()
    """The attributes that hold tensors."""
    context: Any = None
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    @classmethod
    def of(cls, argument: Any) -> Wrapper:
        """How `argument` is made."""
        if not is_wrapper(argument):
            return cls(None)
        names, context = argument.__tensor_flatten__()
        parts = tuple((name, cls.of(getattr(argument, name))) for name in names)
        return cls(type(argument), parts, context, tuple(argument.shape), tuple(argument.stride()))

    def plain(self, argument: Any) -> Iterator[Any]:
        """The plain arguments of which one is made."""
        if self.kind is None:
            yield argument
        for name, part in self.parts:
            yield from part.plain(getattr(argument, name))

    def made(self, plain: Iterator[Any]) -> Any:
        """An argument made of the next plain ones."""
        if self.kind is None:
            return next(plain)
        parts = {name: part.made(plain) for name, part in self.parts}
        return self.kind.__tensor_unflatten__(parts, self.context, self.shape, self.strides)


@dataclass(frozen=True)
class Wrapped:
    """The arguments of a call, which may be made of others."""

    arguments: tuple[Wrapper, ...]

    @classmethod
    def of(cls, arguments: Sequence[Any]) -> Wrapped:
        """How `arguments` are made."""
        return cls(tuple(map(Wrapper.of, arguments)))

    def plain(self, arguments: Sequence[Any]) -> list[Any]:
        """The plain arguments of which `arguments` are made, in order."""
        pairs = zip(self.arguments, arguments, strict=True)
        return [part for wrapper, argument in pairs for part in wrapper.plain(argument)]

    def plain_constants(self, arguments: Sequence[Any]) -> list[Any]:
        """As `plain`; what a parameter or buffer is made of is noted as Dynamo notes parameters and buffers."""
        dynamo: Any = import_module("torch._dynamo")
        is_static: Any = import_module("torch._dynamo.utils").get_static_address_type
        for wrapper, argument in zip(self.arguments, arguments, strict=True):
            if wrapper.parts and is_static(argument) is not None:
                for part in wrapper.plain(argument):
                    dynamo.mark_static_address(part, guard=False)
        return self.plain(arguments)

    def made(self, plain: Sequence[Any]) -> list[Any]:
        """The arguments that are made of plain ones."""
        remaining = iter(plain)
        return [wrapper.made(remaining) for wrapper in self.arguments]
