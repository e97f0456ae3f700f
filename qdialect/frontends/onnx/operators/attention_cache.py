"""Caches of attention: keys and values of earlier tokens stand before those of a call, and both are given to the next.

Caches are f32 of shape [B, N, P, K] for P earlier tokens; what a node gives has P and its own tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.frontends.planning.attention import split_heads
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import Computed, F32Tensor
from qdialect.frontends.slices import Slice, take_slices

Change = Callable[[Emitter, ir.Value], ir.Value]


@dataclass(frozen=True)
class Cache:
    """Keys and values of earlier tokens, None where there are none."""

    keys: Value | None = None
    values: Value | None = None

    @property
    def length(self) -> int:
        """How many tokens."""
        return 0 if self.keys is None else self.keys.shape[2]


def cache_of(call: Call, keys: int, values: int) -> Cache:
    """Inputs `keys` and `values`, of which none or both are given."""
    given = [index for index in (keys, values) if call.optional(index) is not None]
    require(len(given) != 1, f"inputs {keys} and {values}, the caches, must both be given or omitted")
    if not given:
        return Cache()
    tensors = [call.f32(index) for index in given]
    shapes = [list(tensor.shape) for tensor in tensors]
    holds = all(len(shape) == 4 for shape in shapes) and shapes[0][:3] == shapes[1][:3]
    require(holds, f"caches must have 4 dimensions and one length, but got {shapes[0]} and {shapes[1]}")
    return Cache(*(tensor.f32(call.plan, call.name) for tensor in tensors))


def stacked_cache_of(call: Call, index: int, wanted: Shape) -> Cache:
    """Input `index`, [2, B, N, P, K]: keys, then values; `wanted` are B, N and K."""
    if call.optional(index) is None:
        return Cache()
    tensor = call.f32(index)
    batch, heads, width = wanted
    holds = len(tensor.shape) == 5 and tensor.shape[:3] == (2, batch, heads) and tensor.shape[4] == width
    require(holds, f"input {index} must have the shape {[2, batch, heads, 'P', width]}, but got {list(tensor.shape)}")
    source = tensor.f32(call.plan, call.name)

    def half(which: int) -> Value:
        def emit(emitter: Emitter) -> Emitted:
            rows = (Slice(which, 1, 1), *(Slice(0, 1, extent) for extent in tensor.shape[1:]))
            return emitter.reshape(
                take_slices(emitter, emitter.to_channels_first(source), rows), tensor.shape[1:]
            ), False

        return call.plan.compute(call.name, tensor.shape[1:], "f32", emit)

    return Cache(half(0), half(1))


def stacked(call: Call, keys: Value, values: Value) -> F32Tensor:
    """[2, B, N, P, K] of both."""
    shape = (2, *keys.shape)

    def emit(emitter: Emitter) -> Emitted:
        parts = [emitter.reshape(emitter.to_channels_first(one), (1, *keys.shape)) for one in (keys, values)]
        return emitter.concatenate(parts, 0), False

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


def heads_of(call: Call, source: Value, heads: int, change: Change, width: int | None = None) -> Value:
    """A tensor [B, L, N * K] or [B, N, L, K], changed, as [B, N, L, K]; `width` is N * K where the change alters it."""
    shape = (*source.shape[:-1], width or source.shape[-1])
    after = shape if len(shape) == 4 else (shape[0], heads, shape[1], shape[2] // heads)

    def emit(emitter: Emitter) -> Emitted:
        value = change(emitter, emitter.to_channels_first(source))
        return value if len(shape) == 4 else split_heads(emitter, value, heads), False

    return call.plan.compute(call.name, after, "f32", emit)


def appended(call: Call, cached: Value | None, own: Value) -> Value:
    """The cache [B, N, P, K] with what a call brings, [B, N, L, K], behind it."""
    if cached is None:
        return own
    wanted = (*own.shape[:2], cached.shape[2], own.shape[3])
    require(cached.shape == wanted, f"cache must have the shape {list(wanted)}, but got {list(cached.shape)}")
    shape = (*own.shape[:2], cached.shape[2] + own.shape[2], own.shape[3])

    def emit(emitter: Emitter) -> Emitted:
        return emitter.concatenate([emitter.to_channels_first(one) for one in (cached, own)], 2), False

    return call.plan.compute(call.name, shape, "f32", emit)
