"""Cast and CastLike."""

from __future__ import annotations

import numpy as np

from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.common import require
from qdialect.frontends.onnx.model import element_name
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.emitter import Emission, Value
from qdialect.frontends.planning.tensors import Computed, Constant, Tensor


@imports("Cast")
def _cast(call: Call) -> Tensor:
    call.count(1)
    return _to(call, element_name(call.attribute("to", 0)))


@imports("CastLike")
def _cast_like(call: Call) -> Tensor:
    """To the type of input 1, whose numbers do not matter."""
    call.count(2)
    return _to(call, _element(call.tensor(1)))


def _element(tensor: Tensor) -> str:
    if isinstance(tensor, Constant):
        return next(
            (name for name, dtype in NUMPY_DTYPES.items() if dtype == tensor.array.dtype), tensor.array.dtype.name
        )
    return tensor.element if isinstance(tensor, Value) else "f32"


def _to(call: Call, target: str) -> Tensor:
    """A tensor of the type that it has, a constant of any, or integers as the f32 values that they are."""
    source = call.tensor(0)
    found = _element(source)
    if found == target:
        return source
    if isinstance(source, Constant) and target in NUMPY_DTYPES:
        with np.errstate(invalid="ignore"):
            return Constant(source.array.astype(NUMPY_DTYPES[target]))
    fits = isinstance(source, Value) and target == "f32"
    require(fits, f"must keep the type {found} or go from integers to f32, but casts to {target}")
    assert isinstance(source, Value)
    if found in ELEMENT_RANGES:
        return Quantized(source.shape, source, (1.0,), (0,))
    return Computed(source.shape, call.plan.compute(call.name, source.shape, "f32", _floats(source)))


def _floats(source: Value) -> Emission:
    """Integers that no dequantization reads, rounded to float32."""
    return lambda emitter: (emitter.upstream("arith.sitofp", "f32", emitter.to_channels_first(source)), False)
