"""Defines the abstract machine that exact formulas are written for, and the machine on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.choices import FloatRounding
from qdialect.arithmetic.multipliers import INT32_MAX, INT32_MIN
from qdialect.arithmetic.quantization import round_f32

V = TypeVar("V")
Array = NDArray[Any]
ArrayFunction = Callable[..., Array]
F32Array = NDArray[np.float32]
F64Array = NDArray[np.float64]


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

    def binary(self, op: str, lhs: V, rhs: V, /, *, attribute: str = "") -> V:
        """``op lhs, rhs``, of the type of both; with the unit `attribute`, if any, where ops have such."""
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

    def multiply_add(self, lhs: V, rhs: V, addend: V, /) -> V:
        """lhs * rhs + addend of floats, rounded once."""
        ...

    def select(self, condition: V, then: V, other: V, /) -> V:
        """`then` where `condition` holds, else `other`."""
        ...

    def table(self, values: NDArray[np.float32], /) -> Any:
        """Numbers that are known before."""
        ...

    def extract(self, table: Any, index: V, /) -> V:
        """The entry of a `table` at an index."""
        ...

    def clamp(self, value: V, low: V, high: V, /) -> V:
        """`value` limited to [`low`, `high`]."""
        ...


# The bits of a float64 number that a float32 number lacks, and those of a number halfway between two float32 numbers.
_LOST_BITS = np.int64(2**29 - 1)
_HALF = np.int64(2**28)
_SMALLEST_NORMAL = 2.0**-126


def multiply_add(a: F32Array, b: F32Array, c: F32Array) -> F32Array:
    """a * b + c of float32 arrays that broadcast, rounded once, as the instruction of a CPU does.

    The product is exact in float64.  Where its sum with c is rounded there to a tie of float32 numbers, on whose side
    the exact sum lies is no longer seen, and only there the sum is rounded to odd instead.
    """
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c, dtype=np.float64)
    total = np.asarray(product + addend)
    is_tie = _may_be_tie(total)
    if is_tie.any():
        factors, addends = (np.broadcast_to(part, total.shape)[is_tie] for part in (product, addend))
        total[is_tie] = _sum_to_odd(factors, addends)
    return total.astype(np.float32)


def _may_be_tie(total: F64Array) -> NDArray[np.bool_]:
    """Whether a number lies halfway between two float32 numbers, or is below those that have all of their bits."""
    is_half = (total.view(np.int64) & _LOST_BITS) == _HALF
    is_small = np.abs(total) < _SMALLEST_NORMAL
    return is_half | (is_small & (total != 0)) if is_small.any() else is_half


def _sum_to_odd(product: F64Array, addend: F64Array) -> F64Array:
    """The sum, rounded to odd: where it is inexact, the last bit is set.

    From that bit rounding to float32 sees on which side of a tie the sum lies.  Twice 24 bits and 2 are enough for that
    (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
    """
    total = product + addend
    # The exact error of the sum (Knuth's TwoSum).
    of_addend = total - product
    lost = (product - (total - of_addend)) + (addend - of_addend)
    bits = total.view(np.int64)
    is_inexact = np.isfinite(lost) & (lost != 0) & (bits & 1 == 0)
    # A bit towards what was lost: away from zero where the signs agree.
    towards = np.where((lost > 0) == (total > 0), 1, -1)
    return (bits + np.where(is_inexact, towards, 0)).view(np.float64)


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


BIT_FUNCTIONS: Mapping[str, ArrayFunction] = {
    "arith.addf": np.add,
    "arith.andi": np.bitwise_and,
    "arith.divf": np.divide,
    "arith.extf": np.asarray,
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
    # The conversion to the result's type rounds half to even.
    "arith.truncf": np.asarray,
    "arith.xori": np.bitwise_xor,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.ceil": np.ceil,
    "math.copysign": np.copysign,
    "math.ctlz": _leading_zeros,
    "math.floor": np.floor,
    "math.fma": _multiply_add,
    "math.round": _half_away,
    "math.roundeven": np.rint,
    "math.trunc": np.trunc,
    "tensor.bitcast": np.asarray,
}
"""Of floats, and of bits whatever their sign; each is rounded once."""
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


_FUNCTIONS: Mapping[str, ArrayFunction] = {**BIT_FUNCTIONS, **SIGNED_FUNCTIONS}
_COMPARISONS: Mapping[str, ArrayFunction] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""Those of `arith.cmpf` and `arith.cmpi` in the order of their numbers; unordered ones hold where an operand is NaN."""


class NumpyMachine:
    """Arrays, or NumPy's numbers, of the dtypes that the types have; see `Machine`."""

    add: Callable[..., Any] = staticmethod(np.add)
    subtract: Callable[..., Any] = staticmethod(np.subtract)
    multiply: Callable[..., Any] = staticmethod(np.multiply)
    multiply_add: Callable[..., Any] = staticmethod(multiply_add)
    clamp: Callable[..., Any] = staticmethod(np.clip)

    def constant(self, value: float, type_: str) -> Any:
        return _dtype(type_).type(value)

    def unary(self, op: str, value: Any) -> Any:
        return _FUNCTIONS[op](value)

    def binary(self, op: str, lhs: Any, rhs: Any, *, attribute: str = "") -> Any:
        if op in UNSIGNED_FUNCTIONS:
            return UNSIGNED_FUNCTIONS[op](_unsigned(lhs), _unsigned(rhs)).view(lhs.dtype)
        return _FUNCTIONS[op](lhs, rhs)

    def cast(self, op: str, value: Any, target: str) -> Any:
        if op == "arith.bitcast":
            return value.view(_dtype(target))
        return _CASTS[op](value).astype(_dtype(target))

    def compare(self, predicate: str, lhs: Any, rhs: Any) -> Any:
        if lhs.dtype.kind == "f":
            return _compared(predicate, lhs, rhs)
        operands = (_unsigned(lhs), _unsigned(rhs)) if predicate.startswith("u") else (lhs, rhs)
        return _COMPARISONS[predicate[-2:]](*operands)

    def select(self, condition: Any, then: Any, other: Any) -> Any:
        return BIT_FUNCTIONS["arith.select"](condition, then, other)

    def table(self, values: NDArray[np.float32]) -> Any:
        return values

    def extract(self, table: Any, index: Any) -> Any:
        return table[index]


def _compared(predicate: str, lhs: Any, rhs: Any) -> Any:
    """Floats by a predicate; none of NumPy's comparisons but "not equal" holds for NaN."""
    if predicate in ("true", "false"):
        return np.full(np.broadcast_shapes(np.shape(lhs), np.shape(rhs)), predicate == "true")
    found = True if predicate in ("ord", "uno") else _COMPARISONS[predicate[1:]](lhs, rhs)
    if predicate in ("olt", "ole", "ogt", "oge", "oeq"):
        return found
    is_unordered = np.isnan(lhs) | np.isnan(rhs)
    if predicate == "uno":
        return is_unordered
    return found | is_unordered if predicate.startswith("u") else found & ~is_unordered


def _dtype(type_: str) -> np.dtype[Any]:
    """Of ``i32`` and the like, or ``index``."""
    return np.dtype(np.int64) if type_ == "index" else np.dtype(f"{type_[0]}{int(type_[1:]) // 8}")


def _unsigned(value: Any) -> Any:
    return value.view(f"u{value.itemsize}")


_CASTS: Mapping[str, ArrayFunction] = {
    **dict.fromkeys(("arith.extsi", "arith.trunci", "arith.sitofp", "arith.index_cast"), np.asarray),
    **dict.fromkeys(("arith.extf", "arith.truncf", "arith.fptosi"), np.asarray),
    **dict.fromkeys(("arith.extui", "arith.uitofp", "arith.index_castui"), _unsigned),
}
"""By op: what is converted to the target's dtype."""
NUMPY: Machine[Any] = NumpyMachine()
"""The machine of the reference."""


class FloatMachine(Generic[V]):
    """The machine of algorithms on floats of one type `element`; each operation is rounded once, half to even."""

    def __init__(self, ops: Machine[V], element: str) -> None:
        self._ops, self._element = ops, element
        self.add, self.subtract = ops.add, ops.subtract
        self.multiply, self.multiply_add = ops.multiply, ops.multiply_add

    def constant(self, value: float) -> V:
        """A value that is `value`, rounded to the type, everywhere."""
        return self._ops.constant(float(_dtype(self._element).type(value)), self._element)

    def divide(self, a: V, b: V) -> V:
        """a / b."""
        return self._ops.binary("arith.divf", a, b)

    def where_less(self, a: V, b: V, then: V, other: V) -> V:
        """`then` where a < b, else `other`; no NaN is less than anything."""
        return self._ops.select(self._ops.compare("olt", a, b), then, other)


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
