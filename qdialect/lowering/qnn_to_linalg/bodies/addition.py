"""Quantized addition of two stored quantized values, in the arithmetics of `qdialect.arithmetic.elementwise.add`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    IntArray,
    Multiplier,
    QuantParams,
    Rounding,
    float_sum_numbers,
    real_multiplier,
    requantize_parameters,
    sum_factors,
)
from qdialect.arithmetic.elementwise import OffsetFunction, add, shifted_sum, signed_sum, total_of
from qdialect.arithmetic.multipliers import FloatSum, float_sum, quantized_multipliers
from qdialect.lowering.qnn_to_linalg.bodies import quantization
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.support.diagnostics import CompileError

EmitSum = Callable[[Body, Value, Value], Value]
"""(body, stored lhs as i32, stored rhs as i8) -> clamped sum as i32."""

_LARGEST_STORED = 255
# Far outside any 8-bit sum and exact in float32: with ratios below 2^20 no rescaled value gets there.
_BOUNDS = (-(2**30), 2**30)
_LARGEST_RATIO = 2.0**20


@dataclass(frozen=True)
class Addition:
    """lhs + rhs at the output's quantization, clamped to `bounds`; lhs - rhs with `is_difference`.

    Zero points and bounds are those of the quantized values, not of stored ones: float32 rounds larger numbers
    elsewhere.
    """

    lhs: quantization.Quantization
    rhs: quantization.Quantization
    output: quantization.Quantization
    bounds: tuple[int, int]
    arithmetic: AddArithmetic
    rounding: Rounding
    multiplier: Multiplier
    swapped: bool = False
    """Whether rhs stands before lhs, which ``float_once`` alone can tell."""
    is_difference: bool = False
    """Of the arithmetics that compute in integers; of operands that are not `swapped`."""
    left: tuple[int, int] = (0, _LARGEST_STORED)
    """The smallest and the largest stored value of lhs."""

    def declare(self, kernel: Kernel) -> EmitSum:
        """Declare the scalars as parameters of `kernel`; returns what emits the sum into a body."""
        if exact := self._exact_sum(kernel.program.strategy.forms.f32_sums):
            is_fixed_point = isinstance(exact, FixedPointSum)
            return self._emit_fixed_point(kernel, exact) if is_fixed_point else self._emit_multiply_adds(kernel, exact)
        if roundings := self.arithmetic.shifted_roundings:
            own = self.lhs, self.rhs, self.output
            emit = declare_function(kernel, shifted_sum(own, roundings, self._sign), own, self.bounds)
            return lambda body, left, right: body.cast("arith.trunci", emit(body, left, right), "i32")
        if self.arithmetic is AddArithmetic.FLOAT_ONCE:
            return self._float(kernel)
        if self.arithmetic is AddArithmetic.FIXED_ONCE:
            return self._fixed(kernel)
        if scaling := self.arithmetic.f32_scaling:
            own = (self.lhs, self.rhs, self.output)
            return quantization.declare_f32_pair(kernel, own, self.bounds, total_of, scaling)
        return self._each(kernel)

    def _exact_sum(self, adds_in_f32: bool) -> FloatSum | FixedPointSum | None:
        """The sum in two multiply-adds, or in fixed point, where that is exact and cheaper.

        It never is where each operand is rounded.
        """
        arithmetic, rounds_each = self.arithmetic, self.arithmetic is AddArithmetic.REQUANTIZE_EACH
        sides = [QuantParams(q.scale, q.zero_point) for q in (self.lhs, self.rhs)]
        output = QuantParams(self.output.scale, self.output.zero_point)
        if arithmetic is AddArithmetic.FIXED_ONCE or (rounds_each and output not in sides):
            return None
        lhs, rhs = (np.arange(low, high + 1) for low, high in (self.left, (0, _LARGEST_STORED)))
        operands = [((lhs - self.lhs.shift)[:, None], sides[0]), ((rhs - self.rhs.shift)[None, :], sides[1])]
        (first, own), (second, other) = operands[::-1] if self.swapped else operands
        how = arithmetic, self.rounding, self.multiplier
        between = BinaryQuantization(own, other, output, self.bounds)
        if self.is_difference:
            quantized = between.clip(signed_sum(first, second, between, -1, *how)) + self.output.shift
        else:
            quantized = add(first, second, between, *how) + self.output.shift
        bounds = self._stored_bounds()
        if adds_in_f32 and (found := self._multiply_add_sum(quantized, lhs, rhs)):
            return found
        ratios = sides[0].scale / output.scale, self._sign * sides[1].scale / output.scale
        return fixed_point_sum(quantized, lhs, rhs, ratios, bounds)

    @property
    def _sign(self) -> int:
        return -1 if self.is_difference else 1

    def _multiply_add_sum(self, quantized: IntArray, lhs: IntArray, rhs: IntArray) -> FloatSum | None:
        """Numbers for the operand that stands first, and the other one."""
        own, bounds = (self.lhs, self.rhs, self.output), self._stored_bounds()
        if self.swapped:
            own, quantized, lhs, rhs = (self.rhs, self.lhs, self.output), quantized.T, rhs, lhs
        scales = own[0].scale, self._sign * own[1].scale, own[2].scale
        numbers = float_sum_numbers(scales, [q.stored_zero_point for q in own])
        return multiply_add_sum(quantized, lhs, rhs, numbers, bounds)

    def _emit_multiply_adds(self, kernel: Kernel, numbers: FloatSum) -> EmitSum:
        names = ("first_ratio", "second_ratio", "sum_offset")
        ratio, other, rest = (kernel.number(n, float(v), "f32") for n, v in zip(names, numbers, strict=True))
        limits = self._limits(kernel)

        def emit(body: Body, left: Value, right: Value) -> Value:
            a = body.cast("arith.sitofp", left, "f32")
            b = body.cast("arith.sitofp", body.cast("arith.extui", right, "i32"), "f32")
            first, second = (b, a) if self.swapped else (a, b)
            value = body.multiply_add(first, ratio, body.multiply_add(second, other, rest))
            value = body.unary("math.roundeven", value)
            return body.clamp(body.cast("arith.fptosi", value, "i32"), *limits(body))

        return emit

    def _emit_fixed_point(self, kernel: Kernel, fixed_point: FixedPointSum) -> EmitSum:
        named = {
            "lhs_factor": fixed_point.lhs,
            "rhs_factor": fixed_point.rhs,
            "sum_rest": fixed_point.rest,
            "sum_shift": fixed_point.shift,
        }
        lhs, rhs, rest, shift = (kernel.number(name, value, "i32") for name, value in named.items())
        limits = self._limits(kernel)

        def emit(body: Body, left: Value, right: Value) -> Value:
            a = body.multiply(left, lhs)
            b = body.multiply(body.cast("arith.extui", right, "i32"), rhs)
            total = body.add(a, body.add(b, rest))
            return body.clamp(body.binary("arith.shrsi", total, shift), *limits(body))

        return emit

    def _limits(self, kernel: Kernel) -> Callable[[Body], Sequence[Value]]:
        """The bounds of stored sums; those of a byte are known in the body, for packing clamps to them."""
        bounds = self._stored_bounds()
        if bounds == (0, _LARGEST_STORED):
            return lambda body: [body.constant(bound, "i32") for bound in bounds]
        limits = _bounds(kernel, bounds, "i32")
        return lambda _: limits

    def _stored_bounds(self) -> tuple[int, int]:
        return self.bounds[0] + self.output.shift, self.bounds[1] + self.output.shift

    def _each(self, kernel: Kernel) -> EmitSum:
        lhs = self._to_output(kernel, "lhs", self.lhs)
        rhs = self._to_output(kernel, "rhs", self.rhs)
        # Both rescaled operands carry the zero point, and neither the shift of a stored sum.
        carried = 0 if self.is_difference else 2
        surplus = kernel.number("sum_surplus", (carried - 1) * self.output.zero_point - self.output.shift, "i64")
        low, high = _bounds(kernel, self._stored_bounds(), "i64")

        def emit(body: Body, left: Value, right: Value) -> Value:
            a = body.cast("arith.extsi", lhs(body, left), "i64")
            b = body.cast("arith.extsi", rhs(body, body.cast("arith.extui", right, "i32")), "i64")
            value = body.subtract(a, b) if self.is_difference else body.add(a, b)
            value = body.clamp(body.subtract(value, surplus), low, high)
            return body.cast("arith.trunci", value, "i32")

        return emit

    def _to_output(self, kernel: Kernel, name: str, own: quantization.Quantization) -> Callable[[Body, Value], Value]:
        """Emit what rescales a stored value of `own` to the output's quantization."""
        if (own.scale, own.zero_point) == (self.output.scale, self.output.zero_point):
            shift = kernel.number(f"{name}_shift", own.shift, "i32")
            return lambda body, quantized: body.subtract(quantized, shift)
        f32 = real_multiplier(own.scale, [1.0], self.output.scale, self.multiplier)
        if f32[0] >= _LARGEST_RATIO:
            raise CompileError(
                f"scales of an addition must be within 2^20 of each other, but got a ratio of {f32[0]:g}"
            )
        how = quantization.requantization(self.rounding, requantize_parameters(self.rounding, f32))
        parameters = [kernel.number(f"{name}_{p.name}", p.values[0], p.element) for p in how.parameters]
        zero_point = kernel.number(f"{name}_zero_point", own.stored_zero_point, "i32")
        output = kernel.number(f"{name}_output_zero_point", self.output.zero_point, how.wide)
        limits = _bounds(kernel, _BOUNDS, how.wide, name)

        def emit(body: Body, value: Value) -> Value:
            return quantization.emit_requantize(body, how, body.subtract(value, zero_point), parameters, output, limits)

        return emit

    def _float(self, kernel: Kernel) -> EmitSum:
        operands = (self.rhs, self.lhs) if self.swapped else (self.lhs, self.rhs)
        own = (*operands, self.output)
        numbers = float_sum_numbers([q.scale for q in own], [q.zero_point for q in own])
        names = ("first_ratio", "second_ratio", "sum_offset")
        factors = [kernel.number(name, float(number), "f64") for name, number in zip(names, numbers, strict=True)]
        low, high = _bounds(kernel, self.bounds, "f32")

        stored = zip(("lhs", "rhs", "sum"), (self.lhs, self.rhs, self.output), strict=True)
        shifts = [kernel.number(f"{name}_shift", own.shift, "i32") for name, own in stored]

        def f32(body: Body, quantized: Value, side: int) -> Value:
            return body.cast("arith.sitofp", body.subtract(quantized, shifts[side]), "f64")

        def multiply_add(body: Body, value: Value, factor: Value, addend: Value) -> Value:
            # A multiply-add of float32 numbers, by way of float64, where the product is exact.
            total = body.add(body.multiply(value, factor), addend)
            return body.cast("arith.truncf", total, "f32")

        def emit(body: Body, left: Value, right: Value) -> Value:
            a, b = f32(body, left, 0), f32(body, body.cast("arith.extui", right, "i32"), 1)
            first, second = (b, a) if self.swapped else (a, b)
            inner = multiply_add(body, second, factors[1], factors[2])
            value = multiply_add(body, first, factors[0], body.cast("arith.extf", inner, "f64"))
            value = body.unary("math.roundeven", body.clamp(value, low, high))
            return body.add(body.cast("arith.fptosi", value, "i32"), shifts[2])

        return emit

    def _fixed(self, kernel: Kernel) -> EmitSum:
        factors = sum_factors(self.lhs.scale, self.rhs.scale, self.output.scale)
        half = 1 << (factors.shift - 1)
        # Stored values and the products of their zero points: in range for every factor that XNNPACK takes.
        largest = 2 * _LARGEST_STORED * (factors.lhs + factors.rhs) + half
        type_ = "i32" if largest < 2**31 else "i64"
        right = -factors.rhs if self.is_difference else factors.rhs
        own = [factor * q.stored_zero_point for factor, q in ((factors.lhs, self.lhs), (right, self.rhs))]
        lhs, rhs = kernel.number("lhs_factor", factors.lhs, type_), kernel.number("rhs_factor", right, type_)
        rest = kernel.number("sum_rest", half - sum(own), type_)
        shift = kernel.number("sum_shift", factors.shift, type_)
        zero_point = kernel.number("sum_zero_point", self.output.stored_zero_point, type_)
        low, high = _bounds(kernel, self._stored_bounds(), type_)

        def emit(body: Body, left: Value, right: Value) -> Value:
            a = body.multiply(body.cast("arith.extsi", left, type_), lhs)
            b = body.multiply(body.cast("arith.extui", right, type_), rhs)
            total = body.add(a, body.add(b, rest))
            value = body.binary("arith.shrsi", total, shift)
            value = body.clamp(body.add(value, zero_point), low, high)
            return body.cast("arith.trunci", value, "i32")

        return emit


def declare_function(
    kernel: Kernel, function: OffsetFunction, own: Sequence[quantization.Quantization], bounds: tuple[int, int]
) -> Callable[[Body, Value, Value], Value]:
    """Emit the stored value (i64), within `bounds`, of a function of two stored values (i8, or i32).

    `own` is what both and the result stand for.
    """
    multipliers = [_declare_multiplier(kernel, *each) for each in function.multipliers]
    names = ("lhs", "rhs", "output")
    points = [kernel.number(f"{n}_zero_point", q.stored_zero_point, "i64") for n, q in zip(names, own, strict=True)]
    low, high = kernel.limits((bounds[0] + own[2].shift, bounds[1] + own[2].shift), "i64")

    def offset(body: Body, stored: Value, point: Value) -> Value:
        return body.subtract(body.cast("arith.extsi" if stored.type == "i32" else "arith.extui", stored, "i64"), point)

    def emit(body: Body, left: Value, right: Value) -> Value:
        offsets = offset(body, left, points[0]), offset(body, right, points[1])
        result = function.compute(body, [partial(each, body) for each in multipliers], *offsets)
        return body.clamp(body.add(result, points[2]), low, high)

    return emit


def _declare_multiplier(
    kernel: Kernel, name: str, multiplier: float, rounding: Rounding
) -> Callable[[Body, Value], Value]:
    """Emit the product with the nearest fixed-point multiplier, rounded, in the wide type of its rounding."""
    how = quantization.requantization(rounding, quantized_multipliers(np.array([multiplier])))
    parameters = [kernel.number(f"{name}_{p.name}", p.values[0], p.element) for p in how.parameters]
    return lambda body, value: quantization.emit_scale(body, how, value, parameters)


def _bounds(kernel: Kernel, bounds: tuple[int, int], type_: str, name: str = "sum") -> tuple[Value, Value]:
    return kernel.limits(bounds, type_, (f"{name}_low", f"{name}_high"))


# A sum of two quantized values as two products, a constant and a shift, proved on every pair of quantized values.
#
# A quantized sum is a step function of two quantized values a and b, in whatever arithmetic.  It is replaced by
#
#   clamp(floor((a * A + b * B + C) / 2^s))
#
# where that is the same number for each of the 65 536 pairs that there are.  For given A and B each pair bounds C from
# below (its result is reached) and from above (the next one is not), unless its result is a bound of the clamp, beyond
# which nothing shows.  All these bounds leave a window for C or none, an exact test of integers; A and B are the ratios
# of the scales times 2^s, or integers close to them.

_WORD = 31
_NEARBY = 2


@dataclass(frozen=True)
class FixedPointSum:
    """``(a * lhs + b * rhs + rest) >> shift`` in 32 bits, before the clamp."""

    lhs: int
    rhs: int
    rest: int
    shift: int


def fixed_point_sum(
    quantized: IntArray, lhs: IntArray, rhs: IntArray, ratios: tuple[float, float], bounds: tuple[int, int]
) -> FixedPointSum | None:
    """The sum that gives ``quantized[i, j]``, clamped to `bounds`, for ``lhs[i]`` and ``rhs[j]``; None where none does.

    `ratios` are the quantized values' scales by that of their sum.
    """
    spans = [abs(ratio) * float(np.ptp(own)) for ratio, own in zip(ratios, (lhs, rhs), strict=True)]
    magnitude = sum(spans) + sum(abs(bound) for bound in bounds) + 2
    if magnitude >= 2.0**_WORD:
        return None
    # An estimate that is never too high; one bit more is better where the numbers fit.
    shift = min(_WORD - int(np.ceil(np.log2(magnitude))), _WORD - 2)
    for bits in (shift + 1, shift):
        for a, b in _slopes(ratios, bits):
            rest = _through(quantized, lhs * a, rhs * b, bits, bounds)
            if rest is not None:
                return FixedPointSum(a, b, rest, bits)
    return None


def _slopes(ratios: tuple[float, float], shift: int) -> Iterator[tuple[int, int]]:
    """Pairs of integers around the ratios times 2^shift, the closest first."""
    a, b = (round(ratio * 2.0**shift) for ratio in ratios)
    steps = sorted(product(range(-_NEARBY, _NEARBY + 1), repeat=2), key=lambda pair: abs(pair[0]) + abs(pair[1]))
    return ((a + i, b + j) for i, j in steps)


def _through(quantized: IntArray, left: IntArray, right: IntArray, shift: int, bounds: tuple[int, int]) -> int | None:
    """The constant in the middle of the window; None where it is empty or a number leaves 32 bits."""
    low, high = bounds
    total = left[:, None] + right
    remainder = (quantized << shift) - total
    minimum = int(remainder[quantized > low].max(initial=-(2**62)))
    maximum = int(remainder[quantized < high].min(initial=2**62)) + (1 << shift) - 1
    if minimum > maximum:
        return None
    rest = min(max((minimum + maximum) // 2, -(2**_WORD)), 2**_WORD - 1)
    partial = [int(edge) for terms in (right, total) for edge in (terms.min() + rest, terms.max() + rest)]
    numbers = [rest, *partial, int(left.min()), int(left.max()), int(right.min()), int(right.max())]
    fits = minimum <= rest <= maximum and all(-(2**_WORD) <= number < 2**_WORD for number in numbers)
    return rest if fits else None


# A sum of two quantized values as two fused multiply-adds, proved on every pair of quantized values.
#
# The stored sum of stored values a and b is replaced by
#
#   clamp(half_even(fma(a, A, fma(b, B, C)))),
#
# which is how ``float_once`` defines it where quantized values are stored as they are, if that is the same number for
# each of the 65 536 pairs that there are.  A and B are the ratios of the scales, and C is what the zero points leave;
# or else the middle of the window that all pairs leave for it.
#
# The numbers lie where float64 computes the multiply-adds exactly before they are rounded, and far from subnormal ones,
# which a thread may flush to zero: with A and B of 2^-10 to 2^10, and C either 0 or of 2^-10 to 2^19, no bit of a sum
# is below 2^-33, and all are below 2^20.

_SMALLEST, _LARGEST_SUM_RATIO, _LARGEST_REST = 2.0**-10, 2.0**10, 2.0**19


def multiply_add_sum(
    quantized: IntArray, lhs: IntArray, rhs: IntArray, numbers: FloatSum, bounds: tuple[int, int]
) -> FloatSum | None:
    """A, B and C that give ``quantized[i, j]``, clamped to `bounds`, for ``lhs[i]`` and ``rhs[j]``; None for none.

    `numbers` are the first that are tried.
    """
    first, second, rest = numbers
    if not all(_SMALLEST <= abs(ratio) <= _LARGEST_SUM_RATIO for ratio in (first, second)):
        return None
    for number in _rests(quantized, lhs[:, None] * np.float64(first) + rhs * np.float64(second), rest, bounds):
        if number and not _SMALLEST <= abs(number) <= _LARGEST_REST:
            continue
        found = first, second, number
        if np.array_equal(np.clip(float_sum(lhs[:, None], rhs[None, :], found), *bounds), quantized):
            return found
    return None


def _rests(
    quantized: IntArray, products: NDArray[np.float64], rest: np.float32, bounds: tuple[int, int]
) -> Iterator[np.float32]:
    """The numbers to try; the middle is computed where `rest` was not found to be right."""
    yield rest
    yield _middle(quantized, products, bounds)


def _middle(quantized: IntArray, products: NDArray[np.float64], bounds: tuple[int, int]) -> np.float32:
    """The middle of what may be added to `products`, were they not rounded."""
    low, high = bounds
    remainder = quantized - products
    minimum = remainder[quantized > low].max(initial=-_LARGEST_REST) - 0.5
    maximum = remainder[quantized < high].min(initial=_LARGEST_REST) + 0.5
    return np.float32((minimum + maximum) / 2)
