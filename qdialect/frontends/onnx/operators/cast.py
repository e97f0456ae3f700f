"""Cast and CastLike between integers, booleans and float32, as ONNX Runtime casts on x86-64.

A float goes to the integer below its magnitude; what 32 bits cannot hold, or 64 for i64, becomes the smallest integer
of that width, as the CPU's conversions say, and narrower integers are its low bits.
"""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.common import Array, require
from qdialect.frontends.onnx.model import ELEMENTS
from qdialect.frontends.onnx.operators.plain import Arithmetic, element_type, tensor_of, unary, value_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.tensors import Constant, Tensor


@imports("Cast")
def _cast(call: Call) -> Tensor:
    call.count(1)
    number = call.attribute("to", 0)
    return _to(call, ELEMENTS.get(number, f"element type {number}"))


@imports("CastLike")
def _cast_like(call: Call) -> Tensor:
    """To the type of input 1, whose numbers do not matter."""
    call.count(2)
    return _to(call, element_type(call.tensor(1)))


def _to(call: Call, target: str) -> Tensor:
    source = call.tensor(0)
    found = element_type(source)
    if found == target:
        return source
    require(target in NUMPY_DTYPES, f"must cast to one of {', '.join(NUMPY_DTYPES)}, but casts to {target}")
    if isinstance(source, Constant):
        return Constant(_cast_array(source.array, target))
    if target == "f32" and found in ELEMENT_RANGES:
        return Quantized(source.shape, value_of(call, 0), (1.0,), (0,))
    value = value_of(call, 0)
    return tensor_of(unary(call, value, target, lambda s, x: _converted(s, x, found, target)))


def _converted(s: Arithmetic, x: ir.Value, found: str, target: str) -> ir.Value:
    if target == "i1":
        return s.compare("ne", x, 0)
    bare = target.removeprefix("u")
    if found == "f32":
        return _integer(s, x, bare)
    if target == "f32":
        return s.convert("arith.uitofp" if found == "i1" else "arith.sitofp", x, "f32")
    return s.resize(x, bare)


def _integer(s: Arithmetic, x: ir.Value, element: str) -> ir.Value:
    wide = "i64" if element == "i64" else "i32"
    limit = 2.0 ** (int(wide[1:]) - 1)
    is_inside = s.op("arith.andi", s.compare("ge", x, -limit), s.compare("lt", x, limit))
    whole = s.convert("arith.fptosi", s.select(is_inside, x, 0.0), wide)
    return s.resize(s.select(is_inside, whole, -int(limit)), element)


def _cast_array(array: Array, target: str) -> Array:
    dtype = NUMPY_DTYPES[target]
    if array.dtype.kind != "f" or dtype.kind not in "iu":
        return array.astype(dtype)
    wide = np.int64 if dtype.itemsize == 8 else np.int32
    limit = 2.0 ** (np.iinfo(wide).bits - 1)
    is_inside = (array >= -limit) & (array < limit)
    whole = np.where(is_inside, array, 0).astype(wide)
    return np.where(is_inside, whole, np.iinfo(wide).min).astype(dtype)
