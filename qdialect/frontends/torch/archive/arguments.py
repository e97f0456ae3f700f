"""Arguments of nodes, each an object whose one part names its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qdialect.frontends.torch.archive.fields import Field, shown
from qdialect.frontends.torch.archive.weights import dtype_name
from qdialect.frontends.torch.model import Graph, Ref
from qdialect.frontends.torch.schemas import element_of
from qdialect.frontends.torch.symbols import Number

Known = Callable[[Field], str]
"""The name of a tensor; refuses one that is not defined before."""
NumberOf = Callable[[Field], Number]
"""What a number with a name stands for."""
GraphOf = Callable[[Field], Graph]
"""A graph that an operator runs."""

_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_LAYOUTS = {7: "strided"}


def argument_of(argument: Field, known: Known, number_of: NumberOf, graph_of: GraphOf) -> Any:
    """A `Ref`, `Element`, number, string, None, `Graph` or tuple of these, as the arguments of a `Node`.

    Objects, operators and complex numbers are strings that say what they are: no operator that the front end knows
    takes them.  Raises `ImportModelError` for what the schema of the format does not have.
    """
    kind, value = argument.union()
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind in _LISTS:
        return tuple(_SCALARS[_LISTS[kind]](part) for part in value.items())
    if kind == "as_graph":
        return graph_of(value["graph"])
    if kind == "as_tensor":
        return Ref(known(value["name"]))
    if kind == "as_tensors":
        return tuple(Ref(known(part["name"])) for part in value.items())
    if kind in ("as_optional_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"):
        return _one(value, known, number_of)
    if kind in ("as_optional_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools"):
        return tuple(_one(part, known, number_of) for part in value.items())
    return shown(kind)


def _one(value: Field, known: Known, number_of: NumberOf) -> Any:
    """A number, perhaps by its name, or a tensor, or none."""
    kind, held = value.union()
    if kind == "as_tensor":
        return Ref(known(held["name"]))
    if kind == "as_name":
        return number_of(held)
    return _SCALARS[kind](held) if kind in _SCALARS else value.refuse(f"must be known, but got {shown(kind)}")


def _numbered(names: dict[int, str]) -> Callable[[Field], Any]:
    def element(code: Field) -> Any:
        number = code.integer()
        return element_of(names[number]) if number in names else code.refuse(f"must be known, but got {number}")

    return element


_SCALARS: dict[str, Callable[[Field], Any]] = {
    "as_none": lambda _: None,
    "as_bool": Field.boolean,
    "as_int": Field.integer,
    "as_float": Field.number,
    "as_string": lambda text: shown(text.text()),
    "as_scalar_type": lambda code: element_of(dtype_name(code)),
    "as_memory_format": _numbered(_FORMATS),
    "as_layout": _numbered(_LAYOUTS),
    "as_device": lambda device: shown(device["type"].text()),
}
_LISTS = {"as_ints": "as_int", "as_floats": "as_float", "as_bools": "as_bool", "as_strings": "as_string"}
