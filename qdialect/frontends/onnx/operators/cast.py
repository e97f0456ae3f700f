"""Cast and CastLike between integers, booleans and float32, as ONNX Runtime casts on x86-64."""

from __future__ import annotations

from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.common import require
from qdialect.frontends.onnx.model import element_name
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.conversion import cast_array, converted
from qdialect.frontends.planning.plain import element_type, tensor_of, unary
from qdialect.frontends.planning.tensors import Constant, Tensor

_OF_EIGHT_BIT_FLOATS = ("saturate", "round_mode")


@imports("Cast")
def _cast(call: Call) -> Tensor:
    call.count(1)
    call.ignore(*_OF_EIGHT_BIT_FLOATS)
    return _to(call, element_name(call.attribute("to", 0)))


@imports("CastLike")
def _cast_like(call: Call) -> Tensor:
    """To the type of input 1, whose numbers do not matter."""
    call.count(2)
    call.ignore(*_OF_EIGHT_BIT_FLOATS)
    return _to(call, element_type(call.tensor(1)))


def _to(call: Call, target: str) -> Tensor:
    source = call.tensor(0)
    found = element_type(source)
    if found == target:
        return source
    require(target in NUMPY_DTYPES, f"must cast to one of {', '.join(NUMPY_DTYPES)}, but casts to {target}")
    if isinstance(source, Constant):
        return Constant(cast_array(source.array, target))
    if target == "f32" and found in ELEMENT_RANGES:
        return Quantized(source.shape, value_of(call, 0), (1.0,), (0,))
    value = value_of(call, 0)
    return tensor_of(unary(call, value, target, lambda s, x: converted(s, x, found, target)))
