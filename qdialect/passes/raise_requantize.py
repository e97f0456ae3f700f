"""`qnn-raise-requantize`: a requantization that was written out in upstream ops becomes `qnn.requantize` again.

What the ops are does not matter: multiply, add, floor and clamp in float32, a 64-bit product with a shift, saturating
doubling and two roundings.  The graph is a step function of the accumulator, and its thresholds are found in the graph
itself, for every accumulator that the weights allow.  It becomes a requantization where one has the same thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect.arithmetic import Multiplier, real_multiplier, requantize, requantize_parameters
from qdialect.dialect import AnyContraction, ClipOp, DequantizeOp, QuantizeOp, RequantizeOp, build
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.elementwise import sources
from qdialect.passes.elementwise.fit import Fit, NoFit, Scales, fit_requantize
from qdialect.passes.elementwise.graph import (
    MAX_OPS,
    UPSTREAM_OPS,
    ElementwiseGraph,
    graph_of,
    is_known_tensor,
    used_outside,
)
from qdialect.passes.elementwise.thresholds import GraphThresholds, thresholds_of_graph
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, attempted, producer, rebuilt
from qdialect.passes.registry import register
from qdialect.passes.tabulate import is_eight_bit

Bounds = tuple[int, int]

_SOURCES = ("i16", "ui16", "i32")
_RESULTS = ("i8", "ui8", "i16", "i32", "i64", "f32")
_WHOLE_FLOATS = (
    *("math.ceil", "math.floor", "math.round", "math.roundeven", "math.trunc", "arith.select"),
    *("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"),
)


@dataclass(frozen=True)
class _Match:
    source: ir.Value
    contraction: AnyContraction | None
    fit: Fit
    stored: sources.Stored
    clamp: Bounds | None


class RaiseRequantize(Replacement[_Match]):
    """A value of at most 256 integers that rises with a 16- or 32-bit tensor, on its way to an 8-bit result.

    The value nearest to that tensor is taken: what follows it is a function of 8-bit numbers.
    """

    roots = (*UPSTREAM_OPS, "qnn.clip")

    def __init__(self) -> None:
        self._sources = sources.Sources()
        self._found: dict[ir.Value, _Match | MatchFailure] = {}
        """Of values whose graph ends there, for several ops ask; until something changes."""

    def check(self, op: ir.OpView) -> _Match | None:
        result = op.operation.results[0]
        if not is_known_tensor(result) or not _may_be_bounded(op) or sources.is_reinterpreted(result):
            return None
        if not self._may_be_graph(result):
            return None
        graph = attempted(graph_of, result)
        if isinstance(graph, MatchFailure) and is_eight_bit(result):
            raise graph
        if not isinstance(graph, ElementwiseGraph):
            return None
        # Accumulators that become f32 values by an op of their own are rounded by another pass, once, at the end.
        if any(isinstance(one, DequantizeOp | QuantizeOp) for one in graph.ops):
            return None
        if is_eight_bit(result):
            match = self._match_at_end(graph)
            if isinstance(match, MatchFailure):
                raise match
            return match
        match = self._match(graph)
        # A graph that is not complete yet may still become a requantization.
        return None if isinstance(match, MatchFailure) or self._matches_at_end(result) else match

    def emit(self, op: ir.OpView, match: _Match) -> ir.Value:
        self._found.clear()
        self._sources.forget()
        result, scales, element = op.operation.results[0], match.fit.scales, match.stored.element
        value = build(
            RequantizeOp,
            _rescaled(match),
            element=element,
            input_scale=scales.input,
            weight_scales=scales.weights,
            output_scale=scales.output,
            output_zero_point=match.fit.zero_point,
            axis=max(len(shape_of(result.type)) - 1, 0),
            rounding=match.fit.rounding,
            multiplier=scales.multiplier,
        ).output
        if match.clamp is not None:
            value = build(ClipOp, value, element=element, min=match.clamp[0], max=match.clamp[1]).output
        return sources.widened(value, result.type, match.stored.shift)

    def _may_be_graph(self, value: ir.Value) -> bool:
        """Whether `value` may be a graph of accumulators or their like; where that has 8 bits, a reason may be due."""
        found = self._sources.of(value)
        is_candidate = is_eight_bit(value) or (len(found.sources) == 1 and found.depth <= MAX_OPS)
        types = [source.type for source in found.sources if isinstance(source.type, ir.RankedTensorType)]
        return is_candidate and any(element_of(type_) in _SOURCES for type_ in types)

    def _match(self, graph: ElementwiseGraph) -> _Match | MatchFailure:
        if graph.result not in self._found:
            self._found[graph.result] = attempted(_match, graph)
        return self._found[graph.result]

    def _match_at_end(self, graph: ElementwiseGraph) -> _Match | MatchFailure:
        """The match of the value nearest to the graph's 8-bit result that is stored as that result."""
        match = self._match(graph)
        for op in reversed(graph.ops[:-1]):
            if isinstance(match, _Match):
                break
            value = op.operation.results[0]
            result = sources.following_result(value)
            above = attempted(graph_of, value) if result is not None and result == graph.result else None
            found = self._match(above) if isinstance(above, ElementwiseGraph) else None
            if isinstance(found, _Match) and found.stored.result == graph.result:
                match = found
        return match if isinstance(match, _Match) else self._nearest_reason(graph) or match

    def _nearest_reason(self, graph: ElementwiseGraph) -> MatchFailure | None:
        """The reason at the first value that has the thresholds of an 8-bit number, or else at the last value."""
        refused: list[tuple[str, MatchFailure]] = []
        for op in graph.ops[:-1]:
            value = op.operation.results[0]
            is_open = _may_be_bounded(op) and not is_eight_bit(value)
            above = attempted(graph_of, value) if is_open else None
            found = self._match(above) if isinstance(above, ElementwiseGraph) else None
            if isinstance(found, MatchFailure):
                refused.append((op.operation.name, found))
        without_fit = [(name, reason) for name, reason in refused if isinstance(reason, NoFit)]
        if not refused:
            return None
        name, reason = without_fit[0] if without_fit else refused[-1]
        return MatchFailure(f"depends on '{name}', which {reason.reason}")

    def _matches_at_end(self, value: ir.Value) -> bool:
        """Whether the whole chain that starts at `value` is a requantization, so that nothing is left of it."""
        result = sources.following_result(value)
        graph = None if result is None else attempted(graph_of, result)
        return isinstance(graph, ElementwiseGraph) and isinstance(self._match_at_end(graph), _Match)


def _may_be_bounded(op: ir.OpView) -> bool:
    """Whether the result may be an integer of a small range: of floats, those that are rounded or clamped."""
    element = element_of(op.operation.results[0].type)
    return element in _RESULTS and (element != "f32" or op.operation.name in _WHOLE_FLOATS)


def _match(graph: ElementwiseGraph) -> _Match:
    owner = producer(graph.source)
    contraction = owner if isinstance(owner, AnyContraction) else None
    found = thresholds_of_graph(graph, *sources.numbers_of(graph.source, contraction))
    # Other tensors than accumulators are stored whoever reads them.
    shared = None if contraction is None else used_outside(graph)
    stored = sources.stored_as(graph, found)
    if shared or stored is None:
        raise NoFit(shared) if shared else MatchFailure("must lead to an 8-bit result")
    own = None
    if contraction is not None:
        own = Scales(contraction.input_scale, contraction.weight_scales, 1.0, Multiplier.F64)
    fit = fit_requantize(graph, found, own, ELEMENT_RANGES[stored.element], stored.shift)
    return _Match(graph.source, contraction, fit, stored, _clamp(fit, found, stored))


def _clamp(fit: Fit, found: GraphThresholds, stored: sources.Stored) -> Bounds | None:
    """The bounds of the graph's integers, where the requantization alone would leave them."""
    scales, bounds = fit.scales, (found.minimum + stored.shift, found.maximum + stored.shift)
    f32 = real_multiplier(scales.input, scales.weights, scales.output, scales.multiplier)
    params = requantize_parameters(fit.rounding, f32)
    ends = np.stack([found.thresholds.low, found.thresholds.high])
    results = requantize(ends, params, fit.zero_point, *ELEMENT_RANGES[stored.element], fit.rounding)
    return None if bounds[0] <= results.min() and results.max() <= bounds[1] else bounds


def _rescaled(match: _Match) -> ir.Value:
    """The source, whose contraction gets the weight scales that go with the multipliers."""
    contraction, weights = match.contraction, match.fit.scales.weights
    if contraction is None or contraction.weight_scales == weights:
        return match.source
    return rebuilt(contraction, weight_scales=weights).output


@register
class RaiseRequantizePass(GraphPass):
    """Recognise a requantization that was expanded to upstream ops.

    The ops may be of floats or of integers, with any rounding and in any order, as long as the result rises with the
    accumulator and has the thresholds of one of the rounding modes of qnn.requantize.  This is proved for every
    accumulator that the weights allow.  Where the scales of the contraction do not give the multipliers, its weight
    scales change.
    """

    name: ClassVar[str] = "qnn-raise-requantize"
    rewrites = (RaiseRequantize,)
