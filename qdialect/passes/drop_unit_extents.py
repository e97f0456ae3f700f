"""`qnn-drop-unit-extents`: element-wise ops and reductions work without dimensions of extent 1 at their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic.expressions import FLOAT_FUNCTIONS
from qdialect.arithmetic.float32.machine import partial_sums
from qdialect.arithmetic.machine import SIGNED_FUNCTIONS, UNSIGNED_FUNCTIONS
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import arith, ir
from qdialect.passes.canonicalize import FoldConstantMovement, MergeReshapes, RemoveIdentity
from qdialect.passes.pattern import PatternPass, Replacement, rebuilt, require
from qdialect.passes.registry import register

_UPSTREAM = (*FLOAT_FUNCTIONS, *SIGNED_FUNCTIONS, *UNSIGNED_FUNCTIONS, "arith.bitcast", "arith.cmpf", "arith.cmpi")
_MAPS = (qnn.BroadcastOp, qnn.DequantizeOp, qnn.QuantizeOp)
_EXTREMES = (qnn.F32MaxOp, qnn.F32MinOp, qnn.IntMaxOp, qnn.IntMinOp, qnn.ReduceMaxOp, qnn.ReduceMinOp)
_REDUCTIONS = (*_EXTREMES, qnn.F32ProdOp, qnn.F32SumOp, qnn.IntProdOp, qnn.IntSumOp)


class DropTrailingUnits(Replacement[int]):
    """``f(x)`` of a shape that ends with 1 becomes ``reshape(f(reshape(x)))``, where f works element by element."""

    roots = (*_UPSTREAM, *(op.OPERATION_NAME for op in _MAPS))

    def check(self, op: ir.OpView) -> int | None:
        values = *op.operation.operands, *op.operation.results
        are_tensors = all(
            isinstance(type_ := value.type, ir.RankedTensorType) and type_.has_static_shape for value in values
        )
        return _trailing(shape_of(values[-1].type)) or None if are_tensors else None

    def emit(self, op: ir.OpView, match: int) -> ir.Value:
        (result,) = op.operation.results
        shape = shape_of(result.type)[:-match]
        operands = [_dropped(value, match) for value in op.operation.operands]
        if isinstance(op, qnn.QnnOp):
            changes: dict[str, Any] = {"shape": shape} if isinstance(op, qnn.BroadcastOp) else {}
            if isinstance(op, qnn.QuantizeOp | qnn.DequantizeOp):
                # Parameters of a dimension of extent 1 are those of the tensor.
                changes = {"axis": min(op.axis, len(shape) - 1)}
            value = rebuilt(op, *operands, **changes).operation.results[0]
        else:
            type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(result.type).element_type)
            attributes = dict(op.operation.attributes.items())
            value = ir.Operation.create(op.operation.name, [type_], operands, attributes).result
        return _reshaped(value, shape_of(result.type))


@dataclass(frozen=True)
class _Reduced:
    """How many dimensions go, and the axes that stay."""

    trailing: int
    axes: tuple[int, ...]


class DropUnitReductions(Replacement[_Reduced]):
    """A reduction over dimensions of extent 1 is none: of floats, which are added to zero, it is ``x + 0``."""

    roots = tuple(op.OPERATION_NAME for op in _REDUCTIONS)

    def check(self, op: Any) -> _Reduced | None:
        shape = shape_of(op.input.type)
        axes, trailing = tuple(axis for axis in op.axes if shape[axis] != 1), _trailing(shape)
        if len(axes) == len(op.axes) and not trailing:
            return None
        has_zero = isinstance(op, qnn.F32MaxOp | qnn.F32MinOp) and (op.from_zero or op.nan_as_zero)
        require(bool(axes) or not has_zero, "takes the extreme of one number and zero")
        return _Reduced(trailing, axes)

    def emit(self, op: Any, match: _Reduced) -> ir.Value:
        value = _dropped(op.input, match.trailing)
        if match.axes:
            # The order of a sum is that of the shape that it had.
            is_longer = partial_sums(shape_of(value.type), match.axes) > 1
            in_order: dict[str, Any] = (
                {"in_order": is_longer and op.partial_sums == 1} if isinstance(op, qnn.F32SumOp) else {}
            )
            value = rebuilt(op, value, axes=match.axes, keep_dims=False, **in_order).output
        elif isinstance(op, qnn.F32SumOp):
            value = arith.addf(value, constant(np.broadcast_to(np.float32(0), shape_of(value.type))))
        return _reshaped(value, shape_of(op.output.type))


def _trailing(shape: Sequence[int]) -> int:
    """How many dimensions of extent 1 a shape ends with; 0 for those of one element."""
    kept = max((i + 1 for i, extent in enumerate(shape) if extent != 1), default=len(shape))
    return len(shape) - kept


def _dropped(value: ir.Value, count: int) -> ir.Value:
    """`value` without its last `count` dimensions, of extent 1, as far as it has them."""
    shape = shape_of(value.type)
    return _reshaped(value, shape[: max(len(shape) - count, 0)])


def _reshaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    if shape_of(value.type) == tuple(shape):
        return value
    return qnn.build(qnn.ReshapeOp, value, element=element_of(value.type), shape=tuple(shape)).output


@register
class DropUnitExtentsPass(PatternPass):
    """Let element-wise ops, broadcasts and reductions work without dimensions of extent 1 at the end of their shapes.

    Kernels have their vectors along the last dimension. A reduction over dimensions of extent 1 becomes none.
    """

    name: ClassVar[str] = "qnn-drop-unit-extents"
    dependent_dialects = ("arith",)
    rewrites = (FoldConstantMovement, RemoveIdentity, MergeReshapes, DropTrailingUnits, DropUnitReductions)
