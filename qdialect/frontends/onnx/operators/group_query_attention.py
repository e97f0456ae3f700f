"""GroupQueryAttention of com.microsoft in float32, and RotaryEmbedding, which it holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES, shape_of
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.building.slices import Slice, gather, take_slices
from qdialect.frontends.onnx.operators import attention
from qdialect.frontends.onnx.operators.attention import Change, Emit, appended, heads_of, kept, rows_at, scale_of
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.planning import elementwise
from qdialect.frontends.planning.attention import LOWEST, Attention, joined_heads, repeated_heads, split_heads
from qdialect.frontends.planning.elementwise import Arithmetic, binary, constant_of, converted, ternary, unary
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.indexing import INDICES
from qdialect.frontends.planning.movement import Slicing, gathered
from qdialect.frontends.planning.tensors import Computed, Constant, Tensor, known_array
from qdialect.ir._mlir import ir

# Caches and calls may hold more tokens than count, which `seqlens_k` tells, mostly when the network runs.  Their
# lengths are known, and their sum is `total_sequence_length`.

_OMITTED = {14: "q_norm_weight", 15: "k_norm_weight"}


@imports("com.microsoft.GroupQueryAttention")
def _group_query_attention(call: Call) -> tuple[Tensor, ...]:
    """Of queries [B, S, N * D] and keys and values [B, S, M * D], which may stand behind the queries in input 0."""
    call.count(7, 16)
    _refuse(call)
    heads, key_heads = (attention.heads_count(call, name) for name in ("num_heads", "kv_num_heads"))
    require(heads % key_heads == 0, f"kv_num_heads must divide {heads} heads, but got {key_heads}")
    query, *own = _rows(call, heads, key_heads)
    batch, steps, width = *query.shape[:2], query.shape[2] // heads
    scales = [attention.cache_scales(call, name, index, key_heads, width) for name, index in (("k", 12), ("v", 13))]
    bits = attention.cache_bits(call, width)
    cache = attention.cache_of(call, 3, 4, attention.CACHE_ELEMENTS[bits])
    earlier, is_windowed = cache.length, call.flag("sliding_window_cache", 0)
    total = None if is_windowed else _total(call, earlier, steps)
    length = earlier + steps if is_windowed else max(earlier, total or earlier)
    is_causal, window_size = call.flag("causal", 1), int(call.attribute("local_window_size", -1))
    if is_windowed:
        lengths = _windowed(call, batch, steps, earlier, window_size)
    else:
        lengths = _Lengths.of(call, batch, steps, earlier, total)
    rotation = _rotation(call, (batch, steps, width), earlier, lengths)
    queries = heads_of(call, query, heads, kept)
    keys, values = (heads_of(call, one, key_heads, kept) for one in own)
    queries, keys = (
        call.plan.ordered(call.name, one.shape, "f32", [one], lambda emitter, held: rotation(emitter, held[0]))
        for one in (queries, keys)
    )
    join = appended if lengths is None else lengths.appended
    whole = [
        join(call, cached, attention.in_few_bits(call, own, scale, bits))
        for cached, own, scale in zip((cache.keys, cache.values), (keys, values), scales, strict=True)
    ]
    keys, values = (attention.as_numbers(call, *pair, bits) for pair in zip(whole, scales, strict=True))
    if isinstance(lengths, _Window):
        whole = [lengths.kept(call, one) for one in whole]
    scores = (batch, heads, steps, length)
    biases = [*_bias(call, scores, total), *([] if is_windowed else _checks(call, length, total))]
    window = _window(window_size, steps, earlier) if lengths is None else None
    how = Attention(scale_of(call, width), is_causal, attention.softcap_of(call), earlier)
    seen = None if lengths is None else lengths.seen(call, scores, how, window_size)
    how = replace(how, is_causal=is_causal and seen is None)
    sink = _sink(call, heads)

    def emit(emitter: Emitter) -> Emitted:
        q = emitter.to_channels_first(queries)
        k, v = (repeated_heads(emitter, emitter.to_channels_first(one), heads // key_heads) for one in (keys, values))
        added = [one(emitter) for one in biases] + ([] if window is None else [emitter.constant(window)])
        counted = None if seen is None else emitter.to_channels_first(seen)
        sinks = None if sink is None else emitter.reshape(emitter.to_channels_first(sink), (1, heads, 1, 1))
        return joined_heads(emitter, how.emit(emitter, q, k, v, added, counted, sinks)), False

    result = Computed(query.shape, call.plan.compute(call.name, query.shape, "f32", emit))
    return result, *(Computed(one.shape, one) if one.element == "f32" else elementwise.tensor_of(one) for one in whole)


def _refuse(call: Call) -> None:
    for index, name in _OMITTED.items():
        wanted = f"input {index}, {name}, must be omitted, as ONNX Runtime's CPU kernel asks"
        require(call.optional(index) is None, wanted)
    call.ignore("qk_norm_epsilon")
    if not call.flag("do_rotary", 0):
        call.ignore("rotary_interleaved")
    kinds: list[str] = [call.attribute(name, "NONE") for name in ("k_quant_type", "v_quant_type")]
    holds = (kinds[0] == "NONE") == (kinds[1] == "NONE")
    require(holds, f"k_quant_type and v_quant_type must both be NONE or none of them, but got {' and '.join(kinds)}")
    output: int = call.attribute("qk_output", 0)
    require(output in (0, -1), f"qk_output must be 0, but got {output}")


def _sink(call: Call, heads: int) -> Value | None:
    """One more score of each head, of no key: input 11, or 0 for a smooth softmax."""
    if call.optional(11) is None:
        smooth: int = call.attribute("smooth_softmax", 0)
        return constant_of(call, np.zeros(heads, np.float32)) if smooth > 0 else None
    call.ignore("smooth_softmax")
    sink = call.f32(11)
    require(sink.shape == (heads,), f"input 11, head_sink, must have the shape [{heads}], but got {list(sink.shape)}")
    return sink.f32(call.plan, call.name)


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
    rows = [Slice(0, 1, extent) for extent in source.shape[:2]]
    return call.moved(source, Slicing.of([*rows, Slice(start, 1, count)]))


def _total(call: Call, earlier: int, steps: int) -> int | None:
    """The tokens of the longest sequence; a cache that is longer holds the call's own as well.

    None where they are known at run time only, of caches that the model declares to be as long as those it gives.
    """
    if known_array(call.tensor(6)) is None:
        grown = call.declared.get(next(iter(call.node.outputs[1:]), ""), ())[2:3]
        if not earlier or grown == (earlier + steps,):
            return earlier + steps
        wanted = f"input 6, total_sequence_length, must be constant where output 1 is not declared to be {earlier} long"
        require(grown == (earlier,), wanted)
        # A bias has a column for each token.
        return None if call.optional(10) is None else call.f32(10).shape[-1]
    total = int(call.number(6))
    holds = total == earlier + steps or steps <= total <= earlier
    wanted = f"{earlier + steps} or, for caches that hold the call's tokens too, at most {earlier}"
    require(holds, f"input 6, total_sequence_length, must be {wanted}, but got {total}")
    return total


def _checks(call: Call, length: int, total: int | None) -> list[Emit]:
    """The addend of the scores: NaN where a total that is known at run time does not fit caches of `length`, else 0.

    ONNX Runtime refuses most of them, and gives longer caches for others.
    """
    if known_array(call.tensor(6)) is not None:
        return []

    def number(s: Arithmetic, found: ir.Value) -> ir.Value:
        holds = s.compare("le", found, length) if total is None else s.compare("eq", found, total)
        return s.select(holds, converted(s, s.op("arith.subi", found, found), "i32", "f32"), math.nan)

    totals = value_of(call, 6)
    require(totals.element == "i32", f"input 6, total_sequence_length, must be i32, but got {totals.element}")
    require(math.prod(totals.shape) == 1, f"input 6, total_sequence_length, must have 1 entry, but got {totals.shape}")
    found = unary(call, call.shaped(totals, (1,) * 4), "f32", number)
    return [lambda emitter: emitter.to_channels_first(found)]


def _bias(call: Call, scores: Shape, total: int | None) -> list[Emit]:
    """Input 10, which has a column for each token, with zeros for what else caches hold."""
    if call.optional(10) is None:
        return []
    bias, length = call.f32(10), scores[3]
    require(bias.shape[-1:] == (total,), f"input 10 must have {total} columns, but got the shape {list(bias.shape)}")
    if total != length:
        rest = constant_of(call, np.zeros((*bias.shape[:-1], length - bias.shape[-1]), np.float32))
        held = [bias.f32(call.plan, call.name), rest]
        shape = (*bias.shape[:-1], length)
        joined = call.plan.ordered(call.name, shape, "f32", held, lambda emitter, own: emitter.concatenate(own, 3))
        bias = Computed(shape, joined)
    return [attention.float_bias(call, bias, 10, scores)]


@dataclass(frozen=True)
class _Lengths:
    """Of each sequence, [B, 1]: how many tokens count, and how many of them are earlier ones, if there may be any.

    Those stand first in a cache, the call's own behind them, and zeros where nothing counts.
    """

    total: Value
    earlier: Value | None
    length: int
    """Of caches that are given to the next call."""

    @classmethod
    def of(cls, call: Call, batch: int, steps: int, earlier: int, total: int | None) -> _Lengths | None:
        """From `seqlens_k`; None where all tokens of caches and call are known to count."""
        whole = earlier + steps
        known_lengths = known_array(call.tensor(5))
        if total == whole and known_lengths is not None and bool((known_lengths == whole - 1).all()):
            return None
        last = value_of(call, 5)
        holds = last.element == "i32" and math.prod(last.shape) == batch
        require(holds, f"input 5, seqlens_k, must be {batch} entries of i32, but got {list(last.shape)}")
        column = call.shaped(last, (batch, 1))
        counted, length = unary(call, column, "i32", lambda s, x: s.op("arith.addi", x, 1)), max(earlier, total or 0)
        if total == steps:
            return cls(counted, None, length)

        def before(s: Arithmetic, x: ir.Value) -> ir.Value:
            # Sequences of a first prompt may be shorter than it.
            return s.op("arith.maxsi", s.op("arith.subi", x, steps - 1), 0)

        return cls(counted, unary(call, column, "i32", before), length)

    def positions(self, call: Call, steps: int) -> Array | Value:
        """Of the call's own tokens, [B, S]."""
        own = np.arange(steps, dtype=np.int32)
        if self.earlier is None:
            return own
        return binary(call, [self.earlier, constant_of(call, own)], "i32", lambda s, x, y: s.op("arith.addi", x, y))

    def appended(self, call: Call, cached: Value | None, own: Value) -> Value:
        """As `appended`, each of the call's tokens behind the earlier ones that count."""
        batch, _, steps, _ = own.shape
        if self.earlier is None or cached is None:
            return self._extended(call, own)
        places = constant_of(call, np.arange(self.length, dtype=np.int32).reshape(1, 1, -1, 1))
        earlier = call.shaped(self.earlier, (batch, 1, 1, 1))
        row = binary(call, [places, earlier], "i32", lambda s, x, y: s.op("arith.subi", x, y))
        is_earlier = unary(call, row, "i1", lambda s, x: s.compare("lt", x, 0))
        is_own = unary(call, row, "i1", lambda s, x: s.compare("lt", x, steps))
        sources = [self._extended(call, cached), rows_at(call, own, row)]

        def chosen(s: Arithmetic, first: ir.Value, second: ir.Value, before: ir.Value, after: ir.Value) -> ir.Value:
            return s.select(first, before, s.select(second, after, 0.0 if own.element == "f32" else 0))

        return elementwise.elementwise(call, [is_earlier, is_own, *sources], own.element, chosen)

    def _extended(self, call: Call, rows: Value) -> Value:
        """Zeros behind [B, N, S, D]."""
        batch, heads, steps, width = rows.shape
        if steps == self.length:
            return rows
        zeros = np.zeros((batch, heads, self.length - steps, width), NUMPY_DTYPES[rows.element])
        return appended(call, rows, constant_of(call, zeros))

    def seen(self, call: Call, scores: Shape, how: Attention, window: int) -> Value:
        """Which keys a query sees, [B, 1, S, L].

        A query of the padding stands where the last token does for ONNX Runtime's kernel of scores with bound or bias.
        """
        batch, _, steps, length = scores
        before = self.earlier or constant_of(call, np.zeros((batch, 1), np.int32))
        spread = [call.shaped(one, (batch, 1, 1, 1)) for one in (self.total, before)]
        keys = constant_of(call, np.arange(length, dtype=np.int32).reshape(1, 1, 1, -1))
        queries = constant_of(call, np.arange(steps, dtype=np.int32).reshape(1, 1, -1, 1))

        def is_seen(s: Arithmetic, total: ir.Value, earlier: ir.Value, key: ir.Value, query: ir.Value) -> ir.Value:
            position = s.op("arith.addi", earlier, query)
            if how.softcap or call.optional(10) is not None:
                position = s.op("arith.minsi", position, s.op("arith.subi", total, 1))
            distance = s.op("arith.subi", position, key)
            seen = s.compare("lt", key, total)
            if how.is_causal:
                seen = s.op("arith.andi", seen, s.compare("ge", distance, 0))
            if window >= 0:
                seen = s.op("arith.andi", seen, s.compare("lt", distance, window))
            return seen

        return elementwise.elementwise(call, [*spread, keys, queries], "i1", is_seen)


def _windowed(call: Call, batch: int, steps: int, length: int, size: int) -> _Window:
    """The lengths of calls whose caches hold `length` tokens, those of a window of `size` among them."""
    holds = 0 < size <= length and call.flag("causal", 1)
    require(holds, f"caches of a window must be causal and hold its {size} tokens, but got {length}")
    require(call.optional(10) is None, "input 10, attention_bias, must be omitted where caches are those of a window")
    found = _Lengths.of(call, batch, steps, length, None)
    assert found is not None, "the total is not known"
    return _Window(found.total, found.earlier, length)


@dataclass(frozen=True)
class _Window(_Lengths):
    """Caches begin with the last `_resident` tokens that count.

    Queries read them before the call's own tokens, all of which follow; the next call gets the latest of both.
    """

    def appended(self, call: Call, cached: Value | None, own: Value) -> Value:
        return appended(call, cached, own)

    def kept(self, call: Call, rows: Value) -> Value:
        """The rows of `appended` that are given to the next call."""
        batch, length = rows.shape[0], self.length
        places = constant_of(call, np.arange(length, dtype=np.int32).reshape(1, 1, -1, 1))

        def row(s: Arithmetic, *operands: ir.Value) -> ir.Value:
            place, total, held, earlier, held_before = operands
            position = s.op("arith.addi", s.op("arith.subi", total, held), place)
            beyond = s.op("arith.subi", position, earlier)
            in_cache = s.op("arith.addi", beyond, held_before)
            return s.select(s.compare("lt", beyond, 0), in_cache, s.op("arith.addi", beyond, length))

        return rows_at(call, rows, elementwise.elementwise(call, [places, *self._spread(call, batch)], "i32", row))

    def seen(self, call: Call, scores: Shape, how: Attention, window: int) -> Value:
        batch, _, steps, length = scores
        columns = constant_of(call, np.arange(length, dtype=np.int32).reshape(1, 1, 1, -1))
        queries = constant_of(call, np.arange(steps, dtype=np.int32).reshape(1, 1, -1, 1))

        def is_seen(s: Arithmetic, *operands: ir.Value) -> ir.Value:
            column, query, total, _, earlier, held = operands
            # Of a token in the cache, and of one of the call.
            before = s.op("arith.addi", s.op("arith.subi", earlier, held), column)
            own = s.op("arith.addi", earlier, s.op("arith.subi", column, self.length))
            is_own = s.compare("ge", column, self.length)
            key = s.select(is_own, own, before)
            position = s.op("arith.addi", earlier, query)
            if how.softcap:
                position = s.op("arith.minsi", position, s.op("arith.subi", total, 1))
            distance = s.op("arith.subi", position, key)
            counts = s.op("arith.ori", is_own, s.compare("lt", column, held))
            near = s.op("arith.andi", s.compare("ge", distance, 0), s.compare("lt", distance, window))
            return s.op("arith.andi", s.op("arith.andi", counts, near), s.compare("lt", key, total))

        return elementwise.elementwise(call, [columns, queries, *self._spread(call, batch)], "i1", is_seen)

    def _spread(self, call: Call, batch: int) -> list[Value]:
        """[B, 1, 1, 1]: all tokens, how many of them caches hold, and the same of the earlier ones."""
        assert self.earlier is not None
        counts = [self.total, self._resident(call, self.total), self.earlier, self._resident(call, self.earlier)]
        return [call.shaped(one, (batch, 1, 1, 1)) for one in counts]

    def _resident(self, call: Call, tokens: Value) -> Value:
        """How many of the last `tokens` a cache holds: so many leave it at once that those of the window stay."""
        evicted = self.length - int(call.attribute("local_window_size", -1)) + 1

        def count(s: Arithmetic, found: ir.Value) -> ir.Value:
            more = s.op("arith.maxsi", s.op("arith.subi", found, self.length - evicted + 1), 0)
            return s.op("arith.subi", found, s.op("arith.muli", s.op("arith.divsi", more, evicted), evicted))

        return unary(call, tokens, "i32", count)


def _rotation(call: Call, shape: Shape, earlier: int, lengths: _Lengths | None) -> Change:
    """The rotary embedding of [B, N, S, D], where there is one."""
    batch, steps, width = shape
    if not call.flag("do_rotary", 0):
        return kept
    half = call.constant(7).shape[-1]
    require(2 <= 2 * half <= width, f"input 7, cos_cache, must have at most {width // 2} columns, but got {half}")
    ids: Array | Value = np.arange(earlier, earlier + steps)
    if call.optional(9) is not None:
        ids = _given_positions(call, (batch, steps))
    elif lengths is not None:
        ids = lengths.positions(call, steps)
    cos, sin = (angles_at(call, index, ids, (batch, steps, half)) for index in (7, 8))
    is_interleaved = call.flag("rotary_interleaved", 0)

    def rotation(emitter: Emitter, value: ir.Value) -> ir.Value:
        cosines, sines = (
            emitter.reshape(emitter.to_channels_first(one), (one.shape[0], 1, steps, half)) for one in (cos, sin)
        )
        return rotate(emitter, value, cosines, sines, is_interleaved)

    return rotation


def _given_positions(call: Call, shape: Shape) -> Array | Value:
    """Input 9, but of a first prompt consecutive ones from the first of all, the only one that ONNX Runtime reads."""
    ids, total = positions_of(call, 9), known_array(call.tensor(6))
    if total is not None and int(call.number(6)) != shape[1]:
        return ids
    given = value_of(call, 9)
    require(given.shape == shape, f"input 9, position_ids, must be {list(shape)}, but got {list(given.shape)}")
    first = call.moved(given, Slicing.of((Slice(0, 1, 1), Slice(0, 1, 1))))
    if total is not None:
        only = call.shaped(first, (1,))
        return only if only.data is None else only.data
    after = constant_of(call, np.arange(shape[1]).astype(NUMPY_DTYPES[first.element]))
    own = binary(call, [first, after], first.element, lambda s, x, y: s.op("arith.addi", x, y))
    totals = call.shaped(value_of(call, 6), (1, 1))
    is_first = unary(call, totals, "i1", lambda s, x: s.compare("eq", x, shape[1]))
    return ternary(call, [is_first, own, given], first.element, lambda s, x, y, z: s.select(x, y, z))


def _window(size: int, steps: int, earlier: int) -> Array | None:
    """The mask that keeps a query from keys `size` or more before it, [S, L]."""
    require(size != 0, "local_window_size must not be 0")
    if size < 0:
        return None
    distances = np.arange(earlier, earlier + steps)[:, None] - np.arange(earlier + steps)
    return np.where(distances >= size, np.float32(LOWEST), np.float32(0))


# RotaryEmbedding of ONNX and of com.microsoft: pairs of numbers of each head, rotated by their position.


@imports("com.microsoft.RotaryEmbedding")
def _contributed(call: Call) -> Tensor:
    call.count(4)
    require(call.attribute("scale", 1.0) == 1.0, "scale must be 1")
    require(call.attribute("is_packed_batching", 0) == 0, "is_packed_batching must be 0")
    return _rotated(call, 2, 3, 1)


@imports("RotaryEmbedding")
def _standard(call: Call) -> Tensor:
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
    rows = call.shaped(ids, (math.prod(ids.shape) // steps, steps))
    return elementwise.value_of_tensor(call, gathered(call.plan, call.name, Constant(cache), rows, 0))


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
    s = emitter.f32
    first = s("subf", s("mulf", x, cos), s("mulf", y, sin))
    second = s("addf", s("mulf", x, sin), s("mulf", y, cos))
    joined = emitter.concatenate([first, second], 3)
    if is_interleaved:
        joined = gather(emitter, joined, 3, [i // 2 + i % 2 * half for i in range(2 * half)])
    if not rest:
        return joined
    return emitter.concatenate([joined, take_slices(emitter, value, (*outer, Slice(2 * half, 1, rest)))], 3)
