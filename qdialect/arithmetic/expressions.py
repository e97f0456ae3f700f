"""Builds functions of float values as trees of ops of `arith` and `math`, and says what each op computes on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import float32, real_functions
from qdialect.arithmetic.choices import FloatRounding
from qdialect.arithmetic.float32.machine import multiply_add
from qdialect.arithmetic.quantization import FloatArray, round_f32

# What the element-wise ops of the dialects `arith`, `math` and `tensor` compute, as NumPy functions of arrays.

Array = NDArray[Any]
ArrayFunction = Callable[..., Array]


def _multiply_add(x: Array, y: Array, z: Array) -> Array:
    """x * y + z, of float32 rounded once."""
    return multiply_add(x, y, z) if x.dtype == np.float32 else x * y + z


def _larger(x: Array, y: Array) -> Array:
    """IEEE 754 maximum: NaN where an operand is, and plus zero is larger than minus zero."""
    return np.where((x == 0) & (y == 0), x + y, np.maximum(x, y))


def _smaller(x: Array, y: Array) -> Array:
    return -_larger(-x, -y)


def _larger_number(x: Array, y: Array) -> Array:
    """As `_larger`, but the other operand where one is NaN."""
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, _larger(x, y)))


def _smaller_number(x: Array, y: Array) -> Array:
    return -_larger_number(-x, -y)


def _half_away(x: Array) -> Array:
    return round_f32(x, FloatRounding.HALF_AWAY)


def _truncated_quotient(x: Array, y: Array) -> Array:
    """x / y rounded towards zero, where NumPy's rounds down."""
    return x // y + ((x % y != 0) & ((x < 0) != (y < 0)))


def _raised_quotient(x: Array, y: Array) -> Array:
    return x // y + (x % y != 0)


def _shifted_left(x: Array, count: Array) -> Array:
    """Nothing is left of an integer that is shifted by its width or more."""
    bits = 8 * x.itemsize
    distance = count.view(f"u{count.itemsize}")
    return np.where(distance < bits, x << np.minimum(distance, bits - 1).astype(x.dtype), 0).astype(x.dtype)


def _shifted_right(x: Array, count: Array) -> Array:
    """The sign is all that is left of an integer that is shifted by its width or more."""
    distance = np.minimum(count.view(f"u{count.itemsize}"), 8 * x.itemsize - 1)
    return x >> distance.astype(x.dtype)


def _as_unsigned_integer(x: Array) -> Array:
    """The whole part of a float, whose low bits the interpreter's conversion to the result's type keeps."""
    return np.where(x < 2.0**63, np.trunc(x).astype(np.int64).view(np.uint64), np.trunc(x).astype(np.uint64))


def _leading_zeros(x: Array) -> Array:
    """Zero bits before the first one: the width less the bits from there on."""
    if x.dtype == np.bool_:
        return ~x
    bits = x.view(f"u{x.itemsize}")
    width = x.itemsize * 8
    for shift in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> bits.dtype.type(shift))
    return width - np.bitwise_count(bits).astype(x.dtype)


FLOAT_FUNCTIONS: Mapping[str, ArrayFunction] = {
    "arith.addf": np.add,
    "arith.andi": np.bitwise_and,
    "arith.divf": np.divide,
    "arith.fptosi": np.trunc,
    "arith.fptoui": _as_unsigned_integer,
    "arith.maximumf": _larger,
    "arith.maxnumf": _larger_number,
    "arith.minimumf": _smaller,
    "arith.minnumf": _smaller_number,
    "arith.mulf": np.multiply,
    "arith.negf": np.negative,
    "arith.ori": np.bitwise_or,
    # Exact, and so the same on every machine.
    "arith.remf": np.fmod,
    "arith.select": np.where,
    "arith.subf": np.subtract,
    "arith.xori": np.bitwise_xor,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.ceil": np.ceil,
    "math.copysign": np.copysign,
    "math.cos": real_functions.cos,
    "math.ctlz": _leading_zeros,
    "math.erfc": real_functions.erfc,
    "math.floor": np.floor,
    "math.fma": _multiply_add,
    "math.log10": real_functions.log10,
    "math.log2": real_functions.log2,
    "math.powf": real_functions.power,
    "math.round": _half_away,
    "math.roundeven": np.rint,
    "math.rsqrt": real_functions.rsqrt,
    "math.sin": real_functions.sin,
    "math.sqrt": real_functions.sqrt,
    "math.trunc": np.trunc,
    "tensor.bitcast": np.asarray,
    **{op: partial(float32.evaluate, op) for op in float32.ALGORITHMS},
}
"""Of floats, and of bits whatever their sign: what a kernel computes."""
TABLE_FUNCTIONS: Mapping[str, ArrayFunction] = {
    **FLOAT_FUNCTIONS,
    "math.erf": real_functions.erf,
    "math.exp": real_functions.exp,
    "math.exp2": real_functions.exp2,
    "math.expm1": real_functions.expm1,
    "math.log": real_functions.log,
    "math.log1p": real_functions.log1p,
    "math.tanh": real_functions.tanh,
}
"""The same with transcendental functions that are rounded from float64: what tables are built from."""
SIGNED_FUNCTIONS: Mapping[str, ArrayFunction] = {
    "arith.addi": np.add,
    "arith.ceildivsi": _raised_quotient,
    "arith.divsi": _truncated_quotient,
    "arith.floordivsi": np.floor_divide,
    "arith.extsi": np.asarray,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.muli": np.multiply,
    "arith.remsi": np.fmod,
    "arith.shli": _shifted_left,
    "arith.shrsi": _shifted_right,
    "arith.sitofp": np.asarray,
    "arith.subi": np.subtract,
    # The interpreter's conversion to the result's type keeps the low bits.
    "arith.trunci": np.asarray,
}
"""Of integers that are read as signed."""
UNSIGNED_FUNCTIONS: Mapping[str, ArrayFunction] = {
    "arith.ceildivui": _raised_quotient,
    "arith.divui": np.floor_divide,
    "arith.extui": np.asarray,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
    "arith.remui": np.remainder,
    "arith.shrui": np.right_shift,
    "arith.uitofp": np.asarray,
}
"""Of integers that are read as unsigned."""


# Functions of float values as expression trees over the element-wise ops of the dialects `arith` and `math`.
#
# A tree is written as a formula, ``1 / (1 + (-X).apply("math.exp"))``, and is called as a function of arrays.  Whoever
# builds ops, emits them into a kernel or looks for them folds the same tree, so that all of them round after the same
# operations.

T = TypeVar("T")


@dataclass(frozen=True)
class Expression:
    """A function of float values; numbers beside it stand for constants, rounded to the type of the values."""

    def apply(self, op: str, *others: Expression | float) -> Expression:
        """The op on this and `others`."""
        return Node(op, (self, *(_expression(other) for other in others)))

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
        """max(self, bound)."""
        return self.apply("arith.maximumf", bound)

    def at_most(self, bound: Expression | float) -> Expression:
        """min(self, bound)."""
        return self.apply("arith.minimumf", bound)

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


def fold(
    expression: Expression,
    inputs: Sequence[T],
    alpha: T | None,
    number: Callable[[float], T],
    apply: Callable[[str, Sequence[T]], T],
) -> T:
    """What `apply` makes of the nodes of a tree, from its leaves upwards.

    `number` makes a constant; `alpha` may be None where the tree is without a parameter.
    """

    def folded(one: Expression) -> T:
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


def _expression(value: Expression | float) -> Expression:
    return value if isinstance(value, Expression) else Number(value)
