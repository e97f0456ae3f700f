"""An element-wise graph as a step function of its source: where it is monotonic, and where each result begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import IntArray, Thresholds
from qdialect.ir._mlir import ir
from qdialect.passes.elementwise.graph import ElementwiseGraph, Evaluation
from qdialect.passes.pattern import require

# Intervals of integers on which an element-wise graph is proved to be monotonic.
#
# The proof goes from the source to the result.  A value that is monotonic on an interval is known from its two ends:
# they bound it, and they tell whether it rises, falls or stays the same.  Each op has a rule that tells, from the ends
# of its operands, whether its result is monotonic as well: a rounding, a cast or a clamp always is, a sum where both
# operands rise or one of them stays, an integer product where nothing wraps.  Where an op turns on a comparison - a
# select, an absolute value - the interval is divided at the number where the comparison changes, found by halving, for
# a comparison of monotonic values changes once.

Array = NDArray[Any]
Flags = NDArray[np.bool_]

_MAX_INTERVALS = 64


@dataclass(frozen=True)
class Interval:
    """Integers ``low..high`` of each of C channels, int64[C]; a channel has at least one."""

    low: IntArray
    high: IntArray

    @property
    def ends(self) -> IntArray:
        """Both ends, [2, C]."""
        return np.stack([self.low, self.high])


def monotonic_intervals(graph: ElementwiseGraph, whole: Interval) -> list[Interval] | str:
    """Intervals that cover `whole`, from left to right, on each of which the graph is monotonic in every channel.

    The ends of neighbours may coincide.  A text names the op where the proof fails.
    """
    done: list[Interval] = []
    pending = [whole]
    while pending:
        interval = pending.pop()
        proof = _Proof(graph, graph.evaluate(interval.ends))
        if proof.holds():
            done.append(interval)
            continue
        halves = _divided(graph, proof, interval)
        if halves is None:
            return f"cannot be shown to be monotonic: '{proof.first_failure()}' may rise and fall"
        if len(done) + len(pending) >= _MAX_INTERVALS:
            return f"must be monotonic on {_MAX_INTERVALS} intervals at most"
        pending += reversed(halves)
    return done


def _divided(graph: ElementwiseGraph, proof: _Proof, interval: Interval) -> tuple[Interval, Interval] | None:
    """Both sides of the first number where a comparison changes; a channel where it does not is on the left alone."""
    for op in proof.failures():
        key = _key_of(op)
        if key is None or not proof.is_key_monotonic(op):
            continue
        at_ends = key(*proof.operands(op))
        changes = at_ends[0] != at_ends[-1]
        if not changes.any():
            continue
        first = _first_change(graph, op, key, interval)
        left = np.where(changes, first - 1, interval.high)
        return Interval(interval.low, left), Interval(np.where(changes, first, interval.high), interval.high)
    return None


def _first_change(graph: ElementwiseGraph, op: ir.OpView, key: _Key, interval: Interval) -> IntArray:
    """The first number of each channel whose key is not that of ``low``; `high` where there is no other."""

    def key_at(numbers: IntArray) -> Array:
        values = graph.evaluate(numbers[None]).values
        return key(*(values[operand] for operand in op.operation.operands))[0]

    start = key_at(interval.low)
    below, first = interval.low, interval.high
    while np.any(first - below > 1):
        middle = (below + first) >> 1
        is_changed = key_at(middle) != start
        below, first = np.where(is_changed, below, middle), np.where(is_changed, middle, first)
    return first


class _Proof:
    """Which values are monotonic on an interval, by channel."""

    def __init__(self, graph: ElementwiseGraph, evaluation: Evaluation) -> None:
        self._graph = graph
        self._evaluation = evaluation
        ends = evaluation.values
        every = np.ones(1, np.bool_)
        self._is_monotonic: dict[ir.Value, Flags] = {graph.source: every, **dict.fromkeys(graph.constants, every)}
        for op in graph.ops:
            operands = list(op.operation.operands)
            known = np.logical_and.reduce(np.broadcast_arrays(*(self._is_monotonic[o] for o in operands)))
            flags = known & (_rule_holds(op, ends, evaluation) | _all_stay([ends[o] for o in operands]))
            if op.operation.name == "arith.select":
                flags = self._select(operands)
            self._is_monotonic[op.operation.results[0]] = flags

    def holds(self) -> bool:
        """Whether the result is monotonic in every channel."""
        return bool(self._is_monotonic[self._graph.result].all())

    def failures(self) -> Iterator[ir.OpView]:
        """Ops whose result is not known to be monotonic, in order, and what selects depend on before them."""
        for op in self._graph.ops:
            if not self._is_monotonic[op.operation.results[0]].all() or op.operation.name in _COMPARISONS:
                yield op

    def first_failure(self) -> str:
        """The name of the first op that is not known to be monotonic."""
        return next(
            op.operation.name for op in self._graph.ops if not self._is_monotonic[op.operation.results[0]].all()
        )

    def operands(self, op: ir.OpView) -> list[Array]:
        """The operands of `op` at both ends."""
        return [self._evaluation.values[operand] for operand in op.operation.operands]

    def is_key_monotonic(self, op: ir.OpView) -> bool:
        """Whether what `op` compares is monotonic, so that the comparison changes once."""
        operands = list(op.operation.operands)
        if not all(self._is_monotonic[operand].all() for operand in operands):
            return False
        values = self.operands(op)
        return len(operands) == 1 or op.operation.name == "arith.shrui" or bool(np.all(_are_opposed(*values)))

    def _select(self, operands: Sequence[ir.Value]) -> Flags:
        """A select is the operand that it chooses, where it chooses the same one all along."""
        condition, true, false = operands
        chosen = self._evaluation.values[condition]
        stays = self._is_monotonic[condition] & (chosen[0] == chosen[-1])
        return stays & np.where(chosen[0], self._is_monotonic[true], self._is_monotonic[false])


def _all_stay(operands: Sequence[Array]) -> Flags:
    flags = [operand[0] == operand[-1] for operand in operands]
    return np.logical_and.reduce(np.broadcast_arrays(*flags))


def _direction(ends: Array) -> IntArray:
    """1 where a monotonic value rises, -1 where it falls, 0 where it stays."""
    first, last = ends[0], ends[-1]
    return (last > first).astype(np.int64) - (last < first)


def _are_together(lhs: Array, rhs: Array) -> Flags:
    return _direction(lhs) * _direction(rhs) >= 0


def _are_opposed(lhs: Array, rhs: Array) -> Flags:
    return _direction(lhs) * _direction(rhs) <= 0


def _same_sign(ends: Array) -> Flags:
    return np.asarray((ends[0] < 0) == (ends[-1] < 0), np.bool_)


def _all_hold(flags: Flags) -> Flags:
    """Whether all rows of [N, C] hold, [C]."""
    return np.logical_and.reduce(flags, axis=0)


def _is_finite(ends: Array) -> Flags:
    flags: Flags = np.isfinite(ends) if ends.dtype.kind == "f" else np.ones(ends.shape, np.bool_)
    return _all_hold(flags)


def _equals(result: Array, exact: Array) -> Flags:
    """Whether nothing wrapped: `exact` has Python's integers."""
    return _all_hold(np.asarray(result.astype(object) == exact, dtype=np.bool_))


def _exact(ends: Array) -> Array:
    return ends.astype(object)


_Ends = Sequence[Array]
_Rule = Callable[[_Ends, Array], Flags]
_Key = Callable[..., Array]


def _shift_left_rule(ends: _Ends, result: Array) -> Flags:
    factor = 2 ** np.clip(ends[1], 0, 63).astype(object)
    return (_direction(ends[1]) == 0) & _equals(result, _exact(ends[0]) * factor)


def _one_stays(lhs: Array, rhs: Array) -> Flags:
    return (_direction(lhs) == 0) | (_direction(rhs) == 0)


def _by_constant(ends: _Ends, _: Array) -> Flags:
    return np.equal(_direction(ends[1]), 0)


def _unsigned_by_constant(ends: _Ends, result: Array) -> Flags:
    return _by_constant(ends, result) & _same_sign(ends[0]) & _all_hold(np.greater_equal(ends[1], 0))


def _always(ends: _Ends, _: Array) -> Flags:
    return np.ones_like(_same_sign(ends[0]))


def _together(ends: _Ends, _: Array) -> Flags:
    return _are_together(*ends)


def _unsigned_together(ends: _Ends, _: Array) -> Flags:
    signs = [_sign(end[0]) for end in ends]
    return _are_together(*ends) & _same_sign(ends[0]) & _same_sign(ends[1]) & np.equal(*signs)


def _within_sign(ends: _Ends, result: Array) -> Flags:
    """The interval of a value that is read with another signedness, before or after."""
    return _same_sign(ends[0]) & _same_sign(result)


_RULES: Mapping[str, _Rule] = {
    "arith.addi": lambda ends, result: _are_together(*ends) & _equals(result, _exact(ends[0]) + _exact(ends[1])),
    "arith.subi": lambda ends, result: _are_opposed(*ends) & _equals(result, _exact(ends[0]) - _exact(ends[1])),
    "arith.muli": lambda ends, result: _one_stays(*ends) & _equals(result, _exact(ends[0]) * _exact(ends[1])),
    "arith.shli": _shift_left_rule,
    "arith.addf": _together,
    "arith.subf": lambda ends, _: _are_opposed(*ends),
    "arith.mulf": lambda ends, _: _one_stays(*ends),
    "arith.trunci": lambda ends, result: _equals(result, _exact(ends[0])),
    **dict.fromkeys(("math.absf", "math.absi"), lambda ends, result: _same_sign(ends[0]) & _all_hold(result >= 0)),
    "math.sqrt": lambda ends, _: _all_hold(np.greater_equal(ends[0], 0)),
    **dict.fromkeys(("arith.divf", "arith.divsi", "arith.floordivsi", "arith.ceildivsi", "arith.shrsi"), _by_constant),
    **dict.fromkeys(("arith.divui", "arith.ceildivui", "arith.shrui"), _unsigned_by_constant),
    **dict.fromkeys(("arith.maxsi", "arith.minsi", "arith.maximumf", "arith.minimumf"), _together),
    **dict.fromkeys(("arith.maxnumf", "arith.minnumf"), _together),
    **dict.fromkeys(("arith.maxui", "arith.minui"), _unsigned_together),
    **dict.fromkeys(("arith.extui", "arith.uitofp", "tensor.bitcast"), _within_sign),
    **dict.fromkeys(("arith.extsi", "arith.sitofp", "arith.fptosi", "arith.negf"), _always),
    "arith.fptoui": lambda _, result: _same_sign(result),
    **dict.fromkeys(("math.ceil", "math.floor", "math.round", "math.roundeven", "math.trunc"), _always),
    **dict.fromkeys(("qnn.clip", "qnn.requantize", "qnn.quantize", "qnn.dequantize"), _always),
}
_SIGNED_ORDER, _FIRST_UNSIGNED, _ORDERED_FLOATS = (2, 3, 4, 5), 6, (2, 3, 4, 5, 9, 10, 11, 12)
# Of finite numbers they do not depend on the operands.
_NAN_PREDICATES = (0, 7, 14, 15)
_COMPARISONS = ("arith.cmpi", "arith.cmpf")
_EXTREMES = ("arith.maxsi", "arith.minsi", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")
_SIGN_OPS = ("math.absf", "math.absi", "arith.extui", "arith.uitofp", "tensor.bitcast", "arith.shrui")


def _rule_holds(op: ir.OpView, ends: Mapping[ir.Value, Array], evaluation: Evaluation) -> Flags:
    """Whether the result is monotonic where the operands are."""
    name, result = op.operation.name, op.operation.results[0]
    operands = [ends[operand] for operand in op.operation.operands]
    if evaluation.is_undefined(result):
        return np.zeros(1, np.bool_)
    finite = np.logical_and.reduce(np.broadcast_arrays(*map(_is_finite, [*operands, ends[result]])))
    if name in _COMPARISONS:
        return finite & _comparison_rule(op, operands)
    rule = _RULES.get(name)
    return finite & rule(operands, ends[result]) if rule else np.zeros(1, np.bool_)


def _comparison_rule(op: ir.OpView, operands: _Ends) -> Flags:
    """An order of values of which one rises and one falls changes once; an equality must not change at all."""
    predicate = ir.IntegerAttr(op.operation.attributes["predicate"]).value
    is_float = op.operation.name == "arith.cmpf"
    opposed = _are_opposed(*operands)
    if predicate in (_ORDERED_FLOATS if is_float else _SIGNED_ORDER):
        return opposed
    if is_float and predicate in _NAN_PREDICATES:
        return np.ones(1, np.bool_)
    key = _order(*operands)
    stays = opposed & (key[0] == key[-1]) & (key[0] != 0)
    if is_float or predicate < _FIRST_UNSIGNED:
        return stays
    return opposed & np.logical_and.reduce([_all_hold(operand >= 0) for operand in np.broadcast_arrays(*operands)])


def _order(lhs: Array, rhs: Array) -> Array:
    """-1, 0 or 1 as the left side is less, equal or greater."""
    return (lhs > rhs).astype(np.int64) - (lhs < rhs)


def _sign(value: Array, *_: Array) -> Array:
    return (value < 0).astype(np.int64)


def _key_of(op: ir.OpView) -> _Key | None:
    """The function whose sign decides the branch of an op; None if the op has none."""
    if op.operation.name in (*_COMPARISONS, *_EXTREMES):
        return _order
    return _sign if op.operation.name in _SIGN_OPS else None


_VALUES = 256
_PART = 2**14
"""Numbers that are evaluated at once, few enough for a cache."""
_MAX_NUMBERS = 2**22
"""Numbers of all channels that are evaluated one by one if no proof allows fewer."""


@dataclass(frozen=True)
class GraphThresholds:
    """The thresholds of a graph that rises, and the minimum and the maximum of its integers over all channels.

    ``thresholds.first[c - minimum - 1, k]`` is the first number of channel k at which the graph is c or more.
    """

    thresholds: Thresholds
    minimum: int
    maximum: int


def thresholds_of_graph(graph: ElementwiseGraph, low: IntArray, high: IntArray) -> GraphThresholds:
    """The thresholds of `graph` for the numbers ``low..high`` of each channel, int64[C] or int64[1].

    Raises `MatchFailure` where the graph is undefined for one, falls, or has fractions or more than 256 integers.
    """
    if graph.channels == 1:
        low, high = low.min(keepdims=True), high.max(keepdims=True)
    whole = Interval(*np.broadcast_arrays(low, high, np.zeros(graph.channels, np.int64))[:2])
    at_ends = _numbers_at(graph, whole.ends)
    _require_few(int(at_ends.max()) - int(at_ends.min()) + 1)
    intervals = monotonic_intervals(graph, whole)
    if isinstance(intervals, str):
        return _counted(graph, whole, intervals)
    ends = _numbers_at(graph, np.concatenate([interval.ends for interval in intervals]))
    _require_rising(ends)
    return _searched(graph, whole, int(ends.min()), int(ends.max()))


def _require_few(values: int) -> None:
    require(values <= _VALUES, f"must have {_VALUES} values at most, but has {values}")


def _require_rising(found: IntArray) -> None:
    require(not np.any(np.diff(found, axis=0) < 0), "must not fall where the numbers it depends on rise")


def _numbers_at(graph: ElementwiseGraph, points: IntArray) -> IntArray:
    """The graph's integers at `points`, [N, C]."""
    evaluation = graph.evaluate(points)
    require(not evaluation.is_undefined(graph.result), "has no defined value for every number it depends on")
    found = np.broadcast_to(evaluation.values[graph.result], points.shape)
    if found.dtype.kind == "f":
        # Far from what int64 does not hold.
        whole = np.isfinite(found) & (np.abs(found) < 2.0**31) & (found == np.trunc(found))
        require(bool(whole.all()), "must be an integer for every number it depends on")
    return found.astype(np.int64)


def _searched(graph: ElementwiseGraph, whole: Interval, minimum: int, maximum: int) -> GraphThresholds:
    """The thresholds of a graph that is known to rise, by halving."""
    integers = np.arange(minimum + 1, maximum + 1, dtype=np.int64)
    below = np.repeat(whole.low[None] - 1, len(integers), axis=0)
    first = np.repeat(whole.high[None] + 1, len(integers), axis=0)
    while np.any(first - below > 1):
        middle = np.clip((below + first) >> 1, whole.low, whole.high)
        is_at_least = graph.evaluate(middle).values[graph.result] >= integers[:, None]
        is_open = first - below > 1
        first = np.where(is_open & is_at_least, middle, first)
        below = np.where(is_open & ~is_at_least, middle, below)
    # Between two thresholds a graph that rises has the integer at both ends, or is no integer at one of them.
    for neighbour in (first, first - 1):
        _numbers_at(graph, np.clip(neighbour, whole.low, whole.high))
    return GraphThresholds(Thresholds(first, integers, whole.low, whole.high), minimum, maximum)


def _counted(graph: ElementwiseGraph, whole: Interval, reason: str) -> GraphThresholds:
    """The thresholds of any graph over few numbers, each of which is evaluated; `reason` explains why it must be."""
    low, high = int(whole.low.min()), int(whole.high.max())
    count = (high - low + 1) * len(whole.low)
    require(count <= _MAX_NUMBERS, f"{reason}, and {count} numbers are too many to try")
    points = np.clip(np.arange(low, high + 1, dtype=np.int64)[:, None], whole.low, whole.high)
    found = np.concatenate([_numbers_at(graph, points[at : at + _PART]) for at in range(0, len(points), _PART)])
    _require_rising(found)
    minimum, maximum = int(found.min()), int(found.max())
    _require_few(maximum - minimum + 1)
    integers = np.arange(minimum + 1, maximum + 1, dtype=np.int64)
    counts = np.stack([np.searchsorted(column, integers) for column in found.T], axis=1)
    first = np.where(counts == len(points), high + 1, low + counts)
    first = np.where(first > whole.high, whole.high + 1, np.maximum(first, whole.low))
    return GraphThresholds(Thresholds(first, integers, whole.low, whole.high), minimum, maximum)
