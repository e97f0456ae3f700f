"""TopK: the first ranks say where to look."""

from __future__ import annotations

import math

import numpy as np

from qdialect.dialect import RankOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.data_movement import normalized_axes
from qdialect.frontends.onnx.operators.indexing import elements_along, scatter
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import Reshaping, Slicing, move_value
from qdialect.frontends.planning.ordering import keys_of
from qdialect.frontends.planning.plain import binary, constant_of
from qdialect.frontends.planning.tensors import Tensor
from qdialect.frontends.slices import Slice


@imports("TopK")
def _top_k(call: Call) -> tuple[Tensor, ...]:
    """In descending order, equal numbers in their own: the first k ranks say where to look."""
    call.count(1, 2)
    source = call.tensor(0)
    (axis,) = normalized_axes([call.attribute("axis", -1)], len(source.shape))
    counts = call.integers(1) if call.optional(1) is not None else (call.attribute("k", 0),)
    require(len(counts) == 1, f"k must have 1 entry, but got {len(counts)}")
    count, extent = counts[0], source.shape[axis]
    require(1 <= count <= extent, f"k must be in [1, {extent}], but got {count}")
    keys = keys_of(call, source, call.flag("largest", 1))

    def rank(emitter: Emitter) -> Emitted:
        return emitter.build(RankOp, emitter.to_channels_first(keys), element="i64", axis=axis), False

    ranks = call.plan.compute(call.name, keys.shape, "i64", rank)
    indices = _first(call, _inverse(call, ranks, axis), axis, count)
    return elements_along(call, source, indices, axis), indices


def _inverse(call: Call, ranks: Value, axis: int) -> Value:
    """The index along `axis` of the element of each rank."""
    shape = ranks.shape
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    rows = np.arange(outer, dtype=np.int64).reshape(-1, 1, 1) * (shape[axis] * inner)
    start = constant_of(call, rows + np.arange(inner, dtype=np.int64))
    split = move_value(call.plan, call.name, ranks, Reshaping((outer, shape[axis], inner)), None)
    target = binary(
        call,
        [split, start],
        "i64",
        lambda s, rank, first: s.op("arith.addi", s.op("arith.muli", rank, inner), first),
    )
    zeros = constant_of(call, np.zeros(shape, np.int64))
    along = np.arange(shape[axis], dtype=np.int64).reshape(-1, *[1] * (len(shape) - axis - 1))
    positions = constant_of(call, np.broadcast_to(along, shape))
    return scatter(call, zeros, target, positions, (math.prod(shape),))


def _first(call: Call, value: Value, axis: int, count: int) -> Value:
    shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
    slices = [Slice(0, 1, extent) for extent in shape]
    return move_value(call.plan, call.name, value, Slicing.of(slices), None)
