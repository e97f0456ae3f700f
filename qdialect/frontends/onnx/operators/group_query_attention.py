"""GroupQueryAttention of com.microsoft, in float32: several heads of the queries share one of the keys and values.

Caches and calls may hold more tokens than count, which `seqlens_k` tells, mostly when the network runs.  Their lengths
are known, and their sum is `total_sequence_length`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qdialect._mlir import ir
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.onnx.operators.attention import float_bias, softcap_of
from qdialect.frontends.onnx.operators.attention_cache import appended, cache_of, heads_of
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.onnx.operators.rotary import angles_at, positions_of, rotate
from qdialect.frontends.planning.attention import LOWEST, Attention, joined_heads, repeated_heads
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import Reshaping, gathered, move_value
from qdialect.frontends.planning.plain import Arithmetic, binary, constant_of, elementwise, unary, value_of_tensor
from qdialect.frontends.planning.tensors import Computed, Tensor, known_array
from qdialect.frontends.slices import Slice, take_slices

Change = Callable[[Emitter, ir.Value], ir.Value]
_OMITTED = {11: "head_sink", 12: "k_scale", 13: "v_scale", 14: "q_norm_weight", 15: "k_norm_weight"}
_DEFAULTS = ("smooth_softmax", "sliding_window_cache", "qk_output", "kv_cache_bit_width")


@imports("com.microsoft.GroupQueryAttention")
def _group_query_attention(call: Call) -> tuple[Tensor, ...]:
    """Of queries [B, S, N * D] and keys and values [B, S, M * D], which may stand behind the queries in input 0."""
    call.count(7, 16)
    _refuse(call)
    heads, key_heads = (_count(call, name) for name in ("num_heads", "kv_num_heads"))
    require(heads % key_heads == 0, f"kv_num_heads must divide {heads} heads, but got {key_heads}")
    query, *own = _rows(call, heads, key_heads)
    batch, steps, width = *query.shape[:2], query.shape[2] // heads
    cache = cache_of(call, 3, 4)
    earlier, total = cache.length, cache.length + steps
    is_causal, window_size = call.flag("causal", 1), int(call.attribute("local_window_size", -1))
    lengths = _Lengths.of(call, batch, steps, earlier)
    rotation = _rotation(call, (batch, steps, width), earlier, lengths)
    queries = heads_of(call, query, heads, _kept)
    keys, values = (heads_of(call, one, key_heads, _kept) for one in own)
    queries, keys = (_changed(call, one, rotation) for one in (queries, keys))
    join = appended if lengths is None else lengths.appended
    keys, values = join(call, cache.keys, keys), join(call, cache.values, values)
    scores = (batch, heads, steps, total)
    biases = [] if call.optional(10) is None else [float_bias(call, call.f32(10), 10, scores)]
    window = _window(window_size, steps, earlier) if lengths is None else None
    scale = call.attribute("scale", 0.0) or 1 / math.sqrt(width)
    how = Attention(scale, is_causal, softcap_of(call), earlier)
    seen = None if lengths is None else lengths.seen(call, scores, how, window_size)
    how = replace(how, is_causal=is_causal and seen is None)

    def emit(emitter: Emitter) -> Emitted:
        q = emitter.to_channels_first(queries)
        k, v = (repeated_heads(emitter, emitter.to_channels_first(one), heads // key_heads) for one in (keys, values))
        added = [one(emitter) for one in biases] + ([] if window is None else [emitter.constant(window)])
        counted = None if seen is None else emitter.to_channels_first(seen)
        return joined_heads(emitter, how.emit(emitter, q, k, v, added, counted)), False

    result = Computed(query.shape, call.plan.compute(call.name, query.shape, "f32", emit))
    return result, *(Computed(one.shape, one) for one in (keys, values))


def _refuse(call: Call) -> None:
    for index, name in _OMITTED.items():
        require(call.optional(index) is None, f"input {index}, {name}, must be omitted")
    call.ignore("qk_norm_epsilon")
    if not call.flag("do_rotary", 0):
        call.ignore("rotary_interleaved")
    for name in ("k_quant_type", "v_quant_type"):
        kind: str = call.attribute(name, "NONE")
        require(kind == "NONE", f"{name} must be NONE, but got {kind}")
    for name in _DEFAULTS:
        value = call.attribute(name, 0)
        require(value in (0, -1), f"{name} must be 0, but got {value}")


def _count(call: Call, name: str) -> int:
    count: int = call.attribute(name, 0)
    require(count >= 1, f"{name} must be at least 1, but got {count}")
    return count


def _rows(call: Call, heads: int, key_heads: int) -> list[Value]:
    """Queries, keys and values with the heads side by side."""
    sources = [call.f32(index) for index in range(3) if call.optional(index) is not None]
    require(len(sources) != 2, "inputs 1 and 2, keys and values, must both be given or omitted")
    for index, source in enumerate(sources):
        require(len(source.shape) == 3, f"input {index} must have 3 dimensions, but got {len(source.shape)}")
    shapes, counts = [source.shape for source in sources], (heads, key_heads, key_heads)
    entire = sum(shape[2] for shape in shapes)
    width = entire // sum(counts)
    wanted = [count * width for count in counts]
    holds = width * sum(counts) == entire and (len(shapes) == 1 or [shape[2] for shape in shapes] == wanted)
    require(
        holds,
        f"rows must have {heads} heads and twice {key_heads} of keys and values, but got {list(map(list, shapes))}",
    )
    require(len({shape[:2] for shape in shapes}) == 1, f"queries, keys and values must be as many, but got {shapes}")
    values = [source.f32(call.plan, call.name) for source in sources]
    if len(values) == 3:
        return values
    starts = (0, wanted[0], wanted[0] + wanted[1])
    return [_columns(call, values[0], *one) for one in zip(starts, wanted, strict=True)]


def _columns(call: Call, source: Value, start: int, count: int) -> Value:
    batch, steps, _ = source.shape
    slices = Slice(0, 1, batch), Slice(0, 1, steps), Slice(start, 1, count)

    def emit(emitter: Emitter) -> Emitted:
        return take_slices(emitter, emitter.to_channels_first(source), slices), False

    return call.plan.compute(call.name, (batch, steps, count), "f32", emit)


@dataclass(frozen=True)
class _Lengths:
    """Of each sequence, [B, 1]: how many tokens count, and how many of them are earlier ones.

    Those stand first in a cache, the call's own behind them, and zeros where nothing counts.
    """

    total: Value
    earlier: Value

    @classmethod
    def of(cls, call: Call, batch: int, steps: int, earlier: int) -> _Lengths | None:
        """From `seqlens_k`; None where all tokens of caches and call are known to count."""
        total = call.number(6)
        whole = earlier + steps
        require(total == whole, f"input 6, total_sequence_length, must be {whole} for these caches, but got {total:g}")
        known_lengths = known_array(call.tensor(5))
        if known_lengths is not None and bool((known_lengths == whole - 1).all()):
            return None
        last = value_of(call, 5)
        holds = last.element == "i32" and math.prod(last.shape) == batch
        require(holds, f"input 5, seqlens_k, must be {batch} entries of i32, but got {list(last.shape)}")
        column = move_value(call.plan, call.name, last, Reshaping((batch, 1)), None)
        counted = unary(call, column, "i32", lambda s, x: s.op("arith.addi", x, 1))
        if not earlier:
            return cls(counted, constant_of(call, np.zeros((batch, 1), np.int32)))
        return cls(counted, unary(call, column, "i32", lambda s, x: s.op("arith.subi", x, steps - 1)))

    def positions(self, call: Call, steps: int) -> Value:
        """Of the call's own tokens, [B, S]."""
        own = constant_of(call, np.arange(steps, dtype=np.int32))
        return binary(call, [self.earlier, own], "i32", lambda s, x, y: s.op("arith.addi", x, y))

    def appended(self, call: Call, cached: Value | None, own: Value) -> Value:
        """As `appended`, each of the call's tokens behind the earlier ones that count."""
        if cached is None:
            return own
        batch, heads, steps, width = own.shape
        length, rows = cached.shape[2], cached.shape[2] + steps + 1
        empty = constant_of(call, np.zeros((batch, heads, 1, width), np.float32))
        all_rows = appended(call, cached, appended(call, own, empty))
        places = constant_of(call, np.arange(length + steps, dtype=np.int32).reshape(1, 1, -1))
        first = constant_of(call, np.arange(batch * heads, dtype=np.int32).reshape(batch, heads, 1) * rows)
        earlier = move_value(call.plan, call.name, self.earlier, Reshaping((batch, 1, 1)), None)

        def row(s: Arithmetic, operands: Sequence[ir.Value]) -> ir.Value:
            place, start, before = operands
            beyond = s.op("arith.subi", place, before)
            own_or_empty = s.select(s.compare("lt", beyond, steps), s.op("arith.addi", beyond, length), rows - 1)
            return s.op("arith.addi", start, s.select(s.compare("lt", place, before), place, own_or_empty))

        indices = elementwise(call, [places, first, earlier], "i32", row)
        lines = move_value(call.plan, call.name, all_rows, Reshaping((batch * heads * rows, width)), None)
        found = gathered(call.plan, call.name, Computed(lines.shape, lines), indices, 0)
        return value_of_tensor(call, found)

    def seen(self, call: Call, scores: Shape, how: Attention, window: int) -> Value:
        """Which keys a query sees, [B, 1, S, L].

        A query of the padding stands where the last token does for ONNX Runtime's kernel of scores with a bound.
        """
        batch, _, steps, length = scores
        spread = [
            move_value(call.plan, call.name, one, Reshaping((batch, 1, 1, 1)), None)
            for one in (self.total, self.earlier)
        ]
        keys = constant_of(call, np.arange(length, dtype=np.int32).reshape(1, 1, 1, -1))
        queries = constant_of(call, np.arange(steps, dtype=np.int32).reshape(1, 1, -1, 1))

        def is_seen(s: Arithmetic, operands: Sequence[ir.Value]) -> ir.Value:
            total, earlier, key, query = operands
            position = s.op("arith.addi", earlier, query)
            if how.softcap:
                position = s.op("arith.minsi", position, s.op("arith.subi", total, 1))
            distance = s.op("arith.subi", position, key)
            seen = s.compare("lt", key, total)
            if how.is_causal:
                seen = s.op("arith.andi", seen, s.compare("ge", distance, 0))
            if window >= 0:
                seen = s.op("arith.andi", seen, s.compare("lt", distance, window))
            return seen

        return elementwise(call, [*spread, keys, queries], "i1", is_seen)


def _rotation(call: Call, shape: Shape, earlier: int, lengths: _Lengths | None) -> Change:
    """The rotary embedding of [B, N, S, D], where there is one."""
    batch, steps, width = shape
    if not call.flag("do_rotary", 0):
        return _kept
    half = call.constant(7).shape[-1]
    require(2 <= 2 * half <= width, f"input 7, cos_cache, must have at most {width // 2} columns, but got {half}")
    ids: Array | Value = np.arange(earlier, earlier + steps)
    if call.optional(9) is not None:
        ids = positions_of(call, 9)
    elif lengths is not None and earlier:
        ids = lengths.positions(call, steps)
    cos, sin = (angles_at(call, index, ids, (batch, steps, half)) for index in (7, 8))
    is_interleaved = call.flag("rotary_interleaved", 0)

    def rotation(emitter: Emitter, value: ir.Value) -> ir.Value:
        cosines, sines = (
            emitter.reshape(emitter.to_channels_first(one), (one.shape[0], 1, steps, half)) for one in (cos, sin)
        )
        return rotate(emitter, value, cosines, sines, is_interleaved)

    return rotation


def _kept(_: Emitter, value: ir.Value) -> ir.Value:
    return value


def _changed(call: Call, source: Value, change: Change) -> Value:
    def emit(emitter: Emitter) -> Emitted:
        return change(emitter, emitter.to_channels_first(source)), False

    return call.plan.compute(call.name, source.shape, "f32", emit)


def _window(size: int, steps: int, earlier: int) -> Array | None:
    """What keeps a query from keys that lie `size` or more before it, [S, L]."""
    require(size != 0, "local_window_size must not be 0")
    if size < 0:
        return None
    distances = np.arange(earlier, earlier + steps)[:, None] - np.arange(earlier + steps)
    return np.where(distances >= size, np.float32(LOWEST), np.float32(0))
