"""RotaryEmbedding of ONNX and of com.microsoft: pairs of numbers of each head, rotated by their position."""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import NUMPY_DTYPES, shape_of
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.onnx.operators.indexing import INDICES
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.planning.attention import joined_heads, split_heads
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.f32_builder import F32Builder
from qdialect.frontends.planning.movement import Reshaping, gathered, move_value
from qdialect.frontends.planning.plain import binary, constant_of, value_of_tensor
from qdialect.frontends.planning.tensors import Computed, Constant, Tensor, known_array
from qdialect.frontends.slices import Slice, gather, take_slices


@imports("com.microsoft.RotaryEmbedding")
def _contributed(call: Call) -> Tensor:
    call.count(4)
    require(call.attribute("scale", 1.0) == 1.0, "scale must be 1")
    require(call.attribute("is_packed_batching", 0) == 0, "is_packed_batching must be 0")
    return _rotated(call, 2, 3, 1)


@imports("RotaryEmbedding")
def _standard(call: Call) -> Tensor:
    call.count(3, 4)
    return _rotated(call, 1, 2, 3)


def _rotated(call: Call, cosine: int, sine: int, positions: int) -> Tensor:
    """Of [B, S, N * D] or [B, N, S, D]; the first `rotary_embedding_dim` numbers of each head are rotated."""
    shape = call.f32(0).shape
    require(len(shape) in (3, 4), f"input 0 must have 3 or 4 dimensions, but got {len(shape)}")
    batch, steps = shape[0], shape[1] if len(shape) == 3 else shape[2]
    width = shape[-1]
    rotated: int = call.attribute("rotary_embedding_dim", 0)
    if len(shape) == 3:
        heads: int = call.attribute("num_heads", 0) or (width // rotated if rotated else 0)
        require(heads >= 1 and width % heads == 0, f"num_heads must divide {width}, but got {heads}")
        width //= heads
    else:
        call.ignore("num_heads")
        heads = shape[1]
    rotated = rotated or width
    holds = 2 <= rotated <= width and rotated % 2 == 0
    require(holds, f"rotary_embedding_dim must be even and in [2, {width}], but got {rotated}")
    source = call.f32(0).f32(call.plan, call.name)
    angles = [_angles(call, index, positions, (batch, steps, rotated // 2)) for index in (cosine, sine)]
    is_interleaved = call.flag("interleaved", 0)

    def emit(emitter: Emitter) -> Emitted:
        value = emitter.to_channels_first(source)
        value = split_heads(emitter, value, heads) if len(shape) == 3 else value
        cos, sin = (
            emitter.reshape(held, (shape_of(held.type)[0], 1, steps, rotated // 2))
            for held in map(emitter.to_channels_first, angles)
        )
        result = rotate(emitter, value, cos, sin, is_interleaved)
        return joined_heads(emitter, result) if len(shape) == 3 else result, False

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


def _angles(call: Call, index: int, positions: int, wanted: Shape) -> Value:
    """Cosines or sines of each position: [B, S, D / 2], or [1, S, D / 2] for all of a batch."""
    if call.optional(positions) is None:
        tensor = call.f32(index)
        require(tensor.shape == wanted, f"input {index} must hold {list(wanted)}, but got {list(tensor.shape)}")
        return tensor.f32(call.plan, call.name)
    return angles_at(call, index, positions_of(call, positions), wanted)


def positions_of(call: Call, index: int) -> Array | Value:
    """Input `index`, known or not."""
    known_ids = known_array(call.tensor(index))
    return value_of(call, index) if known_ids is None else known_ids


def angles_at(call: Call, index: int, ids: Array | Value, wanted: Shape) -> Value:
    """Rows of the constant input `index` at positions [B, S], at those from one number on, or at [S] for every example.

    Those that are known at run time only are [B, S], or one number.  Raises `UnsupportedError` for positions that the
    input lacks.
    """
    batch, steps, half = wanted
    cache = call.constant(index)
    holds = cache.dtype == np.float32 and cache.ndim == 2 and cache.shape[1] == half
    require(holds, f"input {index} must be f32 with rows of {half}, but got {list(cache.shape)} of {cache.dtype}")
    if isinstance(ids, Value):
        return _angles_at_run_time(call, cache, ids, wanted)
    require(ids.dtype.kind in "iu", f"position_ids must be integers, but got {ids.dtype}")
    rows = ids + np.arange(steps) if ids.size == 1 and steps > 1 else ids
    fits = rows.size in (steps, batch * steps) and rows.min(initial=0) >= 0 and rows.max(initial=0) < cache.shape[0]
    require(fits, f"position_ids must name {steps} of {cache.shape[0]} rows for each example")
    array = cache[rows.reshape(-1, steps)]
    call.plan.budget.spend_constant(array.shape, array.itemsize)
    return Value(call.name, array.shape, "f32", data=array)


def _angles_at_run_time(call: Call, cache: Array, ids: Value, wanted: Shape) -> Value:
    batch, steps, _ = wanted
    holds = ids.element in INDICES and ids.shape in ((batch, steps), (1,))
    require(holds, f"position_ids must be integers of {[batch, steps]}, but got {ids.element} of {list(ids.shape)}")
    if ids.shape == (1,) and steps > 1:
        after = constant_of(call, np.arange(steps).astype(NUMPY_DTYPES[ids.element]))
        ids = binary(call, [ids, after], ids.element, lambda s, x, y: s.op("arith.addi", x, y))
    rows = move_value(call.plan, call.name, ids, Reshaping((math.prod(ids.shape) // steps, steps)), None)
    return value_of_tensor(call, gathered(call.plan, call.name, Constant(cache), rows, 0))


def rotate(emitter: Emitter, value: ir.Value, cos: ir.Value, sin: ir.Value, is_interleaved: bool) -> ir.Value:
    """Of [B, N, S, D] ``x cos - y sin`` and ``x sin + y cos`` of the pairs (x, y).

    The numbers of a pair lie side by side where it `is_interleaved`, else half a row apart.
    """
    batch, heads, steps, width = shape_of(value.type)
    half = shape_of(cos.type)[3]
    rest = width - 2 * half
    outer = Slice(0, 1, batch), Slice(0, 1, heads), Slice(0, 1, steps)
    pairs = (Slice(0, 2, half), Slice(1, 2, half)) if is_interleaved else (Slice(0, 1, half), Slice(half, 1, half))
    x, y = (take_slices(emitter, value, (*outer, one)) for one in pairs)
    s = F32Builder(emitter, shape_of(x.type))
    first = s("subf", s("mulf", x, cos), s("mulf", y, sin))
    second = s("addf", s("mulf", x, sin), s("mulf", y, cos))
    joined = emitter.concatenate([first, second], 3)
    if is_interleaved:
        joined = gather(emitter, joined, 3, [i // 2 + i % 2 * half for i in range(2 * half)])
    if not rest:
        return joined
    return emitter.concatenate([joined, take_slices(emitter, value, (*outer, Slice(2 * half, 1, rest)))], 3)
