"""`qnn-raise-float-requantize`: a requantization spelled out in float32 ops becomes `qnn.requantize` again.

TVM's float32 UPWARD form, after its own lowering, on int32 accumulators: ``floor(float(acc) * m + (z + 0.5))`` or with
the sum in two steps, cast to int32, clamped, cast to 8 bits.  `qnn.requantize` sums in two steps.  One step gives the
same code: z and z + 0.5 are multiples of the spacing of all float32 numbers near the results that differ, unless z is
-1, where a product just below one half is finer than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import AnyContraction, ClipOp, RequantizeOp, build
from qdialect.dialect.attribute_kinds import is_scale
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, range_of, shape_of
from qdialect.passes.matching import producer, second_use, users
from qdialect.passes.pattern import Pattern, PatternPass, Refusal, Rewriter
from qdialect.passes.registry import register
from qdialect.passes.tabulate import uniform_value
from qdialect.quant_math import Multiplier, Rounding, real_multiplier

Bounds = tuple[int, int]

# A multiplier has at most three float32 roundings, half a unit each.
_ULPS = 2
_WIDE = ELEMENT_RANGES["i32"]


@dataclass(frozen=True)
class _Match:
    contraction: AnyContraction
    output_scale: float
    multiplier: Multiplier
    output_zero_point: int
    bounds: Bounds


class RaiseFloatRequantize(Pattern[_Match]):
    """The cast to 8 bits at the end of the float32 form, a truncation to `i8` or that read as `ui8`.

    The output scale is not in the float form; it is the one that gives the multipliers together with the contraction's
    own scales.
    """

    name: ClassVar[str] = "raise-float-requantize"
    roots: ClassVar[tuple[str, ...]] = ("arith.trunci", "tensor.bitcast")

    def check(self, op: ir.OpView) -> _Match | Refusal | None:
        result = op.operation.results[0]
        if element_of(result.type) not in ("i8", "ui8") or _is_reinterpreted(result):
            return None
        chain = _chain(op)
        if chain is None:
            return None
        contraction, values, bounds, floats = chain
        shared = next(filter(None, map(second_use, values)), None)
        if shared:
            return Refusal(shared)
        least, most = range_of(result.type)
        if not least <= bounds[0] <= bounds[1] <= most:
            return Refusal(f"must clamp to [{least}, {most}] before the cast, but clamps to {list(bounds)}")
        zero_point = _zero_point(floats[:-1], range_of(result.type))
        if isinstance(zero_point, Refusal):
            return zero_point
        scaling = _scaling(contraction, floats[-1])
        return scaling if isinstance(scaling, Refusal) else _Match(contraction, *scaling, zero_point, bounds)

    def rewrite(self, op: ir.OpView, match: _Match, rewriter: Rewriter) -> None:
        contraction = match.contraction
        element = element_of(op.operation.results[0].type)
        with rewriter.before(op):
            value = build(
                RequantizeOp,
                contraction.output,
                element=element,
                input_scale=contraction.input_scale,
                weight_scales=contraction.weight_scales,
                output_scale=match.output_scale,
                output_zero_point=match.output_zero_point,
                axis=len(shape_of(contraction.output.type)) - 1,
                rounding=Rounding.F32_UP_ZP_FIRST,
                multiplier=match.multiplier,
            ).output
            if match.bounds != range_of(value.type):
                value = build(ClipOp, value, element=element, min=match.bounds[0], max=match.bounds[1]).output
        rewriter.replace(op, value)


def _is_reinterpreted(value: ir.Value) -> bool:
    return any(user.operation.name == "tensor.bitcast" for user in users(value))


def _chain(op: ir.OpView) -> tuple[AnyContraction, list[ir.Value], Bounds, list[ir.Value]] | None:
    """The contraction, the values between it and `op`, the clamp, and the constants: the sum's, then the product's."""
    values: list[ir.Value] = []
    below: ir.OpView | None = op
    if op.operation.name == "tensor.bitcast":
        below = _step(op, values)
    if below is None or below.operation.name != "arith.trunci":
        return None
    below, bounds = _clamp(_step(below, values), values)
    for name in ("arith.fptosi", "math.floor"):
        if below is None or below.operation.name != name:
            return None
        below = _step(below, values)
    constants: list[ir.Value] = []
    while below is not None and below.operation.name in ("arith.addf", "arith.mulf"):
        constants.append(below.operation.operands[1])
        is_product = below.operation.name == "arith.mulf"
        below = _step(below, values)
        if is_product:
            break
    if below is None or below.operation.name != "arith.sitofp" or len(constants) not in (2, 3):
        return None
    contraction = _step(below, values)
    return (contraction, values, bounds, constants) if isinstance(contraction, AnyContraction) else None


def _step(op: ir.OpView, values: list[ir.Value]) -> ir.OpView | None:
    """The producer of the first operand, which is put on `values`."""
    values.append(op.operation.operands[0])
    return producer(values[-1])


def _clamp(op: ir.OpView | None, values: list[ir.Value]) -> tuple[ir.OpView | None, Bounds]:
    """What is below the clamps of 32-bit codes, and their common bounds."""
    least, most = _WIDE
    while op is not None:
        if isinstance(op, ClipOp):
            least, most = max(least, op.min), min(most, op.max)
        elif op.operation.name in ("arith.maxsi", "arith.minsi"):
            bound = uniform_value(op.operation.operands[1])
            if bound is None:
                break
            is_floor = op.operation.name == "arith.maxsi"
            least, most = (max(least, int(bound)), most) if is_floor else (least, min(most, int(bound)))
        else:
            break
        op = _step(op, values)
    return op, (least, most)


def _zero_point(addends: Sequence[ir.Value], codes: Bounds) -> int | Refusal:
    """The zero point z, given z + 0.5, or 0.5 and then z, outermost first."""
    found = [uniform_value(value) for value in addends]
    numbers = [float(value) for value in found if value is not None]
    if len(numbers) < len(found):
        return Refusal("must add constants with equal elements")
    zero_point = sum(numbers) - 0.5
    splits = len(numbers) == 1 or numbers[0] == 0.5
    if not splits or zero_point != round(zero_point) or not codes[0] <= zero_point <= codes[1]:
        return Refusal(f"must add a zero point in {list(codes)} and 0.5, but adds {numbers[::-1]}")
    if len(numbers) == 1 and zero_point == -1:
        return Refusal("must add the zero point -1 and 0.5 one after the other to round as a requantize does")
    return int(zero_point)


def _scaling(contraction: AnyContraction, factor: ir.Value) -> tuple[float, Multiplier] | Refusal:
    """The output scale that gives the multipliers `factor`, and how they were formed."""
    wanted = constant_value(factor)
    if wanted is None:
        return Refusal("must multiply by a constant")
    channels: NDArray[np.float32] = wanted.reshape(-1, wanted.shape[-1])
    if np.any(channels != channels[0]) or not np.all(channels > 0):
        return Refusal("must multiply by positive numbers that depend on the last dimension alone")
    exact = contraction.input_scale * contraction.weight_scales[0] / float(channels[0, 0])
    scales = [scale for scale in _near(exact) if is_scale(scale)]
    for scale, multiplier in product(scales, Multiplier):
        real = real_multiplier(contraction.input_scale, contraction.weight_scales, scale, multiplier)
        if np.array_equal(np.broadcast_to(real.astype(np.float32), channels[0].shape), channels[0]):
            return scale, multiplier
    return Refusal("must multiply by the contraction's scales over one output scale")


def _near(exact: float) -> Iterator[float]:
    """Scales to try: float32 ones, as models have them, within the rounding of the multiplier; then `exact` itself."""
    middle = np.float32(exact)
    yield float(middle)
    for direction in (np.float32(0), np.float32(np.inf)):
        step = middle
        for _ in range(_ULPS):
            step = np.nextafter(step, direction)
            yield float(step)
    yield exact


@register
@dataclass(frozen=True)
class RaiseFloatRequantizePass(PatternPass):
    """Recognise a requantization that was expanded to float32 ops after a contraction.

    The form is multiply, add the zero point and one half, floor, clamp, cast: TVM's float32 UPWARD epilogue.
    """

    name: ClassVar[str] = "qnn-raise-float-requantize"

    def patterns(self) -> Sequence[Pattern[Any]]:
        return (RaiseFloatRequantize(),)
