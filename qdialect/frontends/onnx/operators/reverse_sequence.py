"""ReverseSequence: the first elements of each sequence of a batch in reverse order, as many as its length says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect._mlir import ir
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.indexing import elements_along, indices_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.movement import Broadcasting, Reshaping, move_value
from qdialect.frontends.planning.plain import Arithmetic, constant_of, elementwise
from qdialect.frontends.planning.tensors import Tensor


@imports("ReverseSequence")
def _reverse_sequence(call: Call) -> Tensor:
    """One of the first two dimensions is the batch, the other one time; lengths may be known at run time alone."""
    call.count(2)
    source, lengths = call.tensor(0), indices_of(call, 1)
    batch, time = call.attribute("batch_axis", 1), call.attribute("time_axis", 0)
    require(sorted((batch, time)) == [0, 1], f"batch_axis and time_axis must be 0 and 1, but got {batch} and {time}")
    rank, shape = len(source.shape), source.shape
    require(rank >= 2, f"input must have at least 2 dimensions, but got {rank}")
    require(lengths.shape == (shape[batch],), f"lengths must be {shape[batch]} entries, but got {list(lengths.shape)}")
    steps = np.arange(shape[time], dtype=np.int64).reshape([-1 if axis == time else 1 for axis in range(rank)])
    spread = Reshaping(tuple(extent if axis == batch else 1 for axis, extent in enumerate(shape)))

    def build(s: Arithmetic, operands: Sequence[ir.Value]) -> ir.Value:
        step, length = operands[0], s.resize(operands[1], "i64")
        turned = s.op("arith.subi", s.op("arith.subi", length, step), 1)
        return s.select(s.compare("lt", step, length), turned, step)

    by_entry = move_value(call.plan, call.name, lengths, spread, None)
    indices = elementwise(call, [constant_of(call, steps), by_entry], "i64", build)
    return elements_along(call, source, move_value(call.plan, call.name, indices, Broadcasting(shape), None), time)
