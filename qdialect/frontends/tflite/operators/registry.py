"""How a node becomes `qnn` ops: a planner checks it, and gives the emission that builds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qdialect._mlir import ir
from qdialect.frontends.common import UnsupportedError
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.left_to_litert import reason_of
from qdialect.registry import Registry

Emission = Callable[[Emitter], ir.Value | Sequence[ir.Value]]
"""Builds a node's ops and gives the value of its output, or a value for each of its outputs."""

Planner = Callable[[Operator], Emission]
"""Checks a node against what the front end can express; raises `UnsupportedError`."""


_DATA = {"CONV_3D_TRANSPOSE": 2, "TRANSPOSE_CONV": 2}
"""Which input is computed on, where it is not the first."""

_PLANNERS = Registry[Planner]("importer", "qdialect.frontends.tflite.operators")
_F32_PLANNERS = Registry[Planner]("float importer", "qdialect.frontends.tflite.operators")
_INTEGER_PLANNERS = Registry[Planner]("integer importer", "qdialect.frontends.tflite.operators")
_I16_PLANNERS = Registry[Planner]("16-bit importer", "qdialect.frontends.tflite.operators")
_HYBRID_PLANNERS = Registry[Planner]("hybrid importer", "qdialect.frontends.tflite.operators")


def imports(*kinds: str) -> Callable[[Planner], Planner]:
    """Register the decorated planner for operators by their schema names."""
    return _PLANNERS.register(*kinds)


def imports_f32(*kinds: str) -> Callable[[Planner], Planner]:
    """Register the decorated planner for operators from float32 to float32."""
    return _F32_PLANNERS.register(*kinds)


def imports_integers(*kinds: str) -> Callable[[Planner], Planner]:
    """Register the decorated planner for operators whose first input is i32 or i64."""
    return _INTEGER_PLANNERS.register(*kinds)


def imports_i16(*kinds: str) -> Callable[[Planner], Planner]:
    """Register the decorated planner for operators from or to 16-bit quantized values."""
    return _I16_PLANNERS.register(*kinds)


def imports_hybrid(*kinds: str) -> Callable[[Planner], Planner]:
    """Register the decorated planner for operators from float32 to float32 whose second input is i8."""
    return _HYBRID_PLANNERS.register(*kinds)


def plan(operator: Operator) -> Emission:
    """The emission of a node.

    Raises `UnsupportedError` where the node cannot be expressed and `ImportModelError` where its bytes are damaged.
    """
    planner = _planners_of(operator).get(operator.kind)
    if planner is None:
        raise UnsupportedError(f"operator is not supported{_reason(operator)}")
    return planner(operator)


def _reason(operator: Operator) -> str:
    if operator.kind not in supported_operators():
        return f": {reason_of(operator.kind)}"
    first = next((tensor.element for tensor in operator.inputs if tensor is not None), "no input")
    return f" on {first}"


def _planners_of(operator: Operator) -> Registry[Planner]:
    if operator.kind in _HYBRID_PLANNERS and _is_f32(operator) and _is_hybrid(operator):
        return _HYBRID_PLANNERS
    if operator.kind in _I16_PLANNERS and _is_i16(operator):
        return _I16_PLANNERS
    if operator.kind in _INTEGER_PLANNERS and _is_integer(operator):
        return _INTEGER_PLANNERS
    return _F32_PLANNERS if operator.kind in _F32_PLANNERS and _is_f32(operator) else _PLANNERS


def _is_integer(operator: Operator) -> bool:
    first = operator.inputs[0] if operator.inputs else None
    return first is not None and first.element in ("i32", "i64")


def _is_i16(operator: Operator) -> bool:
    ends = (*operator.inputs[:1], *operator.outputs[:1])
    return any(tensor is not None and tensor.element == "i16" for tensor in ends)


def _is_hybrid(operator: Operator) -> bool:
    second = operator.inputs[1] if len(operator.inputs) > 1 else None
    return second is not None and second.element == "i8"


def _is_f32(operator: Operator) -> bool:
    data = _DATA.get(operator.kind, 0)
    ends = (*operator.inputs[data : data + 1], *operator.outputs[:1])
    return len(ends) == 2 and all(tensor is not None and tensor.element == "f32" for tensor in ends)


def supported_operators() -> tuple[str, ...]:
    """Schema names of all operators with a planner, sorted."""
    tables = (_PLANNERS, _F32_PLANNERS, _INTEGER_PLANNERS, _I16_PLANNERS, _HYBRID_PLANNERS)
    return tuple(sorted(set[str]().union(*(table.keys() for table in tables))))
