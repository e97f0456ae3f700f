"""Plain Python values as MLIR attributes and back: dictionaries, sequences, strings, numbers and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect._mlir import ir

Tree = Mapping[str, "Tree"] | Sequence["Tree"] | str | bool | int | float | ir.Type
"""What can be written: an `int` has 64 bits, a `float` is `f64`."""


def written(value: Tree) -> ir.Attribute:
    """`value` as an attribute of the current context; raises `TypeError` for a value of another kind."""
    if isinstance(value, Mapping):
        return ir.DictAttr.get({name: written(entry) for name, entry in value.items()})
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f64(value)
    if isinstance(value, ir.Type):
        return ir.TypeAttr.get(value)
    return ir.ArrayAttr.get([written(entry) for entry in value])


def read(attribute: ir.Attribute) -> Any:
    """What `written` was given; tuples for sequences. Raises `ValueError` for another kind of attribute."""
    if isinstance(attribute, ir.DictAttr):
        entries = [attribute[i] for i in range(len(attribute))]
        return {entry.name: read(entry.attr) for entry in entries}
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(map(read, attribute))
    if isinstance(attribute, ir.StringAttr | ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr | ir.TypeAttr):
        return attribute.value
    raise ValueError(f"expected a dictionary, array, string, number or type, but got {attribute}")
