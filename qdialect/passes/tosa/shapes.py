"""Shapes that ops compute from constant shapes and from the extents of static tensors."""

from __future__ import annotations

from collections.abc import Callable

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of

Lengths = tuple[int, ...]

_BINARY: dict[str, Callable[[int, int], int]] = {
    "tosa.add_shape": lambda a, b: a + b,
    "tosa.sub_shape": lambda a, b: a - b,
    "tosa.mul_shape": lambda a, b: a * b,
    "tosa.div_ceil_shape": lambda a, b: -(-a // b),
    "tosa.div_floor_shape": lambda a, b: a // b,
    "tosa.mod_shape": lambda a, b: a % b,
    "tosa.max_shape": max,
    "tosa.min_shape": min,
}
_UNARY: dict[str, Callable[[int], int]] = {
    "tosa.exp2_shape": lambda a: 1 << a,
    "tosa.log2_ceil_shape": lambda a: (a - 1).bit_length(),
    "tosa.log2_floor_shape": lambda a: a.bit_length() - 1,
}
_MAX_LENGTH = 2**62
SHAPE_OPS = (*_BINARY, *_UNARY, "tosa.concat_shape", "tosa.dim", "tosa.slice_shape")
"""The ops of which `computed` knows the result."""


def shape_op(value: ir.Value) -> ir.Operation | None:
    """The one of `SHAPE_OPS` that gives `value`; None where none does."""
    owner = value.owner
    return owner.operation if isinstance(owner, ir.Operation | ir.OpView) and owner.name in SHAPE_OPS else None


def computed(op: ir.Operation, lengths: Callable[[ir.Value], Lengths]) -> Lengths | None:
    """The result of one of `SHAPE_OPS`; None where it is without one, as a quotient by 0 is.

    `lengths` gives what an operand is.
    """
    if op.name == "tosa.dim":
        return (shape_of(op.operands[0].type)[ir.IntegerAttr(op.attributes["axis"]).value],)
    operands = [lengths(operand) for operand in op.operands]
    try:
        found = _of_operands(op.name, operands)
    except (ArithmeticError, ValueError):
        return None
    return found if all(abs(one) < _MAX_LENGTH for one in found) else None


def _of_operands(name: str, operands: list[Lengths]) -> Lengths:
    if name == "tosa.concat_shape":
        return tuple(one for operand in operands for one in operand)
    if name == "tosa.slice_shape":
        values, (start,), (size,) = operands
        return values[start : start + size]
    if name == "tosa.exp2_shape" and max(operands[0], default=0) >= _MAX_LENGTH.bit_length():
        raise OverflowError
    if name in _UNARY:
        return tuple(_UNARY[name](one) for one in operands[0])
    return tuple(_BINARY[name](lhs, rhs) for lhs, rhs in zip(*operands, strict=True))
