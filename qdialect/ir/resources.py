"""Constants that stand in a section of their own at the end of a text: `dense_resource<name>`.

The bindings make such attributes and print them, and do not read them. Here their data is read from the print, and
modules that were parsed get ordinary dense constants instead, which everything else reads.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from qdialect.ir._mlir import ir, walk

# The data after the alignment, which takes 4 bytes.
_DATA = re.compile(r'"0x[0-9A-F]{8}([0-9A-F]*)"')
_NAME = re.compile(r'dense_resource<"?(.+?)"?>')
_HOLDER = "qnn.resource"


def is_resource(attribute: ir.Attribute) -> bool:
    """Whether `attribute` is a `dense_resource`."""
    if isinstance(attribute, ir.DenseElementsAttr):
        # The error of the conversion would have all of its elements as text.
        return False
    try:
        return bool(ir.DenseResourceElementsAttr(attribute))
    except ValueError:
        return False


def resource(name: str, array: NDArray[np.uint8]) -> ir.Attribute:
    """A `dense_resource` of `i8` elements with the bytes of `array`; it lives as long as the current context."""
    type_ = ir.RankedTensorType.get([array.size], ir.IntegerType.get_signless(8))
    return ir.DenseResourceElementsAttr.get_from_buffer(array, name, type_, alignment=64)


def resolved(attribute: ir.Attribute) -> ir.Attribute:
    """The dense constant that a `dense_resource` with data stands for; every other attribute is itself."""
    return (_dense(attribute) if is_resource(attribute) else None) or attribute


def problem(attribute: ir.Attribute) -> str | None:
    """Why the elements of `attribute` cannot be read, where it is a `dense_resource`; None where they can."""
    if not is_resource(attribute) or _dense(attribute):
        return None
    found = _NAME.match(str(attribute))
    name = f"dense_resource '{found[1] if found else attribute}'"
    if _data(attribute) is None:
        return f"{name} has no data"
    return f"the data of {name} does not fit {ir.DenseResourceElementsAttr(attribute).type}"


def inline(module: ir.Module) -> None:
    """Replace every `dense_resource` with data on the ops of `module` by a dense constant.

    One without data, as an elided print has it, stays: the lowering and the interpreter refuse it.
    """

    def visit(op: ir.Operation) -> ir.WalkResult:
        for name, attribute in list(op.attributes.items()):
            if is_resource(attribute):
                op.attributes[name] = resolved(attribute)
        return ir.WalkResult.ADVANCE

    walk(module.operation, visit)


def _dense(attribute: ir.Attribute) -> ir.Attribute | None:
    """The same elements as a dense attribute; None if they are absent or their number does not match the type."""
    type_ = ir.ShapedType(ir.DenseResourceElementsAttr(attribute).type)
    text = _data(attribute)
    bits = type_.element_type.width if isinstance(type_.element_type, ir.IntegerType | ir.FloatType) else 0
    if text is None or bits % 8 or not bits or not type_.has_static_shape:
        return None
    count = int(np.prod(type_.shape, dtype=object))
    if len(text) != count * bits // 4:
        return None
    return ir.Attribute.parse(f'dense<"0x{text}"> : {type_}' if count else f"dense<> : {type_}", attribute.context)


def _data(attribute: ir.Attribute) -> str | None:
    """The data in hexadecimal digits, out of the print of a module that has nothing else."""
    with attribute.context, ir.Location.unknown():
        holder = ir.Module.create()
        holder.operation.attributes[_HOLDER] = attribute
        found = _DATA.search(holder.operation.get_asm())
    return found[1] if found else None
