"""Quantize, dequantize, requantize and tables in bodies of `linalg.generic`, in the bits of `qdialect.arithmetic`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdialect.arithmetic import (
    FixedMultiplier,
    FloatMultiplier,
    IntArray,
    QuantParams,
    RequantizeParameters,
    Rounding,
    Scaling,
    Table,
    scale_factors,
)
from qdialect.dialect import InterpolatedLutOp
from qdialect.lowering.cost.strategy import NO_FORMS, RequantizerForms
from qdialect.lowering.qnn_to_linalg.bodies import fixed_point_multiplier
from qdialect.lowering.qnn_to_linalg.bodies.multiply_add_rounding import multiply_add_rounding
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Tensor
from qdialect.lowering.qnn_to_linalg.program.operands import Parameter
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import ROUNDED, Body, EmitRequantize, Value
from qdialect.support.diagnostics import CompileError

# Requantization and addition as scalar bodies of `linalg.generic`, in the bits of `qdialect.arithmetic`.
#
# Multipliers are data: a kernel is the same for every layer of its shape, and reads them per channel or as scalars.

_LARGEST_EXPONENT = 30
_SMALL_BOUND = 2**30
# Largest exponent for which 32 bits suffice: a single rounding needs one bit to shift out after the product's own 31.
_SMALL_EXPONENTS = {Rounding.FIXED32_DOUBLE: 0, Rounding.FIXED64_UP: -1, Rounding.FIXED64_DOUBLE: -1}
_SECOND_NUDGE = 2**30


@dataclass(frozen=True)
class Requantization:
    """How an accumulator is requantized: rounding mode, parameter arrays, and the type of what is computed.

    `wide` is also the type of zero point and bounds: ``i64``, ``f32``, or ``i32`` where the accumulators are known to
    be small (see `requantization`).
    """

    rounding: Rounding
    parameters: tuple[Parameter, ...]
    wide: str


def requantization(rounding: Rounding, params: RequantizeParameters, bound: int = 2**31) -> Requantization:
    """The parameter arrays that `emit_requantize` reads, in its order.

    fixed64:  ``(x * q + half) >> right``, right = 31 - e, half = 2^(right - 1).
    fixed64_double: where right > 31 also + 2^30, or - 2^30 for x < 0.
    fixed32:  ``h = (sat(x << left) * q + 2^30) >> 31``, then ``h / 2^right`` rounded half away, right = max(-e, 0).

    `bound`: no accumulator's magnitude exceeds it.  Up to 2^30, with no multiplier above one, everything after the
    product fits 32 bits.  A single rounding can then drop the product's low 31 bits first: with right = 31 + r, r >= 1,
    ``(p + 2^(right-1)) >> right == ((p >> 31) + 2^(r-1)) >> r``, for floors compose.  Twice the lanes, half the work.
    The second nudge of `fixed64_double` joins p; ``(p - 2^30) >> 31`` is one less than ``(p + 2^30) >> 31``.
    Raises `CompileError` for a fixed-point multiplier of 2^30 or more.
    """
    if not isinstance(params, FixedMultiplier):
        return Requantization(rounding, (Parameter("multiplier", "f32", params.m),), "f32")
    # A multiplier that was flushed to zero is zero at any exponent.
    q, e = params.q, np.where(params.q == 0, -1, params.e).astype(np.int64)
    if e.max() > _LARGEST_EXPONENT:
        raise CompileError(f"a requantize multiplier must be below 2^{_LARGEST_EXPONENT}, but got 2^{e.max() - 1}")
    small = bound <= _SMALL_BOUND and e.max() <= _SMALL_EXPONENTS.get(rounding, -np.inf)
    wide, dtype = ("i32", np.int32) if small else ("i64", np.int64)
    left = np.maximum(e, 0)
    # The shift that follows the product's own by 31 bits; where 32 bits do not hold it, all 31 - e bits at once.
    right = np.maximum(-e, 0) if small or rounding is Rounding.FIXED32_DOUBLE else 31 - e
    half = (np.int64(1) << right) >> 1
    # What negative accumulators lack: twice the second nudge, in the units of the sum it joins.
    correction = 0 if rounding is not Rounding.FIXED64_DOUBLE else 1 if small else 2 * _SECOND_NUDGE
    is_nudged = right > (0 if small else 31)
    half += is_nudged * (correction // 2)
    arrays = [Parameter("multiplier", "i32", q), Parameter("half", wide, half.astype(dtype))]
    arrays.append(Parameter("right", wide, right.astype(dtype)))
    if rounding is Rounding.FIXED64_DOUBLE:
        arrays.append(Parameter("tie", wide, (-correction * is_nudged).astype(dtype)))
    if rounding is Rounding.FIXED32_DOUBLE:
        # A negative tie must not move up; where nothing is shifted there is no tie.
        arrays.append(Parameter("tie", wide, np.where(right > 0, -1, 0).astype(dtype)))
    if rounding is Rounding.FIXED32_DOUBLE and left.any():
        arrays.append(Parameter("left", "i64", left))
    return Requantization(rounding, tuple(arrays), wide)


def emit_scale(body: Body, how: Requantization, acc: Value, parameters: Sequence[Value]) -> Value:
    """``acc * M`` rounded, without zero point, in `how.wide`; only for rounding modes that add the zero point last."""
    if how.rounding is Rounding.FIXED32_DOUBLE:
        return _double_rounding(body, how, acc, parameters)
    if how.rounding is Rounding.FIXED64_DOUBLE:
        return _double_nudge(body, how, acc, parameters)
    if how.rounding.is_fixed:
        return _single_rounding(body, how, acc, parameters)
    value = body.cast("arith.sitofp", acc, "f32")
    return body.unary("math.roundeven", body.multiply(value, parameters[0]))


def emit_requantize(
    body: Body,
    how: Requantization,
    acc: Value,
    parameters: Sequence[Value],
    zero_point: Value,
    bounds: tuple[Value, Value],
    *,
    from_zero: bool = False,
) -> Value:
    """``clamp(round(acc * M) + z)`` as i32; `zero_point` and `bounds` are values of type `how.wide`.

    `from_zero`: the lower bound is 0 or more, so that the conversion to an integer, which truncates, rounds down.
    """
    wide = how.wide
    if how.rounding.is_fixed:
        scaled = emit_scale(body, how, acc, parameters)
        quantized = body.clamp(body.add(scaled, zero_point), *bounds)
        return body.cast("arith.trunci", quantized, "i32")
    value = body.multiply(body.cast("arith.sitofp", acc, "f32"), parameters[0])
    # Bounds are integers and rounding is monotonic: clamping first keeps the conversion in range and the bits equal.
    if how.rounding is Rounding.F32_RNE_ZP_LAST:
        inner = [body.subtract(bound, zero_point) for bound in bounds]
        rounded = _half_even(body, body.clamp(value, inner[0], inner[1]))
        quantized = body.cast("arith.fptosi", rounded, "i32")
        return body.add(quantized, body.cast("arith.fptosi", zero_point, "i32"))
    value = body.clamp(body.add(value, zero_point), *bounds)
    if from_zero and how.rounding is Rounding.F32_UP_ZP_FIRST:
        value = body.add(value, body.constant(0.5, wide))
        return body.cast("arith.fptosi", value, "i32")
    return body.cast("arith.fptosi", ZERO_POINT_FIRST[how.rounding](body, value), "i32")


def _product(body: Body, value: Value, multiplier: Value) -> Value:
    wide = body.cast("arith.extsi", value, "i64")
    return body.multiply(wide, body.cast("arith.extsi", multiplier, "i64"))


def _high_word(body: Body, how: Requantization, product: Value) -> Value:
    """``product >> 31`` in the type of what follows."""
    return body.cast("arith.trunci", body.binary("arith.shrsi", product, body.constant(31, "i64")), how.wide)


def _single_rounding(body: Body, how: Requantization, acc: Value, parameters: Sequence[Value]) -> Value:
    multiplier, half, right = parameters
    product = _product(body, acc, multiplier)
    if how.rounding is Rounding.FIXED64_NEAREST:
        sign = body.binary("arith.shrsi", product, body.constant(63, "i64"))
        product = body.add(product, sign)
    value = _high_word(body, how, product) if how.wide == "i32" else product
    return body.binary("arith.shrsi", body.add(value, half), right)


def _double_rounding(body: Body, how: Requantization, acc: Value, parameters: Sequence[Value]) -> Value:
    multiplier, half, right, tie, *left = parameters
    if left:
        value = body.binary("arith.shli", body.cast("arith.extsi", acc, "i64"), left[0])
        acc = body.clamp(value, body.constant(-(2**31), "i64"), body.constant(2**31 - 1, "i64"))
    product = _product(body, acc, multiplier)
    high = _high_word(body, how, body.add(product, body.constant(2**30, "i64")))
    sign = body.binary("arith.shrsi", high, body.constant(high.bits - 1, high.type))
    sign = body.binary("arith.andi", sign, tie)
    nudged = body.add(body.add(high, half), sign)
    return body.binary("arith.shrsi", nudged, right)


def _double_nudge(body: Body, how: Requantization, acc: Value, parameters: Sequence[Value]) -> Value:
    multiplier, half, right, tie = parameters
    value = _product(body, acc, multiplier)
    if how.wide == "i32":
        value = _high_word(body, how, body.add(value, body.constant(_SECOND_NUDGE, "i64")))
    sign = body.binary("arith.shrsi", acc, body.constant(acc.bits - 1, acc.type))
    if acc.type != how.wide:
        sign = body.cast("arith.extsi" if how.wide == "i64" else "arith.trunci", sign, how.wide)
    sign = body.binary("arith.andi", sign, tie)
    nudged = body.add(body.add(value, half), sign)
    return body.binary("arith.shrsi", nudged, right)


def _half_up(body: Body, value: Value) -> Value:
    return body.unary("math.floor", body.add(value, body.constant(0.5, "f32")))


def _half_away(body: Body, value: Value) -> Value:
    """``v + copysign(h, v)``, to be truncated, with h = 1/2 - 2^-25, the number before 1/2.

    Let |v| be n + 1/2 - d with a whole n, and u the last place of |v|.  The exact sum is n + 1 - d - 2^-25.  For n >= 1
    numbers below n + 1 are u apart, at least 2^-23: where d <= 0 the sum rounds to n + 1 or more, where d > 0, so that
    d >= u, to n + 1 - u or less.  For n = 0 the tie's sum 1 - 2^-25 lies between 1 - 2^-24 and 1 and rounds to the even
    1, and the sum of smaller numbers is at most 2 h = 1 - 2^-24.  From 2^23 on, h is less than half of u.
    """
    nearly_half = body.constant(0.5 - 2.0**-25, "f32")
    return body.add(value, body.binary("math.copysign", nearly_half, value))


def _half_even(body: Body, value: Value) -> Value:
    return body.unary("math.roundeven", value)


ZERO_POINT_FIRST: dict[Rounding, Callable[[Body, Value], Value]] = {
    Rounding.F32_RNE_ZP_FIRST: _half_even,
    Rounding.F32_UP_ZP_FIRST: _half_up,
    Rounding.F32_NEAREST_ZP_FIRST: _half_away,
}
"""How the rounding modes round that add the zero point before: a conversion to an integer, which truncates, follows."""
ROUND_HALF_EVEN, ROUND_HALF_AWAY, ROUND_HALF_UP = _half_even, _half_away, _half_up
"""Float roundings, before a conversion that truncates."""


# From integers of one scale to stored quantized values of another: requantization into any integer type.

EmitRescale = Callable[[Body, Value, Sequence[Value]], Value]
"""(body, integer, multiplier parameters) -> stored element."""

_INT32 = (-(2**31), 2**31 - 1)
# Beyond int32 plus any zero point, and exact in float32.
_FAR = 2.0**33


@dataclass(frozen=True)
class Rescaling:
    """``clamp(round(x * M) + zero_point)`` plus `shift`, as `element`; zero point and bounds are without it."""

    how: Requantization
    zero_point: int
    bounds: tuple[int, int]
    shift: int
    element: str

    def declare(self, kernel: Kernel) -> EmitRescale:
        """Declare zero point and bounds as parameters of `kernel`."""
        return self._declare_wide(kernel) if self.element == "i32" else self._declare_narrow(kernel)

    def scalars(self, kernel: Kernel) -> list[Value]:
        """Declare the per-tensor multiplier as parameters of `kernel`."""
        return [kernel.number(p.name, p.values[0], p.element) for p in self.how.parameters]

    def _declare_narrow(self, kernel: Kernel) -> EmitRescale:
        emit_rescale = declare_rescale(kernel, self.how, self.zero_point, self.bounds, self.shift)

        def emit(body: Body, value: Value, parameters: Sequence[Value]) -> Value:
            quantized = emit_rescale(body, value, parameters)
            return (
                body.narrow(quantized) if self.element == "i8" else body.cast("arith.trunci", quantized, self.element)
            )

        return emit

    def _declare_wide(self, kernel: Kernel) -> EmitRescale:
        """32-bit quantized values: float32 does not hold their bounds, so that they are clamped as 64-bit integers."""
        zero_point = kernel.number("zero_point", self.zero_point, "i64")
        low, high = kernel.limits(self.bounds, "i64")
        f32 = kernel.number("f32_zero_point", self.zero_point, "f32")

        def emit(body: Body, value: Value, parameters: Sequence[Value]) -> Value:
            if self.how.rounding in ZERO_POINT_FIRST:
                product = body.multiply(body.cast("arith.sitofp", value, "f32"), parameters[0])
                quantized = body.add(product, f32)
                quantized = _as_integer(body, ZERO_POINT_FIRST[self.how.rounding](body, quantized))
            else:
                quantized = body.add(self._late(body, value, parameters), zero_point)
            return body.cast("arith.trunci", body.clamp(quantized, low, high), "i32")

        return emit

    def _late(self, body: Body, value: Value, parameters: Sequence[Value]) -> Value:
        """The scaled value before its zero point; fixed-point rounding modes saturate it to 32 bits."""
        scaled = emit_scale(body, self.how, value, parameters)
        if not self.how.rounding.is_fixed:
            return _as_integer(body, scaled)
        wide = body.cast("arith.extsi", scaled, "i64")
        low, high = (body.constant(bound, "i64") for bound in _INT32)
        return body.clamp(wide, low, high)


def declare_rescale(
    kernel: Kernel, how: Requantization, zero_point: int, bounds: tuple[int, int], shift: int
) -> EmitRescale:
    """``clamp(round(x * M) + zero_point) + shift`` as i32, for bounds that float32 holds.

    A zero point that joins before the rounding must be without the shift: float32 rounds elsewhere around a shifted
    one.
    """
    early = 0 if how.rounding in ZERO_POINT_FIRST else shift
    own = kernel.number("zero_point", zero_point + early, how.wide)
    low, high = kernel.limits((bounds[0] + early, bounds[1] + early), how.wide)
    from_zero = bounds[0] + early >= 0

    def emit(body: Body, value: Value, parameters: Sequence[Value]) -> Value:
        quantized = emit_requantize(body, how, value, parameters, own, (low, high), from_zero=from_zero)
        if shift == early:
            return quantized
        return body.add(quantized, body.constant(shift - early, "i32"))

    return emit


def _as_integer(body: Body, value: Value) -> Value:
    limited = body.clamp(value, body.constant(-_FAR, "f32"), body.constant(_FAR, "f32"))
    return body.cast("arith.fptosi", limited, "i64")


# Between stored quantized values and the f32 values they stand for, in the float32 operations of the reference.

Emit = Callable[[Body, Value], Value]
_SMALLEST_SCALE, _LARGEST_SCALE, _LARGEST_ROUNDED = 2.0**-60, 2.0**60, 2**20


@dataclass(frozen=True)
class Quantization(QuantParams):
    """Parameters of quantized values, and what is added to a value when it is stored."""

    shift: int = 0

    @property
    def stored_zero_point(self) -> int:
        return self.zero_point + self.shift


def declare_dequantize(kernel: Kernel, name: str, own: Quantization) -> Emit:
    """Emit the f32 value (f32) of a stored value (i32); the scalars are parameters of `kernel`."""
    zero_point = kernel.number(f"{name}_zero_point", own.stored_zero_point, "i32")
    scale = kernel.number(f"{name}_scale", float(np.float32(own.scale)), "f32")

    def emit(body: Body, quantized: Value) -> Value:
        offset = body.subtract(quantized, zero_point)
        return body.multiply(body.cast("arith.sitofp", offset, "f32"), scale)

    return emit


def can_be_rounded(scales: ArrayLike, bounds: Sequence[int], zero_points: Sequence[int]) -> bool:
    """Whether values divided by `scales` and clamped to `bounds`, less the zero points, are `ROUNDED` quotients."""
    factors, largest = np.asarray(scales, np.float32), max(map(abs, bounds)) + max(map(abs, zero_points))
    is_near = np.all((factors >= _SMALLEST_SCALE) & (factors <= _LARGEST_SCALE))
    return bool(is_near) and largest <= _LARGEST_ROUNDED


def declare_quantize(
    kernel: Kernel, name: str, output: Quantization, bounds: tuple[int, int], rounding: Rounding, scaling: Scaling
) -> Emit:
    """Emit the stored value (i32) of an f32 value (f32), by the float rounding mode `rounding`.

    `bounds` are those of the quantized values; they are integers, so that they may be applied before the rounding.
    """
    divides, early = scaling is Scaling.DIVIDE, rounding in ZERO_POINT_FIRST
    factor = kernel.number(f"{name}_scale", float(scale_factors(output.scale, scaling)), "f32")
    point = kernel.number(f"{name}_zero_point", output.zero_point, "f32") if early else None
    left = 0 if early else output.zero_point
    low, high = kernel.limits((bounds[0] - left, bounds[1] - left), "f32", (f"{name}_low", f"{name}_high"))
    rest = kernel.number(f"{name}_stored_zero_point", left + output.shift, "i32")
    round_f32 = ZERO_POINT_FIRST.get(rounding, ROUND_HALF_EVEN)
    tag = ROUNDED if divides and can_be_rounded([output.scale], bounds, [output.zero_point]) else ""

    def emit(body: Body, f32: Value) -> Value:
        value = body.binary("arith.divf" if divides else "arith.mulf", f32, factor, attribute=tag)
        value = value if point is None else body.add(value, point)
        rounded = round_f32(body, body.clamp(value, low, high))
        return body.add(body.cast("arith.fptosi", rounded, "i32"), rest)

    return emit


def declare_f32_pair(
    kernel: Kernel,
    quantizations: Sequence[Quantization],
    bounds: tuple[int, int],
    function: Callable[[Body, Value, Value], Value],
    scaling: Scaling = Scaling.DIVIDE,
) -> Callable[[Body, Value, Value], Value]:
    """Emit the stored value (i32) of an f32 function of two; see `qdialect.arithmetic.elementwise.f32_pair`.

    `quantizations` are those of both operands and the result.
    """
    lhs, rhs = (declare_dequantize(kernel, name, own) for name, own in zip(("lhs", "rhs"), quantizations, strict=False))
    quantize = declare_quantize(kernel, "output", quantizations[2], bounds, Rounding.F32_RNE_ZP_LAST, scaling)

    def emit(body: Body, left: Value, right: Value) -> Value:
        a = lhs(body, body.cast("arith.extui", left, "i32"))
        return quantize(body, function(body, a, rhs(body, body.cast("arith.extui", right, "i32"))))

    return emit


# Tables between stored values, as data of a kernel.


def stored_table(table: Table, input_shift: int, output_shift: int) -> Table:
    """A table between bit patterns as one between stored quantized values; shifts are 128 for signed, else 0."""
    index = (np.arange(256) - input_shift) % 256
    return ((table[index].astype(np.int64) + output_shift) % 256).astype(np.uint8)


def declare_table(kernel: Kernel, table: Table) -> Tensor:
    """The tensor of a table parameter of `kernel`."""
    buffer = kernel.data("table", np.asarray(table, dtype=np.uint8).view(np.int8))
    return kernel.flat_tensor(buffer)


# Tables with straight lines between their entries, as data of a kernel.

EmitLookup = Callable[[Body, Value], Value]
"""(body, i32) -> i32."""


@dataclass(frozen=True)
class InterpolatedTable:
    """``(bases[i] << fraction) + r * slopes[i]`` for an i32 of index i and rest r."""

    bases: NDArray[np.int32]
    slopes: NDArray[np.int32]
    fraction: int

    @classmethod
    def of(cls, op: InterpolatedLutOp) -> Self:
        return cls(np.array(op.bases, np.int32), np.array(op.slopes, np.int32), op.fraction)

    def declare(self, kernel: Kernel, name: str) -> EmitLookup:
        """Declare both tables as parameters of `kernel`."""
        bases = kernel.flat_tensor(kernel.data(f"{name}_bases", self.bases))
        slopes = kernel.flat_tensor(kernel.data(f"{name}_slopes", self.slopes))
        last = (len(self.bases) << self.fraction) - 1

        def emit(body: Body, value: Value) -> Value:
            fraction_bits = body.constant(self.fraction, "i32")
            inside = body.clamp(value, body.constant(0, "i32"), body.constant(last, "i32"))
            index = body.cast("arith.index_cast", body.binary("arith.shrui", inside, fraction_bits), "index")
            rest = body.binary("arith.andi", inside, body.constant((1 << self.fraction) - 1, "i32"))
            base = body.binary("arith.shli", body.extract(bases, index), fraction_bits)
            return body.add(base, body.multiply(rest, body.extract(slopes, index)))

        return emit


# The cheapest requantization of an accumulator that is exact in an op's rounding mode.

# Well inside int32, which the conversion of a float must not leave.
_LARGEST = 2.0**30


class Requantizer(Protocol):
    """From accumulators to quantized values that are still to be clamped."""

    @property
    def offset(self) -> NDArray[np.int32]:
        """The addend of each channel's initial accumulator, or of all."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...

    def declare(self, kernel: Kernel) -> EmitRequantize:
        """Declare what belongs to the tensor as parameters of `kernel`."""
        ...


@dataclass(frozen=True)
class FloatRequantizer:
    """A float32 rounding mode as it is defined, where no product leaves int32; `shift` is added to the result."""

    rounding: Rounding
    multiplier: NDArray[np.float32]
    zero_point: int
    shift: int

    @property
    def offset(self) -> NDArray[np.int32]:
        return np.zeros(1, np.int32)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (Parameter("multiplier", "f32", self.multiplier),)

    def declare(self, kernel: Kernel) -> EmitRequantize:
        is_channels_last = self.rounding is Rounding.F32_RNE_ZP_LAST
        own = None if is_channels_last else kernel.number("zero_point", self.zero_point, "f32")
        rest = kernel.number("rest", self.shift + (self.zero_point if is_channels_last else 0), "i32")
        round_ = ROUND_HALF_UP if self.rounding is Rounding.F32_UP_ZP_FIRST else ROUND_HALF_EVEN

        def emit(body: Body, acc: Value, parameters: Sequence[Value]) -> Value:
            value = body.multiply(body.cast("arith.sitofp", acc, "f32"), parameters[0])
            value = value if own is None else body.add(value, own)
            quantized = body.cast("arith.fptosi", round_(body, value), "i32")
            return body.add(quantized, rest)

        return emit


def requantizer_of(
    rounding: Rounding,
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    shift: int,
    accumulator_range: tuple[IntArray, IntArray],
    forms: RequantizerForms = NO_FORMS,
) -> Requantizer | None:
    """The cheapest exact requantization plus `shift` for accumulators in `accumulator_range`; None if none is known.

    A float32 rounding mode is computed as it is defined, except for ties away from zero, which no instruction rounds.
    """
    if not isinstance(params, FloatMultiplier) or rounding is Rounding.F32_NEAREST_ZP_FIRST:
        steps = fixed_point_multiplier.shifted_thresholds(
            params, zero_point, bounds, shift, rounding, accumulator_range
        )
        if steps is None:
            return None
        near = fixed_point_multiplier.channel_multipliers(params, len(steps.low))
        found = multiply_add_rounding(steps, near, zero_point + shift) if forms.multiply_adds else None
        return found or fixed_point_multiplier.fixed_point_multiplier(steps, near)
    largest = max(-accumulator_range[0].min(), accumulator_range[1].max()) * float(params.m.max())
    return FloatRequantizer(rounding, params.m, zero_point, shift) if largest < _LARGEST else None
