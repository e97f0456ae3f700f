"""TFLite CAST between f32, integers of 32 and 64 bits and quantized values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tflite
from tflite_graphs import options

from tools.record import litert
from tools.record.drawing import Draw, Type
from tools.record.family import Array, Case, Family
from tools.record.tflite_models import Tensor, given, one_operator, per_tensor

_SHAPE = (3, 5, 7)
# What a cast ignores: it takes quantized values as integers.
_QUANTIZATION = per_tensor(0.25, 3)
_ELEMENTS: dict[Type, int] = {
    np.float32: tflite.TensorType.FLOAT32,
    np.int32: tflite.TensorType.INT32,
    np.int64: tflite.TensorType.INT64,
    np.int8: tflite.TensorType.INT8,
    np.uint8: tflite.TensorType.UINT8,
}
_PAIRS: list[tuple[Type, Type]] = [
    *((np.float32, np.int32), (np.float32, np.int64), (np.int32, np.float32), (np.int32, np.int64)),
    *((np.int64, np.float32), (np.int64, np.int32), (np.int8, np.float32), (np.uint8, np.float32)),
]


def _draw() -> Iterator[Case]:
    for source, to in _PAIRS:
        name = f"cast_{np.dtype(source).name}_{np.dtype(to).name}"
        data = given(_values(Draw(name), source), _QUANTIZATION if np.dtype(source).itemsize == 1 else None)
        fields = options(_ELEMENTS[source], _ELEMENTS[to])
        result = Tensor(_SHAPE, to)
        code, kind = tflite.BuiltinOperator.CAST, tflite.BuiltinOptions.CastOptions
        yield one_operator(name, code, [data], [result], kind, fields)


def _values(draw: Draw, dtype: Type) -> Array:
    """Numbers of every size: f32 ones with fractions, integers that f32 and 32 bits cannot hold."""
    if dtype is not np.float32:
        return draw.values(_SHAPE, dtype)
    exponents = draw.rng.uniform(-2, 8, _SHAPE)
    return (draw.rng.choice([-1, 1], _SHAPE) * 10**exponents).astype(np.float32)


FAMILY = Family("tflite_casts", _draw, litert.reference)
