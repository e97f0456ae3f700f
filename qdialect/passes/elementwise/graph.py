"""An element-wise graph: from one tensor, constants aside, through upstream ops to one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import BroadcastOp, ClipOp, DequantizeOp, QuantizeOp, RequantizeOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.pattern import MatchFailure, producer, require, users
from qdialect.reference import interpreter

# Where upstream ops leave their result undefined: LLVM calls it poison, and any number may stand for it.
#
# That is a float that the integer type does not hold, a shift by the width of the type or more, and an integer division
# by zero or of the minimum by -1 (MLIR's arith dialect, LLVM's language reference).

Array = NDArray[Any]
Mask = NDArray[np.bool_]
_Rule = Callable[[Sequence[Array], np.dtype[Any]], Mask]


def _conversion(signed: bool) -> _Rule:
    def rule(operands: Sequence[Array], dtype: np.dtype[Any]) -> Mask:
        bits = 8 * dtype.itemsize
        low, end = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
        whole = np.trunc(operands[0].astype(np.float64))
        # A comparison with NaN is false.
        return ~((whole >= low) & (whole < end))

    return rule


def _shift(operands: Sequence[Array], dtype: np.dtype[Any]) -> Mask:
    amounts = operands[1]
    return amounts.view(f"u{amounts.itemsize}" if amounts.dtype.kind == "i" else amounts.dtype) >= 8 * dtype.itemsize


def _signed_division(operands: Sequence[Array], dtype: np.dtype[Any]) -> Mask:
    minimum = np.iinfo(dtype.name).min
    return (operands[1] == 0) | ((operands[0] == minimum) & (operands[1] == -1))


_RULES: Mapping[str, _Rule] = {
    "arith.fptosi": _conversion(signed=True),
    "arith.fptoui": _conversion(signed=False),
    **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui"), _shift),
    **dict.fromkeys(("arith.divui", "arith.remui", "arith.ceildivui"), lambda operands, _: operands[1] == 0),
    **dict.fromkeys(("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi"), _signed_division),
}


# All tensors of such a graph have one shape, so that an element of the result depends on one element of the source and,
# where constants differ along the last dimension, on its channel.  The graph is evaluated on any numbers, not on
# tensors: arrays are [N, C] with N numbers for each of C channels, or [N, 1] where all channels are alike.

_EVALUATORS = interpreter.evaluators.EVALUATORS
_NOT_ELEMENTWISE = ("arith.constant", "tensor.concat")
MAX_OPS = 128
"""Of one graph."""

UPSTREAM_OPS: tuple[str, ...] = tuple(
    name for name in _EVALUATORS if name.startswith(("arith.", "math.", "tensor.")) and name not in _NOT_ELEMENTWISE
)
"""Names of the element-wise ops of upstream dialects that have a reference meaning."""


@dataclass(frozen=True)
class Evaluation:
    """Every value of a graph for some numbers, and where it is undefined; both by value, as [N, C]."""

    values: Mapping[ir.Value, Array]
    undefined: Mapping[ir.Value, NDArray[np.bool_]]

    def is_undefined(self, value: ir.Value) -> bool:
        """Whether `value` is undefined for any of the numbers."""
        mask = self.undefined.get(value)
        return mask is not None and bool(mask.any())


@dataclass(frozen=True)
class ElementwiseGraph:
    """The ops between `source` and the result of the last of `ops`, in the order of computation."""

    source: ir.Value
    ops: tuple[ir.OpView, ...]
    constants: Mapping[ir.Value, Array]
    """Constants as [1, C], or as [1, 1] where all elements are equal."""

    @property
    def result(self) -> ir.Value:
        """The result of the graph."""
        return self.ops[-1].operation.results[0]

    @property
    def channels(self) -> int:
        """How many functions of one number the graph is: 1, or one for each index of the last dimension."""
        widths = [array.shape[1] for array in self.constants.values()]
        return max([1, *widths, *map(_parameters_of, self.ops)])

    def evaluate(self, numbers: Array) -> Evaluation:
        """Every value for the integers `numbers`, [N, C] or [N, 1], which the source's type holds."""
        values = {self.source: numbers.astype(_dtype_of(self.source)), **self.constants}
        undefined: dict[ir.Value, NDArray[np.bool_]] = {}
        with np.errstate(all="ignore"):
            for op in self.ops:
                _evaluate_op(op, values, undefined)
        return Evaluation(values, undefined)


def graph_of(value: ir.Value, source: ir.Value | None = None) -> ElementwiseGraph | None:
    """The graph that ends in `value`; None where no member gives it, `MatchFailure` where there is no graph.

    It starts from `source`, or else from whatever tensor no member computes.
    """
    root = producer(value)
    if root is None or not _is_elementwise(root):
        return None
    ordered: dict[ir.Value, ir.OpView] = {}
    constants: dict[ir.Value, Array] = {}
    sources: list[ir.Value] = []
    pending: list[tuple[ir.Value, bool]] = [(value, False)]
    while pending:
        current, is_done = pending.pop()
        op = producer(current)
        if is_done and op is not None:
            ordered[current] = op
            continue
        if current in ordered or current in constants or current in sources:
            continue
        array = _constant_of(current)
        if array is not None:
            constants[current] = array
        # The bindings compare a value with values alone.
        elif op is None or (source is not None and current == source) or not (is_member(op) or current == value):
            sources.append(current)
        else:
            pending.append((current, True))
            pending += [(operand, False) for operand in reversed(list(op.operation.operands))]
        if len(sources) > 1 or len(ordered) + len(pending) > 2 * MAX_OPS:
            raise _too_much(sources)
    return _checked(ElementwiseGraph(sources[0], tuple(ordered.values()), constants)) if sources else None


def is_member(op: ir.OpView) -> bool:
    """Whether `op` can be inside a graph: it computes each element from the same element of its operands.

    An op that quantizes to 8 bits ends a graph: what it gives is the source of another one.
    """
    is_end = isinstance(op, RequantizeOp | QuantizeOp) and element_of(op.output.type) in ("i8", "ui8")
    return _is_elementwise(op) and not is_end


def _is_elementwise(op: ir.OpView) -> bool:
    if not all(is_known_tensor(value) for value in (*op.operation.operands, *op.operation.results)):
        return False
    if isinstance(op, RequantizeOp | QuantizeOp | DequantizeOp):
        return _parameters_of(op) == 1 or 0 < op.axis == len(shape_of(op.operation.operands[0].type)) - 1
    return isinstance(op, ClipOp) or op.operation.name in UPSTREAM_OPS


def is_known_tensor(value: ir.Value) -> bool:
    """Whether `value` is a static tensor of an element type that has a NumPy dtype."""
    type_ = value.type
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape and element_of(type_) in NUMPY_DTYPES


def per_channel_constant(value: ir.Value) -> Array | None:
    """The constant `value` as [1, C], or [1, 1] where all elements are equal; None where other dimensions matter.

    Raises `ValueError` where `value` is not constant.
    """
    array = _known(value)
    if array is None:
        raise ValueError(f"{value} is not constant")
    if not any(array.strides):
        return array.reshape(-1)[:1].reshape(1, 1)
    rows = array.reshape(-1, array.shape[-1])
    # Compared by their bits, for NaN is not equal to itself.
    bits = np.ascontiguousarray(rows).view(f"u{array.itemsize}")
    if np.any(bits != bits[0]):
        return None
    return rows[:1, :1] if np.all(bits[0] == bits[0, 0]) else rows[:1]


def used_outside(graph: ElementwiseGraph) -> str | None:
    """Why something else needs a value before the graph's result, or None where nothing does."""
    inside = [op.operation for op in graph.ops]
    for value in (graph.source, *(op.operation.results[0] for op in graph.ops[:-1])):
        outside = [user for user in users(value) if user.operation not in inside]
        if outside:
            owner = producer(value)
            name = "an argument" if owner is None else f"the result of '{owner.operation.name}'"
            return f"needs {name} alone, but '{outside[0].operation.name}' uses it too"
    return None


def _checked(graph: ElementwiseGraph) -> ElementwiseGraph:
    if len(graph.ops) > MAX_OPS:
        raise _too_much([])
    before, after = (list(shape_of(value.type)) for value in (graph.source, graph.result))
    require(before == after, f"must keep the shape {before}, but computes {after}")
    return graph


def _too_much(sources: Sequence[ir.Value]) -> MatchFailure:
    if len(sources) > 1:
        return MatchFailure("must depend on one tensor, constants aside, but depends on two or more")
    return MatchFailure(f"must depend on its tensor through {MAX_OPS} ops at most, but there are more")


def _known(value: ir.Value) -> Array | None:
    """The array of a constant, through broadcasts of one."""
    owner = producer(value)
    if isinstance(owner, BroadcastOp):
        inner = _known(owner.input)
        return None if inner is None else np.broadcast_to(inner, tuple(owner.shape))
    if owner is not None and element_of(value.type) == "i1" and owner.operation.name == "arith.constant":
        attribute = ir.DenseElementsAttr(owner.operation.attributes["value"])
        if not attribute.is_splat:
            return np.array(attribute, dtype=np.bool_)
        is_true = bool(ir.IntegerAttr(attribute.get_splat_value()).value)
        return np.broadcast_to(np.bool_(is_true), shape_of(value.type))
    return constant_value(value)


def _constant_of(value: ir.Value) -> Array | None:
    if not isinstance(value.type, ir.RankedTensorType) or _known(value) is None:
        return None
    found = per_channel_constant(value)
    require(found is not None, "needs constants that depend on the last dimension alone")
    return found


def _parameters_of(op: ir.OpView) -> int:
    """How many channels the parameters of a `qnn` op distinguish."""
    if isinstance(op, RequantizeOp):
        return max(len(op.weight_scales), len(op.input_zero_points))
    return max(len(op.scales), len(op.zero_points)) if isinstance(op, QuantizeOp | DequantizeOp) else 1


def _evaluate_op(op: ir.OpView, values: dict[ir.Value, Array], undefined: dict[ir.Value, NDArray[np.bool_]]) -> None:
    result, name = op.operation.results[0], op.operation.name
    operands = [values[operand] for operand in op.operation.operands]
    dtype = _dtype_of(result)
    if name.startswith("qnn."):
        # Parameters of a channel stand along the op's own axis, which is the last one.
        flat = operands[0].reshape(-1, *[1] * (len(shape_of(result.type)) - 2), operands[0].shape[-1])
        values[result] = _EVALUATORS[name](op, [flat]).astype(dtype).reshape(operands[0].shape[0], -1)
    else:
        values[result] = np.asarray(_EVALUATORS[name](op, operands)).astype(dtype)
    masks = [undefined.get(operand) for operand in op.operation.operands]
    own = [_RULES[name](operands, dtype)] if name in _RULES else []
    found = [mask for mask in (*masks, *own) if mask is not None]
    if not found:
        return
    if name == "arith.select":
        condition, true, false = (np.False_ if mask is None else mask for mask in masks)
        undefined[result] = condition | np.where(operands[0], true, false)
        return
    undefined[result] = np.logical_or.reduce(np.broadcast_arrays(*found))


def _dtype_of(value: ir.Value) -> np.dtype[Any]:
    return NUMPY_DTYPES[element_of(value.type)]
