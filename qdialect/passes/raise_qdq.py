"""`qnn-raise-qdq`: a float region, dequantize -> float ops -> quantize, becomes the integer op it stands for.

A region with one 8-bit input becomes a table: its ops are evaluated in float32 for each of the 256 quantized values,
and the results are rounded as `qnn.quantize` does, so the table has the bits of the region.  A region with two inputs
becomes an integer `add` or `mul` only where an integer arithmetic gives the result of the region for all 65536 pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import AddArithmetic, BinaryQuantization, Multiplier, QuantParams, Rounding, elementwise
from qdialect.dialect import AddOp, DequantizeOp, MulOp, QuantizeOp, build
from qdialect.dialect.constants import constant_value
from qdialect.dialect.elementwise_ops import binary_attributes
from qdialect.dialect.fields import is_scale
from qdialect.dialect.type_constraints import element_of, range_of
from qdialect.ir._mlir import ir
from qdialect.passes import tabulate
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, attempted, producer, refuse, require
from qdialect.passes.registry import register

_ARITH = "addf subf mulf divf negf maximumf minimumf remf cmpf select"
_MATH = "absf ceil copysign erf erfc exp exp2 expm1 floor fma log log10 log1p log2 powf roundeven rsqrt sqrt tanh trunc"
_FLOAT_OPS = frozenset((*(f"arith.{name}" for name in _ARITH.split()), *(f"math.{name}" for name in _MATH.split())))


class RaiseToTable(tabulate.LutPattern):
    """A float region with one 8-bit input is a table; the input may enter it several times."""

    roots = ("qnn.quantize",)

    def check(self, op: QuantizeOp) -> tabulate.LutMatch | None:
        sources = _sources_of(op)
        if len({dequantize.input for dequantize in sources}) != 1:
            return None
        before, after = (QuantParams(one.scales[0], one.zero_points[0]) for one in (sources[0], op))
        return tabulate.tabulated(op, sources[0].input, before, after)


@dataclass(frozen=True)
class _Binary:
    """An integer op with the meaning of the float region."""

    op_class: type[AddOp | MulOp]
    operands: tuple[ir.Value, ir.Value]
    quantization: BinaryQuantization
    how: Mapping[str, Any]

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the op."""
        return {**binary_attributes(self.quantization), **self.how}


class RaiseToBinary(Replacement[_Binary]):
    """A float region with two 8-bit inputs is an add or mul where all its results agree with that op's."""

    roots = ("qnn.quantize",)

    def check(self, op: QuantizeOp) -> _Binary | None:
        sources = attempted(_sources_of, op)
        # The pattern of tables gives the reason.
        if isinstance(sources, MatchFailure) or len({dequantize.input for dequantize in sources}) < 2:
            return None
        require(len(sources) == 2, f"must depend on one or two dequantized tensors, but got {len(sources)}")
        return _same_everywhere(op, sources[0], sources[1])

    def emit(self, op: QuantizeOp, match: _Binary) -> ir.Value:
        return build(match.op_class, *match.operands, element=element_of(op.output.type), **match.attributes).output


def _sources_of(op: QuantizeOp) -> list[DequantizeOp]:
    """The dequantize ops on which `op` depends through float ops and uniform constants alone; none for no region."""
    found: dict[ir.Value, DequantizeOp] = {}
    seen: set[ir.Value] = set()
    pending = [op.input]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        source = producer(value)
        if isinstance(source, DequantizeOp):
            found[value] = source
            continue
        obstacle = _obstacle(value)
        if obstacle and len(seen) == 1:
            return []
        refuse(obstacle)
        pending += reversed([] if source is None else list(source.operation.operands))
    sources = list(found.values())
    _check_parameters(op, sources)
    return sources


def _obstacle(value: ir.Value) -> str | None:
    if tabulate.uniform_value(value) is not None:
        return None
    op = producer(value)
    if constant_value(value) is not None:
        return "must depend on constants with equal elements alone, but the elements of one differ"
    if op is None or op.operation.name not in _FLOAT_OPS:
        name = "a function argument" if op is None else f"'{op.operation.name}'"
        return f"must depend on dequantized values through element-wise float ops alone, but there is {name}"
    return None


def _check_parameters(op: QuantizeOp, sources: Sequence[DequantizeOp]) -> None:
    are_bytes = all(tabulate.is_eight_bit(value) for value in (op.output, *(source.input for source in sources)))
    require(are_bytes, "must quantize to 8 bits what was dequantized from 8 bits")
    for one in (op, *sources):
        is_one = len(one.scales) == len(one.zero_points) == 1
        require(is_one, "must have one scale and one zero point for each tensor")
    for one in (op, *sources):
        require(is_scale(one.scales[0]), f"must have scales of at least 2^-60, but got {one.scales[0]}")


def _same_everywhere(op: QuantizeOp, left: DequantizeOp, right: DequantizeOp) -> _Binary:
    quantized = {
        left.input: tabulate.every_value_of(left.input.type).reshape(256, 1),
        right.input: tabulate.every_value_of(right.input.type).reshape(1, 256),
    }
    floats = {source.output: tabulate.evaluated(source.output, quantized) for source in (left, right)}
    wanted = tabulate.evaluated(op.output, floats).astype(np.int64)
    full, reached = range_of(op.output.type), (int(wanted.min()), int(wanted.max()))
    fewest = wanted.size
    for candidate in _candidates(op, left, right):
        for bounds in (full, reached):
            bounded = replace(candidate, quantization=replace(candidate.quantization, bounds=bounds))
            missed = int(np.count_nonzero(_results(bounded, quantized) != wanted))
            if missed == 0:
                return bounded
            fewest = min(fewest, missed)
    wish = f"must equal an integer add or mul on all {wanted.size} pairs of quantized values"
    raise MatchFailure(f"{wish}, but the closest misses {fewest}")


def _candidates(op: QuantizeOp, left: DequantizeOp, right: DequantizeOp) -> Iterator[_Binary]:
    """Sums and products in the arithmetics of the dialect, those with one float32 rounding first."""
    orders = ((left, right), (right, left))
    for lhs, rhs in orders:
        yield _binary(AddOp, op, lhs, rhs, {"arithmetic": AddArithmetic.FLOAT_ONCE})
    # Whatever the scales, a sum of two dequantized tensors is this one.
    yield _binary(AddOp, op, left, right, {"arithmetic": op.scaling.f32_sum})
    for rounding in (Rounding.F32_RNE_ZP_LAST, Rounding.F32_NEAREST_ZP_FIRST, Rounding.FIXED64_NEAREST):
        yield _binary(MulOp, op, left, right, {"rounding": rounding, "multiplier": Multiplier.F32})


def _binary(
    op_class: type[AddOp | MulOp], op: QuantizeOp, lhs: DequantizeOp, rhs: DequantizeOp, how: Mapping[str, Any]
) -> _Binary:
    params = [QuantParams(one.scales[0], one.zero_points[0]) for one in (lhs, rhs, op)]
    quantization = BinaryQuantization(*params, bounds=range_of(op.output.type))
    return _Binary(op_class, (lhs.input, rhs.input), quantization, how)


def _results(candidate: _Binary, quantized: Mapping[ir.Value, tabulate.Array]) -> NDArray[np.int64]:
    lhs, rhs = (quantized[value] for value in candidate.operands)
    quantization, how = candidate.quantization, candidate.how
    if candidate.op_class is MulOp:
        return elementwise.mul(lhs, rhs, quantization, how["rounding"], how["multiplier"])
    # Rounding and multiplier do not enter a sum of floats.
    unused = (Rounding.FIXED64_UP, Multiplier.F64)
    return elementwise.add(lhs, rhs, quantization, how["arithmetic"], *unused)


@register
class RaiseQdqPass(GraphPass):
    """Turn float regions between dequantize and quantize into integer ops with the same bits.

    Element-wise float ops and constants with one 8-bit input become a table; with two, an add or mul where one exists
    that agrees on every pair of quantized values.
    """

    name: ClassVar[str] = "qnn-raise-qdq"
    rewrites = (RaiseToTable, RaiseToBinary)
