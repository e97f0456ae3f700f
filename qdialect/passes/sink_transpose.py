"""`qnn-sink-transpose`: transposes move past element-wise ops, towards the results of the graph.

Between quantized and f32 values they move to the quantized side.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.type_constraints import NARROW_ELEMENTS, element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.canonicalize import MergeTransposes, RemoveIdentity
from qdialect.passes.pattern import GraphPass, Replacement, produced_by, rebuilt, require, users
from qdialect.passes.registry import register

Permutation = tuple[int, ...]
_UNARY = (qnn.UnaryOp, qnn.ClipOp, qnn.GatherOp, qnn.LutOp, qnn.PadOp, qnn.QuantizeOp, qnn.RequantizeOp, qnn.SliceOp)
_PASSED = (*_UNARY, qnn.AddOp, qnn.ConcatOp, qnn.DequantizeOp, qnn.MulOp, qnn.TransposeOp)


@dataclass(frozen=True)
class _Match:
    """Operands without their transposes; constants, which had none, transposed back."""

    permutation: Permutation
    operands: tuple[ir.Value | NDArray[Any], ...]


@dataclass(frozen=True)
class _Reshaped:
    """A reshape of a transpose as a transpose of a reshape: `source` with this shape, then in this order."""

    source: ir.Value
    shape: Sequence[int]
    permutation: Sequence[int]


class _Sink(Replacement[_Match]):
    """``f(transpose(x))`` becomes ``transpose(f(x))``; the transpose stays for its other users."""

    def emit(self, op: qnn.QnnOp, match: _Match) -> ir.Value:
        operands = [value if isinstance(value, ir.Value) else constant(value) for value in match.operands]
        moved = rebuilt(op, *operands, **self.changes(op, match.permutation)).operation.results[0]
        return qnn.build(qnn.TransposeOp, moved, element=element_of(moved.type), permutation=match.permutation).output

    @abstractmethod
    def changes(self, op: Any, permutation: Permutation) -> dict[str, Any]:
        """The attributes of `op` that name dimensions, for operands that are not transposed."""


class SinkThroughUnary(_Sink):
    """Past an op with one operand; the dimensions that its attributes name are renamed."""

    roots = _UNARY

    def check(self, op: qnn.QnnOp) -> _Match | None:
        value, result = op.operation.operands[0], op.operation.results[0]
        transpose = produced_by(value, qnn.TransposeOp)
        if transpose is None:
            return None
        goes_on = any(isinstance(use.owner.operation.opview, _PASSED) for use in result.uses)
        is_larger = prod(shape_of(result.type)) > prod(shape_of(value.type))
        wanted = "a larger result must be read by what the transpose moves past, or by a transpose"
        require(goes_on or not is_larger, wanted)
        return _Match(transpose.permutation, (transpose.input,))

    def changes(self, op: qnn.QnnOp, permutation: Permutation) -> dict[str, Any]:
        if isinstance(op, qnn.PadOp):
            return {name: _unpermuted(getattr(op, name), permutation) for name in ("low", "high")}
        if isinstance(op, qnn.SliceOp):
            return {name: _unpermuted(getattr(op, name), permutation) for name in ("begin", "size", "strides")}
        if isinstance(op, qnn.RequantizeOp | qnn.GatherOp | qnn.QuantizeOp):
            return {"axis": permutation[op.axis]}
        return {}


class SinkThroughBinary(_Sink):
    """Past add, mul and concat whose operands are transposed alike, or constant."""

    roots = ("qnn.add", "qnn.mul", "qnn.concat")

    def check(self, op: qnn.AddOp | qnn.MulOp | qnn.ConcatOp) -> _Match | None:
        operands = list(op.operation.operands)
        transposes = [produced_by(value, qnn.TransposeOp) for value in operands]
        permutations = {transpose.permutation for transpose in transposes if transpose is not None}
        if not permutations:
            return None
        orders = sorted(map(list, permutations))
        require(len(orders) == 1, f"must have operands transposed alike, but got {orders}")
        permutation = permutations.pop()
        sources = [
            _constant_moved_back(value, permutation) if transpose is None else transpose.input
            for value, transpose in zip(operands, transposes, strict=True)
        ]
        found = [source for source in sources if source is not None]
        require(len(found) == len(sources), "must have all operands transposed or constant, of one rank")
        return _Match(permutation, tuple(found))

    def changes(self, op: qnn.AddOp | qnn.MulOp | qnn.ConcatOp, permutation: Permutation) -> dict[str, Any]:
        return {"axis": permutation[op.axis]} if isinstance(op, qnn.ConcatOp) else {}


class SinkThroughReshape(Replacement[_Reshaped]):
    """``reshape(transpose(x))`` that is transposed again becomes ``transpose(reshape(x))``: two become one, or none.

    Dimensions that the reshape joins must lie side by side in `x`, as rows and columns do on the way of an image to
    tokens and back.
    """

    roots = (qnn.ReshapeOp,)

    def check(self, op: qnn.ReshapeOp) -> _Reshaped | None:
        transpose = produced_by(op.input, qnn.TransposeOp)
        if transpose is None or not any(
            isinstance(use.owner.operation.opview, qnn.TransposeOp) for use in op.output.uses
        ):
            return None
        source = [axis for axis, extent in enumerate(shape_of(transpose.input.type)) if extent != 1]
        placed: list[tuple[int, list[int]]] = []
        for joined, split in _groups(shape_of(op.input.type), op.shape):
            found = [source.index(transpose.permutation[i]) for i in joined if transpose.permutation[i] in source]
            are_neighbours = not found or found == [*range(found[0], found[-1] + 1)]
            require(are_neighbours, "must join dimensions that lie side by side before the transpose")
            placed.append((found[0] if found else -1, split))
        order = [axis for _, split in sorted(placed) for axis in split]
        return _Reshaped(
            transpose.input, [op.shape[axis] for axis in order], [order.index(i) for i in range(len(order))]
        )

    def emit(self, op: qnn.ReshapeOp, match: _Reshaped) -> ir.Value:
        element = element_of(op.output.type)
        moved = qnn.build(qnn.ReshapeOp, match.source, element=element, shape=match.shape)
        return qnn.build(qnn.TransposeOp, moved.output, element=element, permutation=match.permutation).output


def _groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of two shapes of as many elements, side by side, as groups of as many elements each."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        sides = [i], [j]
        while prod(before[k] for k in sides[0]) != prod(after[k] for k in sides[1]):
            is_less = prod(before[k] for k in sides[0]) < prod(after[k] for k in sides[1])
            side = sides[0 if is_less else 1]
            side.append(side[-1] + 1)
        groups.append(sides)
        i, j = sides[0][-1] + 1, sides[1][-1] + 1
    # The remaining extents are 1.
    return [*groups, ([*range(i, len(before))], [*range(j, len(after))])]


@dataclass(frozen=True)
class _Windows:
    """The windows along `axis` of `source`, which is transposed, that `gather` and `split` make its rows of."""

    source: ir.Value
    axis: int
    permutation: Permutation
    gather: qnn.GatherOp
    split: qnn.ReshapeOp


_LEAST_COLUMNS = 16
"""Along which vectors of extremes run."""


class SinkThroughWindows(Replacement[_Windows]):
    """``extreme(windows(transpose(x)))`` becomes ``transpose(extreme(windows(x)))``, which is smaller.

    Windows must be across the rows of `x`, along which vectors then run.
    """

    roots = (qnn.F32MaxOp, qnn.F32MinOp)

    def check(self, op: qnn.F32MaxOp | qnn.F32MinOp) -> _Windows | None:
        split = produced_by(op.input, qnn.ReshapeOp)
        gather = produced_by(split.input, qnn.GatherOp) if split is not None else None
        transpose = produced_by(gather.input, qnn.TransposeOp) if gather is not None else None
        if split is None or gather is None or transpose is None:
            return None
        axis, whole = gather.axis, shape_of(gather.output.type)
        is_split = split.shape == (*whole[:axis], *split.shape[axis : axis + 2], *whole[axis + 1 :])
        is_along = is_split and tuple(op.axes) == (axis + 1,) and not op.keep_dims
        require(is_along, "must reduce the windows along one dimension")
        is_alone = all(len(users(value)) == 1 for value in (transpose.output, gather.output, split.output))
        require(is_alone, "must be the only reader of its windows")
        shape, moved = shape_of(transpose.input.type), transpose.permutation[axis]
        is_across = moved != len(shape) - 1 and split.shape[axis] < shape[moved] and shape[-1] >= _LEAST_COLUMNS
        require(is_across, f"must have fewer windows than elements, across rows of at least {_LEAST_COLUMNS}")
        return _Windows(transpose.input, moved, transpose.permutation, gather, split)

    def emit(self, op: qnn.F32MaxOp | qnn.F32MinOp, match: _Windows) -> ir.Value:
        axis, element, shape = match.axis, element_of(op.input.type), shape_of(match.source.type)
        rows = match.split.shape[match.gather.axis : match.gather.axis + 2]
        taps = rebuilt(match.gather, match.source, axis=axis).output
        split = qnn.build(qnn.ReshapeOp, taps, element=element, shape=(*shape[:axis], *rows, *shape[axis + 1 :]))
        found = rebuilt(op, split.output, axes=(axis + 1,)).output
        return qnn.build(qnn.TransposeOp, found, element=element, permutation=match.permutation).output


class HoistAboveDequantize(Replacement[qnn.DequantizeOp]):
    """``move(dequantize(x))`` becomes ``dequantize(move(x))``: quantized values are a quarter of the bytes.

    Reshapes, which transposes of extents of 1 have become, are hoisted too.  The f32 values stay as they are for their
    other users, which dequantize at next to no cost.
    """

    roots = ("qnn.transpose", "qnn.reshape")

    def check(self, op: qnn.TransposeOp | qnn.ReshapeOp) -> qnn.DequantizeOp | None:
        dequantize = produced_by(op.input, qnn.DequantizeOp)
        if dequantize is None:
            return None
        element = element_of(dequantize.input.type)
        # Accumulators belong to the contraction before them.
        require(element in NARROW_ELEMENTS, f"must move values of 8 or 16 bits, but got {element}")
        is_one = len(dequantize.scales) == len(dequantize.zero_points) == 1
        require(is_one or isinstance(op, qnn.TransposeOp), "must move values of one scale and zero point")
        return dequantize

    def emit(self, op: qnn.TransposeOp | qnn.ReshapeOp, match: qnn.DequantizeOp) -> ir.Value:
        is_transposed = isinstance(op, qnn.TransposeOp)
        moved = rebuilt(op, match.input, element=element_of(match.input.type)).output
        axis = op.permutation.index(match.axis) if is_transposed else 0
        return rebuilt(match, moved, axis=axis).output


def _unpermuted(values: Sequence[int], permutation: Permutation) -> tuple[int, ...]:
    """`values` of the result's dimensions in the order of the input's."""
    return tuple(values[permutation.index(i)] for i in range(len(permutation)))


def _constant_moved_back(value: ir.Value, permutation: Permutation) -> NDArray[Any] | None:
    array = constant_value(value)
    if array is None or array.ndim != len(permutation):
        return None
    return np.ascontiguousarray(array.transpose(tuple(np.argsort(permutation))))


@register
class SinkTransposePass(GraphPass):
    """Move transposes past element-wise ops, so that none stands between a convolution and its activation.

    Inverse transposes cancel; a transpose without an inverse ends at a result of the graph.  A transpose of what is
    dequantized becomes one of the quantized values.
    """

    name: ClassVar[str] = "qnn-sink-transpose"
    rewrites = (
        MergeTransposes,
        RemoveIdentity,
        SinkThroughUnary,
        SinkThroughBinary,
        SinkThroughReshape,
        SinkThroughWindows,
        HoistAboveDequantize,
    )
