"""Upstream ops on tensors of one shape, which plain integers, booleans and floats become."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.arithmetic.expressions import Expression, fold
from qdialect.dialect import BroadcastOp, ReshapeOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of, shape_of
from qdialect.ir._mlir import ir

_FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "ne": 13}
_INTEGER_PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "gt": 4, "ge": 5, "ult": 6}
_WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def apply(name: str, first: ir.Value, *others: ir.Value | float) -> ir.Value:
    """The element-wise op `name`; a number stands for a tensor of it, and the result has the type of `first`."""
    operands = [first, *(filled(other, first) for other in others)]
    return ir.Operation.create(name, results=[first.type], operands=operands).results[0]


def filled(number: ir.Value | float, like: ir.Value) -> ir.Value:
    """A tensor of the type of `like` whose elements are all `number`; itself where it is a tensor."""
    if isinstance(number, ir.Value):
        return number
    array = np.array(number, NUMPY_DTYPES[element_of(like.type)])
    return constant(np.broadcast_to(array, shape_of(like.type)) if shape_of(like.type) else array)


def compare(predicate: str, lhs: ir.Value, rhs: ir.Value | float) -> ir.Value:
    """i1 where ``lhs predicate rhs``: eq, ne, gt or ge, of integers lt and ult too; of floats ordered, but for ne."""
    is_float = element_of(lhs.type) == "f32"
    number = (_FLOAT_PREDICATES if is_float else _INTEGER_PREDICATES)[predicate]
    attributes = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
    bits = ir.RankedTensorType.get(list(shape_of(lhs.type)), ir.IntegerType.get_signless(1))
    name = "arith.cmpf" if is_float else "arith.cmpi"
    return ir.Operation.create(name, [bits], [lhs, filled(rhs, lhs)], attributes).results[0]


def select(condition: ir.Value, lhs: ir.Value, rhs: ir.Value | float) -> ir.Value:
    """`lhs` where the i1 tensor `condition` holds, `rhs` elsewhere."""
    return ir.Operation.create("arith.select", [lhs.type], [condition, lhs, filled(rhs, lhs)]).results[0]


def convert(name: str, value: ir.Value, element: str) -> ir.Value:
    """`value` by an upstream conversion to another element type."""
    type_ = ir.RankedTensorType.get(list(shape_of(value.type)), ir.Type.parse(element))
    return ir.Operation.create(name, results=[type_], operands=[value]).results[0]


def resized(value: ir.Value, element: str, *, is_unsigned: bool = False) -> ir.Value:
    """An integer of another width, by its sign or without; a boolean is 0 or 1."""
    found = element_of(value.type)
    if found == element:
        return value
    if _WIDTHS[found] > _WIDTHS[element]:
        return convert("arith.trunci", value, element)
    return convert("arith.extui" if is_unsigned or found == "i1" else "arith.extsi", value, element)


def without_sign(value: ir.Value) -> ir.Value:
    """The bits of an unsigned tensor, which upstream ops do not know; itself where it is not unsigned."""
    element = element_of(value.type)
    return convert("tensor.bitcast", value, element[1:]) if element.startswith("u") else value


def spread(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """`value` repeated up to `shape`; itself where it has that shape."""
    if shape_of(value.type) == tuple(shape):
        return value
    return build(BroadcastOp, value, element=element_of(value.type), shape=tuple(shape)).output


def reshaped(value: ir.Value, shape: tuple[int, ...]) -> ir.Value:
    """`value` in another shape."""
    return build(ReshapeOp, value, element=element_of(value.type), shape=shape).output


def expression(formula: Expression, *operands: ir.Value) -> ir.Value:
    """A function of f32 tensors of one shape, by the upstream ops of its tree."""
    first = operands[0]

    def node(name: str, values: Sequence[ir.Value]) -> ir.Value:
        if name == "arith.cmpf":
            return compare("gt", *values)
        return select(*values) if name == "arith.select" else apply(name, *values)

    return fold(formula, operands, None, lambda number: filled(number, first), node)


def concatenate(values: Sequence[ir.Value], axis: int) -> ir.Value:
    """Values of one element type side by side along `axis`, whatever their number."""
    shape = list(shape_of(values[0].type))
    shape[axis] = sum(shape_of(value.type)[axis] for value in values)
    type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(values[0].type).element_type)
    attributes = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)}
    return ir.Operation.create("tensor.concat", [type_], list(values), attributes).results[0]
