"""The 8-bit type for the integers of a graph that go on to an 8-bit result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import arith, ir
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, element_of, shape_of
from qdialect.passes.elementwise.graph import ElementwiseGraph, graph_of, is_member
from qdialect.passes.elementwise.thresholds import GraphThresholds
from qdialect.passes.matching import users
from qdialect.passes.tabulate import is_eight_bit

_MAX_OPS = 64


@dataclass(frozen=True)
class Stored:
    """How 8 bits hold the integers of a graph: as `element`, after `shift` was added to them."""

    element: str
    shift: int
    result: ir.Value
    """The value that is stored so: the graph's own result, or the 8-bit tensor that holds the same after casts."""


def is_reinterpreted(value: ir.Value) -> bool:
    """Whether an 8-bit `value` is read with another signedness alone, so that its own says nothing."""
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
    after = None if result is None else graph_of(result, value)
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
