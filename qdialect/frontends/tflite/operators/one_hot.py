"""ONE_HOT: a number where an index stands, another elsewhere."""

from __future__ import annotations

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import constant, integers, operands
from qdialect.frontends.tflite.operators.indexing import check_index_type
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.slicing import axis_of
from qdialect.frontends.tflite.reader import read_options

_ELEMENTS = ("f32", "i8", "i32", "i64", "i1")
_MAX_DEPTH = 1 << 20


@imports("ONE_HOT")
def _one_hot(operator: Operator) -> Emission:
    """An index outside of the new dimension has no number of its own there."""
    axis = read_options(operator, tflite.OneHotOptions, lambda options: options.Axis())
    positions, depth, on, off = operands(operator, 4)
    check_index_type(positions, "indices")
    depths, element = integers(depth, "depth"), operator.outputs[0].element
    holds = len(depths) == 1 and 1 <= depths[0] <= _MAX_DEPTH
    require(holds, f"depth must be in [1, {_MAX_DEPTH}], but got {list(depths)}")
    require(element in _ELEMENTS, f"output must be {', '.join(_ELEMENTS)}, but got {element}")
    numbers = [_number(one, what, element) for one, what in ((on, "on value"), (off, "off value"))]
    rank = len(positions.shape)
    along = rank if axis == -1 else axis_of([axis], rank + 1)
    split = (*positions.shape[:along], 1, *positions.shape[along:])
    shape = (*positions.shape[:along], depths[0], *positions.shape[along:])
    dtype = np.int32 if positions.element == "i32" else np.int64
    index = np.arange(depths[0], dtype=dtype).reshape(-1, *[1] * (rank - along))

    def emit(emitter: Emitter) -> ir.Value:
        given = emitter.reshape(emitter.value(positions), split)
        spread = emitter.build(BroadcastOp, given, element=positions.element, shape=shape)
        known = emitter.build(BroadcastOp, emitter.constant(index), element=positions.element, shape=shape)
        s, (chosen, other) = Arithmetic(emitter), (emitter.constant(np.broadcast_to(n, shape)) for n in numbers)
        return s.select(s.compare("eq", spread, known), chosen, other)

    return emit


def _number(tensor: Tensor, what: str, element: str) -> np.ndarray[tuple[()], np.dtype[np.generic]]:
    require(tensor.element == element, f"{what} must be {element}, but got {tensor.element}")
    entries = constant(tensor, what)
    require(entries.size == 1, f"{what} must have 1 entry, but got {entries.size}")
    return entries.reshape(())
