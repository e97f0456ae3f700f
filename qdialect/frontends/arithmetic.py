"""Upstream ops on tensors of plain numbers: integers, booleans and floats that stand for themselves."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of, shape_of
from qdialect.frontends.op_builder import OpBuilder

_WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


class Arithmetic:
    """Upstream ops of an emitter on tensors of one shape; a number beside them stands for a tensor of it.

    `is_unsigned` says how integers are compared, divided and widened.
    """

    def __init__(self, emitter: OpBuilder, is_unsigned: bool = False) -> None:
        self._emitter = emitter
        self._is_unsigned = is_unsigned

    def op(self, name: str, first: ir.Value, *others: ir.Value | float) -> ir.Value:
        """The op `name`, whose result has the type of its operands; ``{s}`` in the name is the sign of the type."""
        values = [self._filled(other, first) for other in others]
        return self._emitter.float_op(name.format(s=self._sign(first)), first, *values)

    def compare(self, predicate: str, lhs: ir.Value, rhs: ir.Value | float) -> ir.Value:
        """i1 where ``lhs predicate rhs``: eq, ne, lt, le, gt or ge; of floats ordered, but for ne."""
        numbers = _FLOAT_PREDICATES if element_of(lhs.type) == "f32" else _INTEGER_PREDICATES
        prefix = self._sign(lhs) if numbers is _INTEGER_PREDICATES and predicate not in ("eq", "ne") else ""
        return self._emitter.compare(numbers[prefix + predicate], lhs, self._filled(rhs, lhs))

    def select(self, condition: ir.Value, lhs: ir.Value | float, rhs: ir.Value | float) -> ir.Value:
        """`lhs` where `condition` holds, `rhs` elsewhere; one of them is a tensor."""
        like = lhs if isinstance(lhs, ir.Value) else rhs
        assert isinstance(like, ir.Value)
        return self._emitter.select(condition, self._filled(lhs, like), self._filled(rhs, like))

    def convert(self, name: str, value: ir.Value, element: str) -> ir.Value:
        """`value` by an upstream conversion."""
        return self._emitter.convert(name, value, element)

    def resize(self, value: ir.Value, element: str) -> ir.Value:
        """An integer or i1 with the width of `element`."""
        found = element_of(value.type)
        if _WIDTHS[found] == _WIDTHS[element]:
            return value
        widens = "arith.extui" if self._is_unsigned or found == "i1" else "arith.extsi"
        return self.convert(widens if _WIDTHS[found] < _WIDTHS[element] else "arith.trunci", value, element)

    @property
    def is_unsigned(self) -> bool:
        """How integers are compared, divided and widened."""
        return self._is_unsigned

    def _sign(self, value: ir.Value) -> str:
        """Of a true i1, which counts as 1, the sign bit is set."""
        return "u" if self._is_unsigned or element_of(value.type) == "i1" else "s"

    def _filled(self, number: ir.Value | float, like: ir.Value) -> ir.Value:
        if isinstance(number, ir.Value):
            return number
        dtype = NUMPY_DTYPES[element_of(like.type)]
        # Upstream integers are bits: 200 of an unsigned byte is -56.
        return self._emitter.constant(np.broadcast_to(np.array(number).astype(dtype), shape_of(like.type)))


# Numbers of the predicates of arith.cmpf and arith.cmpi.
_FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}
_INTEGER_PREDICATES = {
    "eq": 0,
    "ne": 1,
    "slt": 2,
    "sle": 3,
    "sgt": 4,
    "sge": 5,
    "ult": 6,
    "ule": 7,
    "ugt": 8,
    "uge": 9,
}
