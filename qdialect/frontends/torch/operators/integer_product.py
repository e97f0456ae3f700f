"""_int_mm: the i32 product of two matrices of 8-bit integers that stand for themselves."""

from __future__ import annotations

from qdialect.dialect import MatMulOp
from qdialect.frontends.common import require
from qdialect.frontends.planning.contraction import accumulator_attributes
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.plain import value_of_tensor
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.weight import ordered_weight
from qdialect.frontends.torch.operators.matmul import dense
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.tensors import Quantized


@imports("_int_mm.default")
def _integer_product(call: Call) -> Result:
    left, right = (_whole_numbers(call, name) for name in ("self", "mat2"))
    if right.values.data is not None:
        return dense(call.name, left, ordered_weight(right, (1, 0), 1), None).accumulators(call.plan, call.name)

    def emit(emitter: Emitter) -> Emitted:
        operands = (emitter.to_channels_first(operand.values) for operand in (left, right))
        return emitter.build(MatMulOp, *operands, element="i32", **accumulator_attributes(left, right)), False

    return call.plan.compute(call.name, (left.shape[0], right.shape[1]), "i32", emit)


def _whole_numbers(call: Call, name: str) -> Quantized:
    """A matrix whose quantized values count units of 1."""
    value = value_of_tensor(call, call.tensor(name))
    require(value.element in ("i8", "ui8"), f"argument '{name}' must be i8 or ui8, but got {value.element}")
    require(len(value.shape) == 2, f"argument '{name}' must have 2 dimensions, but got {len(value.shape)}")
    return Quantized(value.shape, value, (1.0,), (0,))
