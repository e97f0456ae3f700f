"""`qnn-canonicalize`: removes ops that do nothing, and folds data movement of constants."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic import identity_table, same_scale
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.movement_ops import SameElementOp
from qdialect.dialect.type_constraints import NARROW_ELEMENTS, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes import pattern
from qdialect.passes.pattern import GraphPass, Replacement, require
from qdialect.passes.registry import register
from qdialect.reference.evaluators import EVALUATORS

_TRUNCATE = "arith.truncf"


class RemoveIdentity(Replacement[ir.Value]):
    """An op that changes neither quantized values nor parameters is its input."""

    roots = tuple(
        op.OPERATION_NAME
        for op in (
            qnn.RequantizeOp,
            qnn.LutOp,
            qnn.ClipOp,
            qnn.ReshapeOp,
            qnn.TransposeOp,
            qnn.PadOp,
            qnn.SliceOp,
            qnn.GatherOp,
        )
    )

    def check(self, op: qnn.QnnOp) -> ir.Value | None:
        source = op.operation.operands[0]
        return source if source.type == op.operation.results[0].type and _keeps_values(op) else None

    def emit(self, op: qnn.QnnOp, match: ir.Value) -> ir.Value:
        return match


def _keeps_values(op: qnn.QnnOp) -> bool:
    if isinstance(op, qnn.RequantizeOp):
        if op.weight_scales != (1.0,) or not same_scale(op.input_scale, op.output_scale):
            return False
        require(op.input_zero_points == (op.output_zero_point,), "keeps the scale but moves the zero point")
        is_exact = element_of(op.input.type) in NARROW_ELEMENTS
        require(is_exact, "keeps the parameters, but a 32-bit value may be rounded or saturated on the way")
        return True
    if isinstance(op, qnn.LutOp):
        if not np.array_equal(op.table, identity_table()):
            return False
        is_same = pattern.same_quantization(op.input_params, op.output_params)
        require(is_same, "keeps every quantized value but changes its scale or zero point")
        return True
    if isinstance(op, qnn.ClipOp):
        return (op.min, op.max) == range_of(op.input.type)
    if isinstance(op, qnn.TransposeOp):
        return list(op.permutation) == sorted(op.permutation)
    if isinstance(op, qnn.GatherOp):
        return list(op.indices) == sorted(set(op.indices))
    # A reshape, padding by nothing, a slice of everything: the types agree already.
    return True


class MergeReshapes(Replacement[qnn.ReshapeOp]):
    """A reshape of a reshape is one reshape."""

    roots = ("qnn.reshape",)

    def check(self, op: qnn.ReshapeOp) -> qnn.ReshapeOp | None:
        return pattern.produced_by(op.input, qnn.ReshapeOp)

    def emit(self, op: qnn.ReshapeOp, match: qnn.ReshapeOp) -> ir.Value:
        return qnn.build(qnn.ReshapeOp, match.input, element=element_of(op.output.type), shape=op.shape).output


class MergeTransposes(Replacement[qnn.TransposeOp]):
    """A transpose of a transpose is one transpose."""

    roots = ("qnn.transpose",)

    def check(self, op: qnn.TransposeOp) -> qnn.TransposeOp | None:
        return pattern.produced_by(op.input, qnn.TransposeOp)

    def emit(self, op: qnn.TransposeOp, match: qnn.TransposeOp) -> ir.Value:
        permutation = [match.permutation[i] for i in op.permutation]
        return qnn.build(
            qnn.TransposeOp, match.input, element=element_of(op.output.type), permutation=permutation
        ).output


class TransposeToReshape(Replacement[tuple[int, ...]]):
    """A transpose that moves only dimensions of extent 1 keeps the order of the elements: it is a reshape."""

    roots = ("qnn.transpose",)

    def check(self, op: qnn.TransposeOp) -> tuple[int, ...] | None:
        shape = shape_of(op.input.type)
        moved = [i for i in op.permutation if shape[i] != 1]
        return tuple(shape[i] for i in op.permutation) if moved == sorted(moved) else None

    def emit(self, op: qnn.TransposeOp, match: tuple[int, ...]) -> ir.Value:
        return qnn.build(qnn.ReshapeOp, op.input, element=element_of(op.output.type), shape=match).output


_Movement = qnn.TransposeOp | qnn.ReshapeOp | qnn.SliceOp | qnn.GatherOp


class FoldConstantMovement(Replacement[NDArray[Any]]):
    """A constant that is moved is another constant."""

    roots = ("qnn.transpose", "qnn.reshape", "qnn.slice", "qnn.gather")

    def check(self, op: _Movement) -> NDArray[Any] | None:
        value = constant_value(op.input)
        return None if value is None else EVALUATORS[op.operation.name](op, [value])

    def emit(self, op: _Movement, match: NDArray[Any]) -> ir.Value:
        return constant(match)


class TurnPickedProduct(Replacement[qnn.DynamicGatherOp]):
    """Constant matrices that a gather picks, times a column each, are the columns as rows times the matrices turned."""

    roots = ("qnn.f32_matmul",)

    def check(self, op: qnn.F32MatmulOp) -> qnn.DynamicGatherOp | None:
        gather, column = pattern.produced_by(op.data, qnn.DynamicGatherOp), shape_of(op.matrix.type)
        if op.bias is not None or gather is None or gather.axis != 0:
            return None
        if len(pattern.users(op.data)) > 1 or constant_value(gather.data) is None:
            return None
        indices, shape = shape_of(gather.indices.type), shape_of(gather.data.type)
        holds = column[-1] == 1 < shape[-2] and (len(indices), len(shape), len(column)) == (1, 3, 3)
        return gather if holds else None

    def emit(self, op: qnn.F32MatmulOp, match: qnn.DynamicGatherOp) -> ir.Value:
        matrices = constant_value(match.data)
        assert matrices is not None, "checked"
        count, depth, _ = shape_of(op.matrix.type)
        turned = constant(np.ascontiguousarray(matrices.transpose(0, 2, 1)))
        picked = qnn.build(qnn.DynamicGatherOp, turned, match.indices, element="f32").output
        row = qnn.build(qnn.ReshapeOp, op.matrix, element="f32", shape=(count, 1, depth)).output
        product = qnn.build(qnn.F32MatmulOp, row, picked, element="f32", rounded_products=op.rounded_products).output
        return qnn.build(qnn.ReshapeOp, product, element="f32", shape=shape_of(op.output.type)).output


# Small floats are extended where they are read, and what is computed is truncated: between ops that move or choose
# numbers neither changes one.


class RemoveRounding(Replacement[ir.Value]):
    """Numbers that a small float type has are not changed by rounding to it."""

    roots = (pattern.EXTEND,)

    def check(self, op: ir.OpView) -> ir.Value | None:
        small = op.operation.operands[0]
        truncated = pattern.producer(small)
        if truncated is None or truncated.operation.name != _TRUNCATE:
            return None
        wide = truncated.operation.operands[0]
        return (
            wide
            if wide.type == op.operation.results[0].type and pattern.is_exact(wide, element_of(small.type))
            else None
        )

    def emit(self, op: ir.OpView, match: ir.Value) -> ir.Value:
        return match


class MoveSmallFloats(Replacement["ir.Value | SameElementOp"]):
    """A tensor that is extended, moved as f32 and truncated, but read nowhere else, is moved as it was before."""

    roots = (_TRUNCATE,)

    def check(self, op: ir.OpView) -> ir.Value | SameElementOp | None:
        wide, type_ = op.operation.operands[0], op.operation.results[0].type
        moved = pattern.producer(wide)
        if any(user.operation.name == pattern.EXTEND for user in pattern.users(op.operation.results[0])):
            return None
        if isinstance(moved, _Movement) and len(pattern.users(wide)) == 1 and _extended(moved.input, type_) is not None:
            return moved
        return _extended(wide, type_)

    def emit(self, op: ir.OpView, match: ir.Value | SameElementOp) -> ir.Value:
        if isinstance(match, ir.Value):
            return match
        type_ = op.operation.results[0].type
        small = _extended(match.input, type_)
        assert small is not None, "checked"
        attributes, location = dict(match.operation.attributes.items()), match.operation.location
        return ir.Operation.create(match.operation.name, [type_], [small], attributes, loc=location).results[0]


def _extended(wide: ir.Value, type_: ir.Type) -> ir.Value | None:
    """The tensor with the elements of `type_` that `wide` extends."""
    extension = pattern.producer(wide)
    small = (
        extension.operation.operands[0]
        if extension is not None and extension.operation.name == pattern.EXTEND
        else None
    )
    return small if small is not None and element_of(small.type) == element_of(type_) else None


@register
class CanonicalizePass(GraphPass):
    """Remove ops that do nothing, and evaluate data movement of constants.

    Requantize, lut, clip, reshape, transpose and pad ops that are the identity are removed; reshapes of reshapes and
    transposes of transposes become one op; reshape and transpose of a constant become a constant. Columns that meet
    matrices picked from a constant become rows. Small floats are not extended and truncated around ops that move or
    choose numbers.
    """

    name: ClassVar[str] = "qnn-canonicalize"
    rewrites = (
        FoldConstantMovement,
        RemoveIdentity,
        MergeReshapes,
        MergeTransposes,
        TransposeToReshape,
        TurnPickedProduct,
        RemoveRounding,
        MoveSmallFloats,
    )
