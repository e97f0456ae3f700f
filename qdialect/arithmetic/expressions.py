"""Builds functions of float values as trees of ops of `arith` and `math`, and computes each op on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from qdialect.arithmetic import float32
from qdialect.arithmetic.machine import BIT_FUNCTIONS, ArrayFunction
from qdialect.arithmetic.quantization import FloatArray
from qdialect.arithmetic.transcendental import IN_FLOAT64, evaluate, power


def _inverse_root(x: FloatArray) -> FloatArray:
    return 1 / np.sqrt(x)


FLOAT_FUNCTIONS: Mapping[str, ArrayFunction] = {
    **BIT_FUNCTIONS,
    "math.powf": partial(evaluate, power),
    "math.rsqrt": _inverse_root,
    "math.sqrt": np.sqrt,
    **{op: partial(evaluate, algorithm) for op, algorithm in IN_FLOAT64.items()},
    **{op: partial(float32.evaluate, op) for op in float32.ALGORITHMS},
}
"""Of floats, and of bits whatever their sign: what a kernel computes."""
TABLE_FUNCTIONS: Mapping[str, ArrayFunction] = {
    **FLOAT_FUNCTIONS,
    **{op: partial(evaluate, IN_FLOAT64[op]) for op in float32.ALGORITHMS},
}
"""The same with transcendental functions that are rounded from float64: what tables are built from."""

# A tree is written as a formula, ``1 / (1 + (-X).apply("math.exp"))``, and is called as a function of arrays.  Whoever
# builds ops, emits them into a kernel or looks for them folds the same tree, so that all of them round after the same
# operations.

T = TypeVar("T")


@dataclass(frozen=True)
class Expression:
    """A function of float values; numbers in its place stand for constants, rounded to the type of the values."""

    def apply(self, op: str, *others: Expression | float) -> Expression:
        """The op on this and `others`."""
        return Node(op, (self, *map(_of, others)))

    def __call__(self, *inputs: FloatArray, alpha: float = 0.0) -> FloatArray:
        """The function of arrays of one float type, which the result has too; every operation is rounded to it.

        Transcendental functions are rounded from float64: this is what tables hold.
        """
        return _evaluated(self, inputs, alpha, TABLE_FUNCTIONS)

    def in_kernel(self, *inputs: FloatArray, alpha: float = 0.0) -> FloatArray:
        """The function of float32 arrays with the bits that a kernel computes (see `qdialect.arithmetic.float32`)."""
        return _evaluated(self, inputs, alpha, FLOAT_FUNCTIONS)

    def of(self, *inputs: Expression) -> Expression:
        """The function of `inputs`."""
        return fold(self, inputs, Alpha(), Number, lambda op, operands: Node(op, tuple(operands)))

    def __add__(self, other: Expression | float) -> Expression:
        return self.apply("arith.addf", other)

    def __radd__(self, other: float) -> Expression:
        return Number(other) + self

    def __sub__(self, other: Expression | float) -> Expression:
        return self.apply("arith.subf", other)

    def __mul__(self, other: Expression | float) -> Expression:
        return self.apply("arith.mulf", other)

    def __rmul__(self, other: float) -> Expression:
        return Number(other) * self

    def __truediv__(self, other: Expression | float) -> Expression:
        return self.apply("arith.divf", other)

    def __rtruediv__(self, other: float) -> Expression:
        return Number(other) / self

    def __neg__(self) -> Expression:
        return self.apply("arith.negf")

    def __abs__(self) -> Expression:
        return self.apply("math.absf")

    def at_least(self, bound: Expression | float) -> Expression:
        """`bound` where it is greater; this elsewhere, so that NaN and a zero of either sign stay.

        Kernels of frameworks clamp so, because it is one instruction, ``maxps(bound, self)``.
        """
        limit = _of(bound)
        return limit.apply("arith.cmpf", self).apply("arith.select", limit, self)

    def at_most(self, bound: Expression | float) -> Expression:
        """`bound` where it is smaller; this elsewhere."""
        return self.apply("arith.cmpf", bound).apply("arith.select", bound, self)

    def where_positive(self, then: Expression, other: Expression) -> Expression:
        """`then` where this is positive, `other` elsewhere."""
        return self.apply("arith.cmpf", 0.0).apply("arith.select", then, other)


@dataclass(frozen=True)
class Input(Expression):
    """A value that the function takes."""

    index: int = 0


@dataclass(frozen=True)
class Alpha(Expression):
    """The parameter of a function, a number that is known where the tree is folded."""


@dataclass(frozen=True)
class Number(Expression):
    """A constant."""

    value: float


@dataclass(frozen=True)
class Node(Expression):
    """One op on its operands; ``arith.cmpf`` is "greater than"."""

    op: str
    operands: tuple[Expression, ...]


def _of(operand: Expression | float) -> Expression:
    return operand if isinstance(operand, Expression) else Number(operand)


def fold(
    expression: Expression,
    inputs: Sequence[T],
    alpha: T | None,
    number: Callable[[float], T],
    apply: Callable[[str, Sequence[T]], T],
) -> T:
    """The results of `apply` for the nodes of a tree, from its leaves upwards; once for a part that stands in it twice.

    `number` makes a constant; `alpha` may be None where the tree is without a parameter.
    """
    found: dict[int, T] = {}

    def folded(one: Expression) -> T:
        if id(one) not in found:
            found[id(one)] = of(one)
        return found[id(one)]

    def of(one: Expression) -> T:
        if isinstance(one, Input):
            return inputs[one.index]
        if isinstance(one, Number):
            return number(one.value)
        if isinstance(one, Node):
            return apply(one.op, [folded(operand) for operand in one.operands])
        assert alpha is not None, "the function has a parameter"
        return alpha

    return folded(expression)


def has_parameter(expression: Expression) -> bool:
    """Whether `Alpha` is a leaf of a tree."""
    if isinstance(expression, Node):
        return any(has_parameter(operand) for operand in expression.operands)
    return isinstance(expression, Alpha)


def _evaluated(
    expression: Expression, inputs: Sequence[FloatArray], alpha: float, functions: Mapping[str, ArrayFunction]
) -> FloatArray:
    dtype = inputs[0].dtype

    def apply(op: str, operands: Sequence[Any]) -> Any:
        return np.greater(*operands) if op == "arith.cmpf" else functions[op](*operands)

    with np.errstate(all="ignore"):
        numbers = np.asarray(alpha, dtype)
        return fold(expression, inputs, numbers, lambda value: np.asarray(value, dtype), apply)
