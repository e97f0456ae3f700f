"""CumSum, and reductions of integers that stand for themselves."""

from __future__ import annotations

from qdialect.dialect import CumSumOp, IntegerReduceOp, IntMaxOp, IntMinOp, IntProdOp, IntSumOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.data_movement import normalized_axes
from qdialect.frontends.onnx.operators.reduction import axes_of
from qdialect.frontends.onnx.operators.registry import Call, imports, imports_integers, value_of
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.plain import common_element, tensor_of, unary
from qdialect.frontends.planning.reduction import reduced_shape
from qdialect.frontends.planning.tensors import Tensor

_OPS: dict[str, type[IntegerReduceOp]] = {
    "ReduceL1": IntSumOp,
    "ReduceMax": IntMaxOp,
    "ReduceMin": IntMinOp,
    "ReduceProd": IntProdOp,
    "ReduceSum": IntSumOp,
    "ReduceSumSquare": IntSumOp,
}


@imports_integers(*_OPS)
def _reduction(call: Call) -> Tensor:
    value, keep_dims = _terms(call), call.flag("keepdims", 1)
    common_element([value], ("i32", "i64"))
    axes, op_class = axes_of(call, len(value.shape)), _OPS[call.node.kind]
    if not axes:
        return value

    def emit(emitter: Emitter) -> Emitted:
        data = emitter.to_channels_first(value)
        return emitter.build(op_class, data, element=value.element, axes=axes, keep_dims=keep_dims), False

    return call.plan.compute(call.name, reduced_shape(value.shape, axes, keep_dims), value.element, emit)


def _terms(call: Call) -> Value:
    """What is reduced: the integers, their magnitudes or their squares."""
    value = value_of(call, 0)
    function = _TERMS.get(call.node.kind)
    if function is None:
        return value
    name, count = function
    return unary(call, value, value.element, lambda s, x: s.op(name, *[x] * count))


_TERMS = {"ReduceL1": ("math.absi", 1), "ReduceSumSquare": ("arith.muli", 2)}


@imports("CumSum")
def _cumsum(call: Call) -> Tensor:
    call.count(2)
    value, axes = value_of(call, 0), call.integers(1)
    element = common_element([value], ("i32", "i64", "f32"))
    require(len(axes) == 1, f"axis must have 1 entry, but got {len(axes)}")
    (axis,) = normalized_axes(axes, len(value.shape))
    how = {name: call.flag(name, 0) for name in ("exclusive", "reverse")}

    def emit(emitter: Emitter) -> Emitted:
        return emitter.build(CumSumOp, emitter.to_channels_first(value), element=element, axis=axis, **how), False

    return tensor_of(call.plan.compute(call.name, value.shape, element, emit))
