"""Finds the tensors that element-wise graphs depend on, their possible values, and the 8-bit types that hold them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import IntArray, accumulator_range
from qdialect.dialect import AnyContraction, BroadcastOp, MatMulOp
from qdialect.dialect.constants import CONSTANT_OPS, constant, constant_value
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, element_of, range_of, shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.passes.elementwise.graph import ElementwiseGraph, graph_of, is_member
from qdialect.passes.elementwise.thresholds import GraphThresholds
from qdialect.passes.pattern import MatchFailure, attempted, producer, require, users
from qdialect.passes.tabulate import is_eight_bit

Range = tuple[IntArray, IntArray]


def numbers_of(source: ir.Value, contraction: AnyContraction | None) -> Range:
    """The minimum and the maximum number of each channel of `source`, int64[C], or int64[1] for all channels.

    Those of a contraction are its accumulators for any data; others have the range of their type.
    """
    if contraction is None:
        low, high = range_of(source.type)
        return np.array([low], np.int64), np.array([high], np.int64)
    channels = shape_of(source.type)[-1]
    taps = _taps(contraction, channels)
    bias = np.zeros(channels, np.int64) if contraction.bias is None else constant_value(contraction.bias)
    if taps is None or bias is None:
        raise MatchFailure(f"needs a contraction with a constant {'weight' if taps is None else 'bias'}")
    lowest, highest = range_of(contraction.data.type)
    point = contraction.input_zero_point
    low, high = accumulator_range(taps, bias, (lowest - point, highest - point))
    fits = low.min() >= -(2**31) and high.max() < 2**31
    require(fits, f"needs accumulators that 32 bits hold, but they may be in [{low.min()}, {high.max()}]")
    return low, high


def _taps(contraction: AnyContraction, channels: int) -> NDArray[np.int64] | None:
    """The weights less their zero points, [C, K]; None where they are not constant."""
    weight = constant_value(contraction.weight)
    if weight is None:
        return None
    if not isinstance(contraction, MatMulOp):
        points = np.asarray(contraction.weight_zero_points, np.int64)[:, None]
        return weight.reshape(channels, -1).astype(np.int64) - points
    # Matrices next to each other have one column of each for a channel: the widest range over all of them.
    taps = weight.astype(np.int64) - np.asarray(contraction.weight_zero_points, np.int64)
    columns = np.moveaxis(taps, -1, 0).reshape(channels, -1, weight.shape[-2])
    above, below = np.maximum(columns, 0).sum(axis=2).max(axis=1), np.minimum(columns, 0).sum(axis=2).min(axis=1)
    return np.stack([above, below], axis=1)


_ENOUGH = 2


@dataclass(frozen=True)
class Dependence:
    """The tensors on which a value depends, two of them at most, and the length of the longest way to one."""

    sources: tuple[ir.Value, ...]
    depth: int


class Sources:
    """Dependences that are remembered; `forget` them when the module changes."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Dependence] = {}

    def forget(self) -> None:
        """Start anew."""
        self._known.clear()

    def of(self, value: ir.Value) -> Dependence:
        """On what `value` depends: itself, where no member of a graph computes it."""
        pending = [value]
        while pending:
            current = pending[-1]
            missing = [operand for operand in _operands(current) if operand not in self._known]
            if missing:
                pending += missing
                continue
            self._known.setdefault(current, self._from_operands(current))
            pending.pop()
        return self._known[value]

    def _from_operands(self, value: ir.Value) -> Dependence:
        operands = _operands(value)
        if not operands:
            op = producer(value)
            while isinstance(op, BroadcastOp):
                op = producer(op.input)
            is_constant = op is not None and op.operation.name in CONSTANT_OPS
            return Dependence(() if is_constant else (value,), 0)
        before = [self._known[operand] for operand in operands]
        sources = dict.fromkeys(source for dependence in before for source in dependence.sources)
        return Dependence(tuple(sources)[:_ENOUGH], 1 + max(dependence.depth for dependence in before))


def _operands(value: ir.Value) -> list[ir.Value]:
    op = producer(value)
    return list(op.operation.operands) if op is not None and is_member(op) else []


_MAX_OPS = 64


@dataclass(frozen=True)
class Stored:
    """How 8 bits hold the integers of a graph: as `element`, after `shift` was added to them."""

    element: str
    shift: int
    result: ir.Value
    """The value that is stored so: the graph's own result, or the 8-bit tensor that holds the same after casts."""


def is_reinterpreted(value: ir.Value) -> bool:
    """Whether every reader of an 8-bit `value` takes it with the other signedness, so that its own has no effect."""
    names = [user.operation.name for user in users(value)]
    return is_eight_bit(value) and bool(names) and all(name == "tensor.bitcast" for name in names)


def stored_as(graph: ElementwiseGraph, found: GraphThresholds) -> Stored | None:
    """How 8 bits hold the integers of `graph`; None where they lead to no 8-bit result."""
    value = graph.result
    if is_eight_bit(value):
        return Stored(element_of(value.type), 0, value)
    shifted = _as_result(value, found)
    if shifted is not None:
        return shifted
    if not _feeds_eight_bit(value):
        return None
    fitting = [element for element in ("ui8", "i8") if _holds(element, found, 0)]
    return Stored(fitting[0], 0, value) if fitting else Stored("ui8", -found.minimum, value)


def widened(value: ir.Value, type_: ir.Type, shift: int) -> ir.Value:
    """The 8-bit `value` less `shift` as the tensor type `type_`, by ops at the insertion point."""
    element = element_of(type_)
    if element in ("i8", "ui8"):
        return value
    shape = list(shape_of(type_))
    target = "i32" if element == "f32" else element
    wide = ir.RankedTensorType.get(shape, ir.Type.parse(target))
    if element_of(value.type) == "ui8":
        bits = ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(8))
        read = ir.Operation.create("tensor.bitcast", results=[bits], operands=[value]).result
        number = arith.extui(wide, read)
    else:
        number = arith.extsi(wide, value)
    if shift:
        number = arith.subi(number, constant(np.full(shape, shift, NUMPY_DTYPES[target])))
    return arith.sitofp(type_, number) if element == "f32" else number


def _as_result(value: ir.Value, found: GraphThresholds) -> Stored | None:
    """The type of the 8-bit result that is `value` plus a number, clamped, and that number; None for anything else."""
    result = following_result(value)
    after = None if result is None else attempted(graph_of, result, value)
    if result is None or not isinstance(after, ElementwiseGraph) or after.channels > 1:
        return None
    integers = np.arange(found.minimum, found.maximum + 1, dtype=np.int64)
    evaluation = after.evaluate(integers[:, None])
    if evaluation.is_undefined(result):
        return None
    results = np.broadcast_to(evaluation.values[result], (len(integers), 1))[:, 0].astype(np.int64)
    # Away from its clamps, which are where it starts.
    where = int(np.argmax(results > results[0]))
    shift = int(results[where] - integers[where])
    is_shifted = np.array_equal(np.clip(integers + shift, results.min(), results.max()), results)
    element = element_of(result.type)
    if not is_shifted or not _holds(element, found, shift):
        return None
    is_clamped = len(np.unique(results)) < len(results)
    return Stored(element, shift, value if is_clamped else result)


def following_result(value: ir.Value) -> ir.Value | None:
    """The 8-bit tensor at the end of the chain of ops that starts at `value` and has no branches."""
    for _ in range(_MAX_OPS):
        if is_eight_bit(value) and not is_reinterpreted(value):
            return value
        following = users(value)
        if len(following) != 1 or not is_member(following[0]):
            return None
        value = following[0].operation.results[0]
    return None


def _feeds_eight_bit(value: ir.Value) -> bool:
    """Whether an 8-bit tensor is computed from `value`."""
    pending, seen = [value], set[int]()
    while pending and len(seen) < _MAX_OPS:
        for user in users(pending.pop()):
            if hash(user.operation) in seen or not is_member(user):
                continue
            seen.add(hash(user.operation))
            result = user.operation.results[0]
            if is_eight_bit(result):
                return True
            pending.append(result)
    return False


def _holds(element: str, found: GraphThresholds, shift: int) -> bool:
    low, high = ELEMENT_RANGES[element]
    return low <= found.minimum + shift and found.maximum + shift <= high
