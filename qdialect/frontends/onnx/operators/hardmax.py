"""Hardmax: 1 where a row has its largest number first, 0 elsewhere."""

from __future__ import annotations

import math

import numpy as np

from qdialect.frontends.onnx.operators.f32 import axis_of
from qdialect.frontends.onnx.operators.parts import part_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.softmax import ALONG_AXIS
from qdialect.frontends.planning.movement import Reshaping, move
from qdialect.frontends.planning.tensors import Constant, Tensor

_FLOAT = 1


@imports("Hardmax")
def _hardmax(call: Call) -> Tensor:
    """Along an axis or, before operator set 13, over all dimensions from it on."""
    call.count(1)
    data = call.f32(0)
    is_flat = call.node.version < ALONG_AXIS
    axis = axis_of(call, 1 if is_flat else -1, len(data.shape))
    rows: Tensor = data
    if is_flat:
        flat = (math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))
        rows, axis = move(call.plan, call.name, data, Reshaping(flat)), 1
    first = part_of(call, "ArgMax", [rows], axis=axis)
    extent, after = rows.shape[axis], len(rows.shape) - axis - 1
    positions = Constant(np.arange(extent, dtype=np.int64).reshape(-1, *[1] * after))
    chosen = part_of(call, "Cast", [part_of(call, "Equal", [first, positions])], to=_FLOAT)
    return move(call.plan, call.name, chosen, Reshaping(data.shape)) if is_flat else chosen
