"""Says what exact formulas are written for, a machine that runs ops of `arith` and `math`; NumPy arrays are one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

from qdialect.arithmetic.expressions import FLOAT_FUNCTIONS, SIGNED_FUNCTIONS, UNSIGNED_FUNCTIONS, ArrayFunction
from qdialect.arithmetic.multipliers import INT32_MAX, INT32_MIN

V = TypeVar("V")


class Machine(Protocol[V]):
    """Runs ops by their MLIR names on values `V` of types ``i8`` to ``i64``, ``f32`` and ``f64``; integers wrap around.

    The scalar body of a kernel is one such machine, NumPy arrays are another.  Both run the same ops in the same order,
    so that a formula is written once.
    """

    def constant(self, value: float, type_: str, /) -> V:
        """A value of a type."""
        ...

    def unary(self, op: str, value: V, /) -> V:
        """``op value``, of the same type."""
        ...

    def binary(self, op: str, lhs: V, rhs: V, /) -> V:
        """``op lhs, rhs``, of the type of both."""
        ...

    def add(self, lhs: V, rhs: V, /) -> V:
        """lhs + rhs."""
        ...

    def subtract(self, lhs: V, rhs: V, /) -> V:
        """lhs - rhs."""
        ...

    def multiply(self, lhs: V, rhs: V, /) -> V:
        """lhs * rhs."""
        ...

    def cast(self, op: str, value: V, target: str, /) -> V:
        """``op value`` as a value of type `target`."""
        ...

    def compare(self, predicate: str, lhs: V, rhs: V, /) -> V:
        """``lhs predicate rhs``, an i1, by the predicates of `arith.cmpf` and `arith.cmpi`."""
        ...

    def select(self, condition: V, then: V, other: V, /) -> V:
        """`then` where `condition` holds, else `other`."""
        ...

    def clamp(self, value: V, low: V, high: V, /) -> V:
        """`value` limited to [`low`, `high`]."""
        ...


# The machine on NumPy arrays.

_FUNCTIONS: Mapping[str, ArrayFunction] = {**FLOAT_FUNCTIONS, **SIGNED_FUNCTIONS}
# By the predicates of `arith.cmpi` and `arith.cmpf` without the letter for signed integers or ordered floats.
_PREDICATES: Mapping[str, ArrayFunction] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
}


class NumpyMachine:
    """Arrays, or NumPy's numbers, of the dtypes that the types have; see `Machine`."""

    add: Callable[..., Any] = staticmethod(np.add)
    subtract: Callable[..., Any] = staticmethod(np.subtract)
    multiply: Callable[..., Any] = staticmethod(np.multiply)
    select: Callable[..., Any] = staticmethod(np.where)
    clamp: Callable[..., Any] = staticmethod(np.clip)

    def constant(self, value: float, type_: str) -> Any:
        """See `Machine`."""
        return _dtype(type_).type(value)

    def unary(self, op: str, value: Any) -> Any:
        """See `Machine`."""
        return _FUNCTIONS[op](value)

    def binary(self, op: str, lhs: Any, rhs: Any) -> Any:
        """See `Machine`."""
        if op in UNSIGNED_FUNCTIONS:
            return UNSIGNED_FUNCTIONS[op](_unsigned(lhs), _unsigned(rhs)).view(lhs.dtype)
        return _FUNCTIONS[op](lhs, rhs)

    def cast(self, op: str, value: Any, target: str) -> Any:
        """See `Machine`."""
        return (_unsigned(value) if op == "arith.extui" else value).astype(_dtype(target))

    def compare(self, predicate: str, lhs: Any, rhs: Any) -> Any:
        """See `Machine`."""
        return _PREDICATES[predicate[-2:]](lhs, rhs)


def _dtype(type_: str) -> np.dtype[Any]:
    """Of ``i32`` and the like."""
    return np.dtype(f"{type_[0]}{int(type_[1:]) // 8}")


def _unsigned(value: Any) -> Any:
    return value.view(f"u{value.itemsize}")


NUMPY: Machine[Any] = NumpyMachine()
"""What the reference runs formulas on."""


# Fixed point as gemmlowp has it, of 32-bit numbers in i64.


def doubling_high(m: Machine[V], a: V, b: V) -> V:
    """``(a * b + 2^30) >> 31``; saturation is out of reach, as no operand is -2^31."""
    nudged = m.add(m.multiply(a, b), m.constant(2**30, "i64"))
    return m.binary("arith.shrsi", nudged, m.constant(31, "i64"))


def saturated_left(m: Machine[V], value: V, shift: int) -> V:
    """``value << shift``, saturated to 32 bits."""
    shifted = m.binary("arith.shli", value, m.constant(shift, "i64"))
    return m.clamp(shifted, m.constant(INT32_MIN, "i64"), m.constant(INT32_MAX, "i64"))


def rounded_right(m: Machine[V], value: V, shift: V) -> V:
    """``value / 2^shift`` with ties away from zero."""
    one, zero = m.constant(1, "i64"), m.constant(0, "i64")
    mask = m.subtract(m.binary("arith.shli", one, shift), one)
    is_negative = m.compare("slt", value, zero)
    threshold = m.binary("arith.shrui", mask, one)
    above = m.add(threshold, one)
    threshold = m.select(is_negative, above, threshold)
    rest = m.binary("arith.andi", value, mask)
    rounds_up = m.compare("sgt", rest, threshold)
    whole = m.binary("arith.shrsi", value, shift)
    return m.add(whole, m.select(rounds_up, one, zero))
