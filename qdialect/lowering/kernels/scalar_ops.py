"""The element-wise upstream ops as scalar bodies: on i1, i8, i16, i32, i64 and float32 numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import element_name
from qdialect.lowering.kernels.body_machine import SHARED, emit_power, emit_shared
from qdialect.lowering.scalar_body import Body, Value

Emitter = Callable[[Body, ir.Operation, Sequence[Value]], Value]

_SAME_TYPE = (
    *("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.maximumf", "arith.minimumf"),
    *("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"),
    *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"),
    *("math.absf", "math.absi", "math.ceil", "math.copysign", "math.floor", "math.roundeven", "math.sqrt"),
    "math.trunc",
)
_CASTS = (
    *("arith.bitcast", "arith.extsi", "arith.extui", "arith.trunci"),
    *("arith.sitofp", "arith.uitofp", "arith.fptosi"),
)
_FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
_COMPARISONS = {
    "arith.cmpf": _FLOAT_PREDICATES,
    "arith.cmpi": ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"),
}


def scalar_type(value: ir.Value) -> str:
    """How a kernel holds an element of a tensor: as upstream ops see it, bits without a sign."""
    element = ir.RankedTensorType(value.type).element_type
    return f"i{element.width}" if isinstance(element, ir.IntegerType) else element_name(element)


def _same_type(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    return body.unary(op.name, *values) if len(values) == 1 else body.binary(op.name, *values)


def _cast(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    return body.cast(op.name, values[0], scalar_type(op.results[0]))


def _compare(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    predicate = _COMPARISONS[op.name][ir.IntegerAttr(op.attributes["predicate"]).value]
    return body.compare(predicate, *values)


def _select(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    return body.select(*values)


def _rsqrt(body: Body, _: ir.Operation, values: Sequence[Value]) -> Value:
    root = body.unary("math.sqrt", values[0])
    return body.divide(body.constant(1.0, "f32"), root)


def _transcendental(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    return emit_shared(body, op.name, values[0])


SCALAR_OPS: dict[str, Emitter] = {
    **dict.fromkeys(_SAME_TYPE, _same_type),
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(_COMPARISONS, _compare),
    **dict.fromkeys(SHARED, _transcendental),
    "arith.select": _select,
    "math.powf": lambda body, _, values: emit_power(body, *values),
    "math.rsqrt": _rsqrt,
    "tensor.bitcast": lambda _, __, values: values[0],
}
"""By op name: ``emit(body, op, values of its operands)`` gives the value of its result."""
