"""Loads PyTorch, reads its operator registry, and calls its operators with checked arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np

from qdialect.frontends.building.checks import Array, UnsupportedError, require
from qdialect.frontends.torch.program.model import ELEMENTS, NARROW, Element, Node, Ref
from qdialect.support.diagnostics import ImportModelError


def torch_package() -> Any:
    """The module `torch`, with the operators of PT2E registered.

    Raises `ImportModelError` where the package is not installed.
    """
    try:
        torch = import_module("torch")
    except ImportError as error:
        needed = "needs the package 'torch', which the extra 'torch' brings: pip install 'qdialect[torch]'"
        raise ImportModelError(f"reading .pt2 files {needed}") from error
    import_module("torch.ao.quantization.fx._decomposed")
    return torch


# PyTorch's registry entry of an operator: its arguments, their defaults, and whether it writes or shares memory.
#
# An operator is looked up by its name.  Nothing of a program is run by that, and only the packages that the front end
# knows are asked; torchao's operators are there once it is imported.

_PACKAGES = ("aten", "quantized_decomposed", "torchao")


@cache
def schema_of(kind: str) -> Any:
    """The schema of an operator ``package.operator.overload``, None where no known package that is installed has it."""
    package, _, rest = kind.partition(".")
    name, _, overload = rest.partition(".")
    if package not in _PACKAGES:
        return None
    if package == "torchao":
        with suppress(ImportError):
            import_module("torchao.quantization")
    try:
        return torch_package()._C._get_schema(f"{package}::{name}", "" if overload == "default" else overload)
    except RuntimeError:
        return None


def defaults_of(schema: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of the arguments of a schema that are not given."""
    return {a.name: default_of(a.default_value) for a in schema.arguments if a.name not in given}


def default_of(value: Any) -> Any:
    """A default of a schema as the argument of a node."""
    if isinstance(value, list):
        return tuple(default_of(part) for part in cast("list[Any]", value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    name = str(value)
    return element_of(name) if name.startswith("torch.") else name


def element_of(name: str) -> Element:
    """The argument for a dtype, a layout or a memory format of PyTorch, given its name."""
    name = name.removeprefix("torch.")
    return Element(ELEMENTS.get(name, name))


def is_check(kind: str) -> bool:
    """Whether an operator gives nothing, but checks what it reads."""
    schema = schema_of(kind)
    return schema is not None and not schema.returns and not schema.is_mutable


def is_view(schema: Any) -> bool:
    """Whether a result of the operator shares the memory of an operand."""
    return any(result.alias_info is not None and not result.alias_info.is_write for result in schema.returns)


# Calls of PyTorch's own operators by their names, with the arguments of a node, whose types are checked first.

_TORCH_NAMES = {ours: torch for torch, ours in ELEMENTS.items()}
# Values of arguments that are attributes of the package, by the type that the schema gives them.
_ATTRIBUTES = {
    "ScalarType": frozenset(
        ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", *NARROW]
    ),
    "Layout": frozenset(["strided"]),
    "MemoryFormat": frozenset(["contiguous_format", "preserve_format", "channels_last"]),
}
_TYPES: dict[str, tuple[type, ...]] = {
    "Tensor": (Ref, bool, int, float),
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "number": (bool, int, float),
    "str": (str,),
}


def call_operator(
    node: Node, tensor_of: Callable[[str], Any], device: str, instead: Callable[..., Any] | None = None
) -> Any:
    """The result of the operator of a node, or of `instead`, with ``tensor_of(name)`` for each tensor, on a device.

    Raises `UnsupportedError` for arguments of other types than its schema names, and where the operator fails.
    """
    torch, parameters = torch_package(), parameters_of(node.kind)
    unknown = node.arguments.keys() - {parameter.name for parameter in parameters}
    require(not unknown, f"operator must not have arguments {sorted(unknown)}")
    for parameter in parameters:
        parameter.check(node.arguments.get(parameter.name))
    try:
        positional, named = _arguments(torch, node, tensor_of, device)
        with torch.no_grad():
            return (instead or operator_of(node.kind))(*positional, **named)
    except UnsupportedError:
        raise
    except Exception as error:
        # Operators raise whatever their kernels do, AssertionError among it.
        raise UnsupportedError(f"operator must take the arguments: {first_line(error)}") from error


def operator_of(kind: str) -> Any:
    """The operator ``package.operator.overload`` in PyTorch's registry."""
    package, name, overload = kind.split(".")
    return getattr(getattr(getattr(torch_package().ops, package), name), overload)


def overloads_of(name: str) -> list[str]:
    """The overloads of ``package.operator``; none where PyTorch has no such operator."""
    package, _, operator = name.partition(".")
    found = getattr(getattr(torch_package().ops, package), operator, None)
    return [] if found is None else list(found.overloads())


def dtype_of(element: str) -> Any:
    """PyTorch's dtype of an element type; raises `UnsupportedError` where it has none of this name."""
    name = _TORCH_NAMES.get(element, element)
    require(name in _ATTRIBUTES["ScalarType"], f"element type must be known, but got {element}")
    return getattr(torch_package(), name)


def tensor_of(array: Array) -> Any:
    """A tensor in the memory of an array, or in its own where an array cannot be written to."""
    torch = torch_package()
    # PyTorch wants memory that it could write to.
    held = array if array.flags.writeable else np.array(array)
    if held.dtype.name not in NARROW:
        return torch.from_numpy(held)
    return torch.from_numpy(held.view(f"u{held.itemsize}")).view(getattr(torch, held.dtype.name))


def array_of(tensor: Any) -> Array:
    """The array of a tensor, in its memory and with its strides; see `held_dtype`."""
    name = str(tensor.dtype).removeprefix("torch.")
    plain = tensor.detach().cpu()
    if name not in NARROW:
        return plain.resolve_conj().resolve_neg().numpy()
    held = NARROW[name]
    return plain.view(getattr(torch_package(), f"uint{8 * held.itemsize}")).numpy().view(held)


def widened(array: Array) -> Array:
    """An array whose type NumPy has: floats of others as float32 numbers, which have all their values."""
    return array.astype(np.float32) if array.dtype.name in NARROW else array


def first_line(error: Exception) -> str:
    """The first line of an error."""
    return next(iter(str(error).splitlines()), type(error).__name__)


@dataclass(frozen=True)
class Parameter:
    """An argument of an operator: its type, and whether PyTorch takes it by its name alone."""

    name: str
    kind: str
    is_named: bool
    has_default: bool
    default: Any

    def is_default(self, value: Any) -> bool:
        """Whether an argument is the one that is taken where none is given."""
        return self.has_default and value == self.default

    def check(self, value: Any) -> None:
        """Raise `UnsupportedError` for another type: PyTorch's own kernels trust some, and crash for others."""
        # A device is chosen here, not by the program.
        if self.name != "device" and not self.is_default(value):
            fits = _fits(self.kind, value)
            require(fits, f"argument '{self.name}' must be of type {self.kind}, but got {value}")


@cache
def parameters_of(kind: str) -> tuple[Parameter, ...]:
    """The arguments of an operator that PyTorch's registry has."""
    return tuple(
        Parameter(
            argument.name,
            str(argument.real_type),
            argument.kwarg_only,
            argument.has_default_value(),
            default_of(argument.default_value),
        )
        for argument in schema_of(kind).arguments
    )


def _fits(kind: str, value: Any) -> bool:
    """Whether an argument has a type of PyTorch's schemas."""
    outer, _, inner = kind.removesuffix("]").partition("[")
    if outer == "Optional":
        return value is None or _fits(kind.removeprefix("Optional[").removesuffix("]"), value)
    if outer == "List":
        if not isinstance(value, tuple):
            return inner == "int" and isinstance(value, int)
        return all(_fits(inner, part) for part in cast("tuple[Any, ...]", value))
    if outer in _ATTRIBUTES:
        return isinstance(value, Element) and torch_name(value) in _ATTRIBUTES[outer]
    return isinstance(value, _TYPES.get(kind, ()))


def _arguments(
    torch: Any, node: Node, tensor_of: Callable[[str], Any], device: str
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments by position and by name, as PyTorch takes them."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in parameters_of(node.kind):
        value = node.arguments[parameter.name]
        held = torch.device(device) if parameter.name == "device" else _held(torch, value, tensor_of)
        if not parameter.is_named:
            positional.append(held)
        elif parameter.name == "device" or not parameter.is_default(value):
            named[parameter.name] = held
    return positional, named


def _held(torch: Any, argument: Any, tensor_of: Callable[[str], Any]) -> Any:
    """An argument as PyTorch takes it."""
    if isinstance(argument, Ref):
        return tensor_of(argument.name)
    if isinstance(argument, tuple):
        return [_held(torch, part, tensor_of) for part in cast("tuple[Any, ...]", argument)]
    return getattr(torch, torch_name(argument)) if isinstance(argument, Element) else argument


def torch_name(element: Element) -> str:
    """PyTorch's name of a dtype, a layout or a memory format."""
    return _TORCH_NAMES.get(element.name, element.name)
