"""QuantizeLinear and DequantizeLinear whose scale or zero point is computed when the network runs, in float32."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.registry import Call, value_of
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.conversion import converted
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.movement import Reshaping, move_value
from qdialect.frontends.planning.plain import Arithmetic, elementwise, tensor_of, unary
from qdialect.frontends.planning.tensors import Tensor, known_array

_QUANTIZED = (*ELEMENT_RANGES, "i32")


def has_run_time_parameters(call: Call) -> bool:
    """Whether the scale or the zero point of a node is not known."""
    given = [call.tensor(1), *([] if call.optional(2) is None else [call.tensor(2)])]
    return any(known_array(tensor) is None for tensor in given)


def dequantized_at_run_time(call: Call) -> Tensor:
    """``(quantized value - zero point) * scale``."""
    value = value_of(call, 0)
    require(value.element in _QUANTIZED, f"input 0 must be {' or '.join(_QUANTIZED)}, but got {value.element}")
    scale, point = _parameters(call, value.shape, value.element)
    values = [_f32(call, value), scale, *([] if point is None else [_f32(call, point)])]

    def build(s: Arithmetic, operands: list[ir.Value]) -> ir.Value:
        found, factor, *zero = operands
        return s.op("arith.mulf", s.op("arith.subf", found, zero[0]) if zero else found, factor)

    return tensor_of(elementwise(call, values, "f32", lambda s, operands: build(s, list(operands))))


def quantized_at_run_time(call: Call, default: str) -> Tensor:
    """``clamp(half_even(x / scale) + zero point)``; `default` is the type where no zero point gives one."""
    data = call.f32(0).f32(call.plan, call.name)
    scale, point = _parameters(call, data.shape, None)
    element = default if point is None else point.element
    require(element in ELEMENT_RANGES, f"output must be {' or '.join(ELEMENT_RANGES)}, but got {element}")
    values = [data, scale, *([] if point is None else [_f32(call, point)])]
    low, high = map(float, ELEMENT_RANGES[element])

    def build(s: Arithmetic, operands: list[ir.Value]) -> ir.Value:
        found, divisor, *zero = operands
        rounded = s.op("math.roundeven", s.op("arith.divf", found, divisor))
        shifted = s.op("arith.addf", rounded, zero[0]) if zero else rounded
        return s.op("arith.minimumf", s.op("arith.maximumf", shifted, low), high)

    whole = elementwise(call, values, "f32", lambda s, operands: build(s, list(operands)))
    return unary(call, whole, element, lambda s, x: converted(s, x, "f32", element))


def _parameters(call: Call, shape: Shape, element: str | None) -> tuple[Value, Value | None]:
    """Scale and zero point, shaped to meet data of `shape`; the zero point must be of `element`, if that is given."""
    scale = value_of(call, 1)
    require(scale.element == "f32", f"scale must be f32, but got {scale.element}")
    point = None if call.optional(2) is None else value_of(call, 2)
    if point is not None:
        fits = point.shape == scale.shape and element in (None, point.element)
        require(fits, f"zero point must be {element} of shape {list(scale.shape)}, but got {list(point.shape)}")
    return _along(call, scale, shape), None if point is None else _along(call, point, shape)


def _along(call: Call, value: Value, shape: Shape) -> Value:
    """One number, or one for each index along the node's axis."""
    require(len(value.shape) <= 1, f"scale must have 0 or 1 dimensions, but got {len(value.shape)}")
    if value.shape in ((), (1,)):
        return move_value(call.plan, call.name, value, Reshaping(()), None)
    axis: int = call.attribute("axis", 1)
    rank = len(shape)
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    extent = shape[axis % rank]
    require(value.shape == (extent,), f"scale must have 1 or {extent} entries, but got {value.shape[0]}")
    spread = tuple(extent if i == axis % rank else 1 for i in range(rank))
    return move_value(call.plan, call.name, value, Reshaping(spread), None)


def _f32(call: Call, value: Value) -> Value:
    if value.element in ELEMENT_RANGES:
        return Quantized(value.shape, value, (1.0,), (0,)).f32(call.plan, call.name)
    return unary(call, value, "f32", lambda s, x: converted(s, x, value.element, "f32"))
