"""What PyTorch's registry says of an operator: its arguments, their defaults, and whether it writes or shares memory.

An operator is looked up by its name.  Nothing of a program is run by that, and only the packages that the front end
knows are asked; torchao's operators are there once it is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, cast

from qdialect.frontends.torch.model import ELEMENTS, Element
from qdialect.frontends.torch.package import torch_package

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
