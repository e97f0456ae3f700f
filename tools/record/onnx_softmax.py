"""Rows of QLinearSoftmax that tell a logarithm's precision.

ONNX Runtime scales the entries of its table by t = log(largest float32 / extent) - 5.  Whether t is formed in float32
or in float64 shows in few rows: candidates are drawn until one has been found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from onnx_graphs import CONTRIB

from tools.record import onnx_runtime
from tools.record.drawing import BYTES, Draw, Type
from tools.record.family import Array, Case, Family
from tools.record.onnx_nodes import Node, Operand, Result, qlinear

_EXTENTS = (4, 5, 10, 16, 33, 64)
_ROWS = 8
_CANDIDATES = 500000
_OUTPUT_SCALE = 1 / 256


def _draw() -> Iterator[Case]:
    """`_ROWS` rows of every extent, uint8 and int8 by turns."""
    node = Node(f"{CONTRIB}.QLinearSoftmax", attributes={"axis": -1, "opset": 13})
    for index, extent in enumerate(_EXTENTS):
        name, dtype = f"softmax_{index}", BYTES[(index + 1) % 2]
        scale, values = _telling(Draw(name), extent, dtype)
        lowest = int(np.iinfo(np.dtype(dtype).name).min)
        yield qlinear(name, node, [Operand(values, scale, lowest), Result(dtype, _OUTPUT_SCALE, lowest)], dtype)


def _telling(draw: Draw, extent: int, dtype: Type) -> tuple[float, Array]:
    """A scale, and rows of which at least one tells."""
    while True:
        scale = draw.scale(10**-2.5, 10**-0.5)
        rows = _telling_rows(draw, extent, dtype, scale)
        if rows is not None:
            return scale, rows


def _telling_rows(draw: Draw, extent: int, dtype: Type, scale: float) -> Array | None:
    """`_ROWS` rows with those first that tell, None where none of the candidates does."""
    values = draw.values((_CANDIDATES // extent, extent), dtype)
    single, double = (_shares(values, scale, is_single=is_single) for is_single in (True, False))
    tells = np.any(single != double, axis=1)
    return values[np.argsort(~tells, kind="stable")][:_ROWS] if tells.any() else None


def _shares(values: Array, scale: float, *, is_single: bool) -> Array:
    """Rounded shares of 256, whose logarithm is formed in float32 or in float64."""
    logarithm = math.log(float(np.finfo(np.float32).max / np.float32(values.shape[1])))
    reserved = float(np.float32(logarithm) - np.float32(5)) if is_single else logarithm - 5
    entries = np.array([math.exp((reserved / scale - d) * scale) for d in range(256)]).astype(np.float32)
    terms = entries[values.max(axis=1, keepdims=True).astype(int) - values]
    return np.rint(terms * np.float32(1 / _OUTPUT_SCALE) / np.add.accumulate(terms, axis=1)[:, -1:])


FAMILY = Family("onnx_softmax", _draw, onnx_runtime.optimized)
