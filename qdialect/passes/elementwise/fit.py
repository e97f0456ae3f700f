"""The requantization whose thresholds are those of an element-wise graph.

A requantization rises in every rounding mode, so that it equals a graph on a range of accumulators if and only if, at
the first accumulator t of each integer c of the graph, it is c or more, and less than c at t - 1.  Any multiplier, zero
point and rounding mode for which this holds will do: the graph's own constants are tried first, then the multipliers
that its thresholds leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Multiplier, Rounding, Thresholds, real_multiplier, requantize, requantize_parameters
from qdialect.dialect import RequantizeOp
from qdialect.dialect.fields import LARGEST_SCALE, is_scale
from qdialect.ir._mlir import ir
from qdialect.passes.elementwise.graph import ElementwiseGraph
from qdialect.passes.elementwise.thresholds import GraphThresholds
from qdialect.passes.pattern import MatchFailure, require

F64Array = NDArray[np.float64]

# A multiplier has at most three float32 roundings, half a unit in the last place each.
_ULPS = 2
_PROBES = 8
_FLOAT_FIRST = (
    *(Rounding.F32_UP_ZP_FIRST, Rounding.F32_RNE_ZP_LAST, Rounding.F32_RNE_ZP_FIRST, Rounding.F32_NEAREST_ZP_FIRST),
    *(Rounding.FIXED64_UP, Rounding.FIXED64_NEAREST),
)
_FIXED_FIRST = (
    *(Rounding.FIXED64_UP, Rounding.FIXED64_NEAREST, Rounding.FIXED32_DOUBLE, Rounding.FIXED64_DOUBLE),
    *(Rounding.F32_UP_ZP_FIRST, Rounding.F32_RNE_ZP_LAST),
)


@dataclass(frozen=True)
class Scales:
    """The scales of the integers before and after a requantization: input, weights, output."""

    input: float
    weights: tuple[float, ...]
    output: float
    multiplier: Multiplier


@dataclass(frozen=True)
class Fit:
    """A requantization with the bits of a graph."""

    scales: Scales
    zero_point: int
    rounding: Rounding


class NoFit(MatchFailure):
    """Why a graph that has the thresholds of an 8-bit number does not become a requantization."""


def fit_requantize(
    graph: ElementwiseGraph, found: GraphThresholds, own: Scales | None, zero_points: tuple[int, int], shift: int
) -> Fit:
    """The requantization that gives the graph's integers plus `shift`, with a zero point in `zero_points`.

    `own` are the scales of the source, where it has any: they are kept where an output scale goes with them, and else
    new weight scales are derived.  Raises `MatchFailure` where there is no such requantization.
    """
    thresholds = replace(found.thresholds, values=found.thresholds.values + shift)
    require(len(thresholds.values) > 0, f"is {found.minimum} for every number it depends on")
    candidates = list(_points(graph, found, shift, zero_points))
    is_float = any(op.operation.name in ("arith.mulf", "arith.divf") for op in graph.ops)
    for multipliers in _multipliers(graph, thresholds, candidates):
        for rounding, point in product(_FLOAT_FIRST if is_float else _FIXED_FIRST, candidates):
            if not _holds(thresholds, multipliers, point, rounding):
                continue
            scales = _scales(thresholds, multipliers, Fit(own or _UNIT, point, rounding), own is not None)
            if scales is not None:
                return Fit(scales, point, rounding)
    wanted = f"no multiplier with a zero point in {list(zero_points)} gives its {len(thresholds.values)} thresholds"
    raise NoFit(f"must round as a requantization does, but {wanted}")


_UNIT = Scales(1.0, (1.0,), 1.0, Multiplier.F64)


def _points(graph: ElementwiseGraph, found: GraphThresholds, shift: int, allowed: tuple[int, int]) -> Iterator[int]:
    """Zero points to try: the graph at 0, where the line through its thresholds is at 0, and what it adds."""
    numbers = [*_at_zero(graph, found), *_intercepts(found.thresholds)]
    for value, array in graph.constants.items():
        if array.size == 1 and array.dtype.kind in "if" and np.isfinite(array[0, 0]) and _is_addend(graph, value):
            number = float(array[0, 0])
            numbers += [sign * whole for whole in (round(number), round(number - 0.5)) for sign in (1, -1)]
    for number in dict.fromkeys(number + shift for number in numbers):
        if allowed[0] <= number <= allowed[1]:
            yield number


def _at_zero(graph: ElementwiseGraph, found: GraphThresholds) -> list[int]:
    if found.thresholds.low.max() > 0 or found.thresholds.high.min() < 0:
        return []
    values = graph.evaluate(np.zeros((1, 1), np.int64)).values[graph.result]
    return [int(value) for value in np.unique(values)][:_PROBES]


def _intercepts(thresholds: Thresholds) -> list[int]:
    """Integers near the height at zero of the line through the first and the last threshold of the widest channel."""
    inside = (thresholds.first > thresholds.low) & (thresholds.first <= thresholds.high)
    channel = int(inside.sum(axis=0).argmax())
    integers, first = thresholds.values[inside[:, channel]], thresholds.first[inside[:, channel], channel]
    if len(first) < 2 or first[0] == first[-1]:
        return []
    slope = (integers[-1] - integers[0]) / (first[-1] - first[0])
    height = round(integers[0] - 0.5 - slope * (first[0] - 0.5))
    return [height, height - 1, height + 1]


def _is_addend(graph: ElementwiseGraph, value: ir.Value) -> bool:
    names = ("arith.addi", "arith.addf", "arith.subi", "arith.subf")
    return any(op.operation.name in names and value in list(op.operation.operands) for op in graph.ops)


def _multipliers(graph: ElementwiseGraph, thresholds: Thresholds, points: Sequence[int]) -> Iterator[F64Array]:
    """Multipliers to try, f64[C] or f64[1], all positive."""
    channels = len(thresholds.low)
    own = _product_of_factors(graph)
    if own is not None and np.all((own > 0) & np.isfinite(own)):
        yield own
    for point in points:
        window = _window(thresholds, point)
        if window is None:
            continue
        minimum, end = window
        middle = (minimum + end) / 2
        yield middle
        # Ties of float32 sums and products move a threshold by less than the spacing of float32 numbers.
        nearest = middle.astype(np.float32)
        yield nearest.astype(np.float64)
        if channels == 1 and own is not None:
            yield np.clip(own, minimum, end)


def _product_of_factors(graph: ElementwiseGraph) -> F64Array | None:
    """The multiplier of the graph: its factors, shifts and divisors as one number for each channel."""
    total: F64Array = np.ones(1)
    for op in graph.ops:
        name = op.operation.name
        if isinstance(op, RequantizeOp):
            total = total * real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
            continue
        constants = [graph.constants[v] for v in op.operation.operands if v in graph.constants]
        if not constants or name not in _FACTORS:
            continue
        number = constants[0][0].astype(np.float64)
        with np.errstate(all="ignore"):
            total = total * _FACTORS[name](number)
    return total


_DIVISIONS = ("arith.divf", "arith.divsi", "arith.divui", "arith.floordivsi", "arith.ceildivsi")
_FACTORS: dict[str, Callable[[F64Array], F64Array]] = {
    "arith.mulf": np.positive,
    "arith.muli": np.positive,
    "arith.shli": np.exp2,
    **dict.fromkeys(_DIVISIONS, np.reciprocal),
    **dict.fromkeys(("arith.shrsi", "arith.shrui"), lambda number: np.exp2(-number)),
}


def _window(thresholds: Thresholds, zero_point: int) -> tuple[F64Array, F64Array] | None:
    """The multipliers M with ``floor(t * M + 1/2) + z >= c`` at each threshold t and less before it; None without any.

    With h = c - z - 1/2: t * M >= h and (t - 1) * M < h, of which each bounds M from one side.
    """
    height = (thresholds.values - zero_point - 0.5)[:, None]
    after = np.where(thresholds.first <= thresholds.high, thresholds.first, 0).astype(np.float64)
    before = np.where(thresholds.first > thresholds.low, thresholds.first - 1, 0).astype(np.float64)
    minimum: F64Array
    end: F64Array
    with np.errstate(all="ignore"):
        minimum = np.where(after > 0, height / after, 0.0).max(axis=0)
        minimum = np.maximum(minimum, np.where(before < 0, height / before, 0.0).max(axis=0))
        end = np.where(before > 0, height / before, np.inf).min(axis=0)
        end = np.minimum(end, np.where(after < 0, height / after, np.inf).min(axis=0))
    end = np.where(np.isfinite(end), end, 2 * minimum + 1)
    return (minimum, end) if np.all(minimum <= end) and np.all(end > 0) else None


def _holds(thresholds: Thresholds, multipliers: F64Array, zero_point: int, rounding: Rounding) -> bool:
    """Whether the requantization has exactly these thresholds; tried at a few of them first."""
    if np.any(multipliers >= 2.0**30):
        return False
    every = np.arange(len(thresholds.values))
    few = every[:: max(1, len(every) // _PROBES)]
    return all(_agrees(thresholds, part, multipliers, zero_point, rounding) for part in (few, every))


def _agrees(
    thresholds: Thresholds, part: NDArray[np.intp], multipliers: F64Array, zero_point: int, rounding: Rounding
) -> bool:
    params = requantize_parameters(rounding, multipliers)
    bounds = int(thresholds.values[0]) - 1, int(thresholds.values[-1])
    first, integers = thresholds.first[part], thresholds.values[part][:, None]
    after = requantize(np.minimum(first, thresholds.high), params, zero_point, *bounds, rounding)
    before = requantize(np.maximum(first - 1, thresholds.low), params, zero_point, *bounds, rounding)
    is_after = (after >= integers) | (first > thresholds.high)
    is_before = (before < integers) | (first <= thresholds.low)
    return bool(np.all(is_after & is_before))


def _scales(thresholds: Thresholds, multipliers: F64Array, fit: Fit, has_own: bool) -> Scales | None:
    """Scales that give the thresholds: the source's own and an output scale, or derived weight scales."""
    own = fit.scales
    exact = float(own.input * own.weights[0] / multipliers[0]) if has_own else 1.0
    for scale in filter(is_scale, _near(exact) if has_own else ()):
        for multiplier in Multiplier:
            f32 = real_multiplier(own.input, own.weights, scale, multiplier)
            if _holds(thresholds, f32, fit.zero_point, fit.rounding):
                return replace(own, output=scale, multiplier=multiplier)
    output = next(filter(is_scale, (*_near(exact), own.input)))
    weights = tuple((multipliers * output / own.input).tolist())
    derived = Scales(own.input, weights, output, Multiplier.F64)
    if not all(0 < weight <= LARGEST_SCALE for weight in weights):
        return None
    f32 = real_multiplier(derived.input, derived.weights, derived.output, derived.multiplier)
    return derived if _holds(thresholds, f32, fit.zero_point, fit.rounding) else None


def _near(exact: float) -> Iterator[float]:
    """Scales to try: float32 ones, as models have them, within the rounding of the multiplier; then `exact` itself."""
    middle = np.float32(exact)
    yield float(middle)
    for direction in (np.float32(0), np.float32(np.inf)):
        scale = middle
        for _ in range(_ULPS):
            scale = np.nextafter(scale, direction)
            yield float(scale)
    yield exact
