"""EmbedLayerNormalization of com.microsoft: rows of tables for words, positions and kinds, added and normalized."""

from __future__ import annotations

import numpy as np

from qdialect.dialect import IntSumOp
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.float_groups import GroupKernel
from qdialect.frontends.onnx.operators.elementwise import binary
from qdialect.frontends.onnx.operators.indexing import indices_of
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import gathered
from qdialect.frontends.planning.normalization import affine, normalized
from qdialect.frontends.planning.plain import constant_of
from qdialect.frontends.planning.tensors import Computed, F32Tensor, Tensor

_EPSILON = 1e-12


@imports("com.microsoft.EmbedLayerNormalization")
def _embedding(call: Call) -> tuple[Tensor, ...]:
    """Normalized rows [B, S, H], how many tokens the mask shows of each sequence, and the sum before."""
    call.count(7, 9)
    call.ignore("mask_index_type")
    words = indices_of(call, 0)
    require(len(words.shape) == 2, f"input_ids must have 2 dimensions, but got {len(words.shape)}")
    total = _rows(call, 2, words)
    for table, indices in ((3, _positions(call, words.shape)), (4, _kinds(call))):
        if indices is not None:
            total = binary("Add", total, _rows(call, table, indices), GroupKernel.F32)
    require(len(total.shape) == 3, f"rows must broadcast to 3 dimensions, but got {list(total.shape)}")
    return _normalized(call, total), _counts(call, words.shape), total


def _positions(call: Call, shape: Shape) -> Value:
    if call.optional(8) is not None:
        return indices_of(call, 8)
    return constant_of(call, np.arange(shape[1], dtype=np.int64).reshape(1, -1))


def _kinds(call: Call) -> Value | None:
    given = [call.optional(index) is not None for index in (1, 4)]
    require(given[0] == given[1], "segment_ids and segment_embedding must both be given or omitted")
    return indices_of(call, 1) if all(given) else None


def _rows(call: Call, table: int, indices: Value) -> F32Tensor:
    source = call.f32(table)
    require(len(source.shape) == 2, f"input {table} must have 2 dimensions, but got {len(source.shape)}")
    found = gathered(call.plan, call.name, source, indices, 0)
    return call.with_input(table, found).f32(table)


def _normalized(call: Call, total: F32Tensor) -> Tensor:
    source, epsilon = total.f32(call.plan, call.name), call.attribute("epsilon", float(np.float32(_EPSILON)))
    for index in (5, 6):
        found = call.f32(index).shape
        require(found == total.shape[-1:], f"input {index} must have {total.shape[-1]} entries, but got {list(found)}")
    scale, bias = (call.f32(index).f32(call.plan, call.name) for index in (5, 6))

    def emit(emitter: Emitter) -> Emitted:
        rows = normalized(emitter, emitter.to_channels_first(source), (2,), epsilon)
        return affine(emitter, rows, emitter.to_channels_first(scale), emitter.to_channels_first(bias)), False

    return Computed(total.shape, call.plan.compute(call.name, total.shape, "f32", emit))


def _counts(call: Call, shape: Shape) -> Tensor:
    """[B] of i32: the sum of each row of the mask, 0 without one."""
    if call.optional(7) is None:
        return constant_of(call, np.zeros(shape[:1], np.int32))
    mask = value_of(call, 7)
    holds = mask.element == "i32" and mask.shape == shape
    require(holds, f"mask must be i32 of {list(shape)}, but got {list(mask.shape)} of {mask.element}")

    def emit(emitter: Emitter) -> Emitted:
        sums = emitter.build(IntSumOp, emitter.to_channels_first(mask), element="i32", axes=(1,), keep_dims=False)
        return sums, False

    return call.plan.compute(call.name, shape[:1], "i32", emit)
