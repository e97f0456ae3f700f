"""FILL, ZEROS_LIKE and RANGE: numbers that the model's shapes and constants give."""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import constant, integers, operands, same_content, same_type
from qdialect.frontends.tflite.operators.registry import Emission, imports

_PLAIN = ("f32", "i8", "i16", "i32", "i64", "i1")
_RANGES = ("f32", "i32", "i64")


@imports("FILL")
def _fill(operator: Operator) -> Emission:
    """One element repeated; its number is known when the network runs."""
    extents, value = operands(operator, 2)
    same_content(value, operator.outputs[0])
    shape = integers(extents, "dimensions")
    require(min(shape, default=1) >= 1, f"dimensions must be at least 1, but got {list(shape)}")
    found = math.prod(value.shape)
    require(found == 1, f"value must have 1 element, but got {found}")
    return lambda emitter: emitter.broadcast(emitter.reshape(emitter.value(value), (1,) * len(shape)), shape)


@imports("ZEROS_LIKE")
def _zeros(operator: Operator) -> Emission:
    (data,) = operands(operator, 1)
    same_type(operator, data)
    require(data.element in _PLAIN, f"input must be {', '.join(_PLAIN)}, but got {data.element}")
    zero = np.zeros((), NUMPY_DTYPES[data.element])
    return lambda emitter: emitter.constant(np.broadcast_to(zero, data.shape))


@imports("RANGE")
def _range(operator: Operator) -> Emission:
    """``start + i * delta`` in the type of the numbers, as the kernel adds them up."""
    numbers = operands(operator, 3)
    element = operator.outputs[0].element
    require(element in _RANGES, f"output must be {', '.join(_RANGES)}, but got {element}")
    same_type(operator, *numbers)
    parts = [constant(tensor, what) for tensor, what in zip(numbers, ("start", "limit", "delta"), strict=True)]
    require(all(part.size == 1 for part in parts), "start, limit and delta must have 1 element each")
    start, limit, delta = (part.reshape(()).item() for part in parts)
    count = _count(start, limit, delta)
    operator.budget.spend_constant((count,), 8)
    steps = np.full(count, delta, NUMPY_DTYPES[element])
    steps[0] = start

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.constant(np.add.accumulate(steps, dtype=steps.dtype))

    return emit


def _count(start: float, limit: float, delta: float) -> int:
    ends = f"delta must lead from {start} to {limit}, but got {delta}"
    require(delta != 0 and all(map(math.isfinite, (start, limit, delta))), ends)
    count = math.ceil((limit - start) / delta)
    require(count >= 1, ends)
    return count
