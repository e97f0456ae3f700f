"""Attention of ONNX and of com.microsoft, in float32.

Products with constant quantized weights are those of integers, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, require
from qdialect.frontends.building.slices import Slice, take_slices
from qdialect.frontends.onnx.model import F32
from qdialect.frontends.onnx.operators.matmul import product_of
from qdialect.frontends.onnx.operators.quantization import dequantized
from qdialect.frontends.onnx.operators.registry import Call, Quantized, imports, value_of
from qdialect.frontends.planning import elementwise
from qdialect.frontends.planning.attention import Attention, Stage, joined_heads, repeated_heads, split_heads
from qdialect.frontends.planning.elementwise import Arithmetic, binary, constant_of, converted
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import Slicing, gathered
from qdialect.frontends.planning.tensors import Computed, Constant, F32Tensor, Tensor, known, product
from qdialect.ir._mlir import ir

Emit = Callable[[Emitter], ir.Value]
_FILTER = -10000.0


@imports("com.microsoft.Attention")
def _attention(call: Call) -> tuple[Tensor, ...]:
    """Of one input, whose queries, keys and values are one product."""
    call.count(2, 7)
    _refuse(call, {6: "past_sequence_length"})
    data, weights = call.f32(0), call.tensor(1)
    if isinstance(data, Quantized) and isinstance(weights, Quantized):
        return _self_attention(call, product_of(data, weights), mask=3, past=4, bias=5)
    matrix = call.constant(1)
    holds = matrix.dtype == np.float32 and matrix.ndim == 2 and data.shape[-1:] == matrix.shape[:1]
    require(holds, f"weights must be an f32 matrix of {list(data.shape[-1:])} rows, but got {list(matrix.shape)}")
    return _self_attention(call, product(data, matrix), mask=3, past=4, bias=5)


@imports("com.microsoft.QAttention")
def _qattention(call: Call) -> tuple[Tensor, ...]:
    """The same with quantized input and weights."""
    call.count(5, 9)
    _refuse(call, {})
    groups = [replace(call, inputs=tuple(map(call.optional, indices))) for indices in ((0, 3, 6), (1, 4, 7))]
    data, weights = (dequantized(one, 0, 1, -1) for one in groups)
    return _self_attention(call, product_of(data, weights), mask=5, past=8, bias=9)


def _refuse(call: Call, caches: Mapping[int, str]) -> None:
    for index, name in caches.items():
        require(call.optional(index) is None, f"input {index}, {name}, must be omitted")
    call.ignore("rotary_embedding_dim", "mask_filter_value", "qk_matmul_output_mode")
    for name in ("do_rotary", "past_present_share_buffer"):
        require(not call.flag(name, 0), f"{name} must be 0")


def _self_attention(call: Call, projection: F32Tensor, mask: int, past: int, bias: int) -> tuple[Tensor, ...]:
    """Of the products [B, S, Q + K + V], to which input 2 is added; `past` is the index of the cache."""
    require(len(projection.shape) == 3, f"input must have 3 dimensions, but got {len(projection.shape)}")
    batch, steps, width = projection.shape
    heads = heads_count(call, "num_heads")
    sizes: Sequence[int] = call.attribute("qkv_hidden_sizes", list[int]()) or [width // 3] * 3
    holds = len(sizes) == 3 and sum(sizes) == width and all(size >= 1 and size % heads == 0 for size in sizes)
    require(
        holds and sizes[0] == sizes[1], f"{heads} heads must divide queries, keys and values, but got {list(sizes)}"
    )
    cache = stacked_cache_of(call, past, (batch, heads, sizes[1] // heads))
    is_cached = cache.length > 0 or any(call.node.outputs[1:])
    require(not is_cached or sizes[1] == sizes[2], f"keys and values of a cache must be alike, but got {list(sizes)}")
    biases = _biases(call, mask, bias, (batch, heads, steps, cache.length + steps))
    source = projection.f32(call.plan, call.name)
    added = _added(call, 2, width)

    def part(index: int) -> Value:
        rows = Slice(0, 1, batch), Slice(0, 1, steps), Slice(sum(sizes[:index]), 1, sizes[index])
        return heads_of(call, total, heads, lambda emitter, value: take_slices(emitter, value, rows), sizes[index])

    total = call.plan.compute(
        call.name,
        (batch, steps, width),
        "f32",
        lambda emitter: (added(emitter, emitter.to_channels_first(source)), False),
    )
    query, key, value = map(part, range(3))
    key, value = appended(call, cache.keys, key), appended(call, cache.values, value)
    is_causal = call.flag("unidirectional", 0)
    how = Attention(scale_of(call, sizes[0] // heads), is_causal, earlier=cache.length)

    def emit(emitter: Emitter) -> Emitted:
        q, k, v = (emitter.to_channels_first(one) for one in (query, key, value))
        return joined_heads(emitter, how.emit(emitter, q, k, v, [one(emitter) for one in biases])), False

    shape = (batch, steps, sizes[2])
    result = Computed(shape, call.plan.compute(call.name, shape, "f32", emit))
    return (result, stacked(call, key, value)) if is_cached else (result,)


def heads_count(call: Call, name: str) -> int:
    """An attribute that counts heads."""
    heads: int = call.attribute(name, 0)
    require(heads >= 1, f"{name} must be at least 1, but got {heads}")
    return heads


def softcap_of(call: Call) -> float:
    """The bound of the scores, 0 where there is none."""
    softcap: float = call.attribute("softcap", 0.0)
    require(softcap >= 0, f"softcap must be at least 0, but got {softcap}")
    return softcap


def scale_of(call: Call, width: int) -> float:
    """The attribute, or 1 / sqrt(width) where it is absent or 0."""
    return call.attribute("scale", 0.0) or 1 / math.sqrt(width)


def _added(call: Call, index: int, width: int) -> Callable[[Emitter, ir.Value], ir.Value]:
    """Adds input `index`, [width], where it is given."""
    if call.optional(index) is None:
        return lambda _, value: value
    tensor = call.f32(index)
    require(tensor.shape == (width,), f"input {index} must have the shape [{width}], but got {list(tensor.shape)}")
    bias = tensor.f32(call.plan, call.name)
    return lambda emitter, value: emitter.f32("addf", value, emitter.to_channels_first(bias))


def _biases(call: Call, mask: int, bias: int, scores: Shape) -> list[Emit]:
    """The addend of the scores [B, N, S, L]: for a mask of integers, and a bias of floats."""
    found: list[Emit] = []
    if call.optional(mask) is not None:
        found.append(_mask_bias(call, mask, scores))
    if call.optional(bias) is not None:
        found.append(float_bias(call, call.f32(bias), bias, scores))
    return found


def float_bias(call: Call, tensor: F32Tensor, index: int, scores: Shape) -> Emit:
    """The addend of `scores`: input `index`, which is `tensor`; raises `UnsupportedError` for another shape."""
    holds = elementwise.broadcast_shape(tensor.shape, scores) == scores
    require(holds, f"input {index} must broadcast to {list(scores)}, but got {list(tensor.shape)}")
    value = tensor.f32(call.plan, call.name)
    return lambda emitter: emitter.to_channels_first(value)


def _mask_bias(call: Call, index: int, scores: Shape) -> Emit:
    """Lengths [B], or what counts by 1 and else 0: [B, L] or [B, S, L]; what does not count adds the filter's value."""
    batch, _, steps, length = scores
    tensor = call.tensor(index)
    value = known(call.name, tensor.array) if isinstance(tensor, Constant) else tensor
    if not isinstance(value, Value) or value.element != "i32":
        raise UnsupportedError(f"input {index}, the mask, must be i32")
    known_shapes: dict[Shape, Shape] = {
        (batch,): (batch, 1, 1, 1),
        (batch, length): (batch, 1, 1, length),
        (batch, steps, length): (batch, 1, steps, length),
    }
    holds = value.shape in known_shapes
    wanted = " or ".join(str(list(shape)) for shape in known_shapes)
    require(holds, f"input {index}, the mask, must have the shape {wanted}, but got {list(value.shape)}")
    spread, amount = known_shapes[value.shape], call.attribute("mask_filter_value", _FILTER)

    def emit(emitter: Emitter) -> ir.Value:
        numbers = emitter.convert("arith.sitofp", emitter.reshape(emitter.to_channels_first(value), spread), "f32")
        if len(value.shape) > 1:
            s = emitter.f32
            return s("mulf", s("subf", 1.0, numbers), amount)
        # 1 from the end of each row on.
        s, positions = emitter.f32, np.arange(1, length + 1, dtype=np.float32)
        beyond = s("subf", emitter.constant(positions), numbers)
        return s("mulf", s("minimumf", s("maximumf", beyond, 0.0), 1.0), amount)

    return emit


@imports("com.microsoft.MultiHeadAttention")
def _multi_head_attention(call: Call) -> tuple[Tensor, ...]:
    """Of queries [B, S, N * K] and keys and values [B, L, N * K], or [B, N, L, K] as they are."""
    call.count(3, 10)
    _refuse(call, {8: "past_sequence_length", 9: "cache_indirection"})
    cache = cache_of(call, 6, 7)
    heads = heads_count(call, "num_heads")
    shapes = [call.f32(index).shape for index in range(3)]
    require(len(shapes[0]) == 3, f"input 0 must have 3 dimensions, but got {len(shapes[0])}")
    widths = [_width(shape, heads, index) for index, shape in enumerate(shapes)]
    _check_rows(shapes, heads)
    scores = (shapes[0][0], heads, shapes[0][1], cache.length + _length(shapes[1]))
    is_causal, own = call.flag("unidirectional", 0), _length(shapes[1])
    # ONNX Runtime's kernels place the queries among other numbers of keys in several ways.
    holds = not is_causal or shapes[0][1] == own
    require(holds, f"unidirectional must be 0 where {shapes[0][1]} queries have {own} keys")
    how = Attention(scale_of(call, widths[0] // heads), is_causal, earlier=cache.length)
    parts = _with_biases(call, widths) if call.optional(3) is not None else [kept] * 3
    # Keys and values that are split into heads have their biases by then.
    parts = [part if len(shape) == 3 else kept for part, shape in zip(parts, shapes, strict=True)]
    return _attended(call, how, (heads,) * 3, parts, _biases(call, 4, 5, scores), cache, stage=Stage.MASKED)


def kept(_: Emitter, value: ir.Value) -> ir.Value:
    """`value`, unchanged."""
    return value


def _width(shape: Shape, heads: int, index: int) -> int:
    """All heads of a row, of a tensor whose heads lie side by side or in a dimension of their own."""
    require(len(shape) in (3, 4), f"input {index} must have 3 or 4 dimensions, but got {len(shape)}")
    width = shape[2] if len(shape) == 3 else shape[1] * shape[3]
    fits = width % heads == 0 if len(shape) == 3 else shape[1] == heads
    require(fits, f"input {index} must have {heads} heads, but has the shape {list(shape)}")
    return width


def _length(shape: Shape) -> int:
    return shape[1] if len(shape) == 3 else shape[2]


def _check_rows(shapes: Sequence[Shape], heads: int) -> None:
    query, key, value = shapes
    require(len({shape[0] for shape in shapes}) == 1, f"inputs must have one batch, but got {query[0]} and {key[0]}")
    holds = _length(key) == _length(value) and _width(query, heads, 0) == _width(key, heads, 1)
    require(holds, f"keys and values must fit the queries, but got {list(query)}, {list(key)} and {list(value)}")


def _with_biases(call: Call, widths: Sequence[int]) -> list[Callable[[Emitter, ir.Value], ir.Value]]:
    """Adds to queries, keys and values their parts of input 3."""
    array = call.constant(3)
    holds = array.dtype == np.float32 and array.shape == (sum(widths),)
    require(holds, f"input 3 must be {sum(widths)} entries of f32, but got {list(array.shape)} of {array.dtype}")
    return [
        lambda emitter, value, part=part: emitter.f32("addf", value, emitter.constant(part))
        for part in np.split(array, np.cumsum(widths)[:2])
    ]


@imports("Attention")
def _standard_attention(call: Call) -> tuple[Tensor, ...]:
    """Of queries, keys and values with three dimensions, the heads side by side, or four.

    Several heads of the queries may share one of the keys and values.
    """
    precision: int = call.attribute("softmax_precision", F32)
    require(precision == F32, f"softmax_precision must be {F32}, that of f32, but got {precision}")
    cache = cache_of(call, 4, 5)
    shapes = [call.f32(index).shape for index in range(3)]
    counts = [_head_count(call, shape, index) for index, shape in enumerate(shapes)]
    query, key, value = (
        (shape[0], count, _length(shape), _width(shape, count, index) // count)
        for index, (shape, count) in enumerate(zip(shapes, counts, strict=True))
    )
    holds = query[0] == key[0] == value[0] and query[3] == key[3] and key[1:3] == value[1:3] and query[1] % key[1] == 0
    require(holds, f"keys and values must fit the queries, but got {list(query)}, {list(key)} and {list(value)}")
    is_causal, softcap = call.flag("is_causal", 0), softcap_of(call)
    holds = not is_causal or not cache.length or query[2] == key[2]
    require(holds, f"is_causal must be 0 where {query[2]} queries have {key[2]} keys behind those of a cache")
    how = Attention(scale_of(call, query[3]), is_causal, softcap, cache.length, is_guarded=True)
    scores = (*query[:3], cache.length + key[2])
    biases, counted = _masks(call, scores)
    if call.optional(6) is not None:
        require(not cache.length, "input 6, nonpad_kv_seqlen, must be omitted where inputs 4 and 5 are caches")
        counted, how = _counted(call, scores, counted, is_causal=is_causal), replace(how, is_causal=False)
    mode: int = call.attribute("qk_matmul_output_mode", 0)
    require(mode in tuple(Stage), f"qk_matmul_output_mode must be from 0 to 3, but got {mode}")
    return _attended(call, how, tuple(counts), [kept] * 3, biases, cache, counted, Stage(mode))


def _counted(call: Call, scores: Shape, mask: Value | None, *, is_causal: bool) -> Value:
    """Which scores count, [B, 1, S, L], of sequences of `nonpad_kv_seqlen` keys, the last of which are the queries'."""
    batch, _, steps, length = scores
    lengths = value_of(call, 6)
    holds = lengths.element == "i64" and lengths.shape == (batch,)
    require(holds, f"input 6, nonpad_kv_seqlen, must be {batch} entries of i64, but got {list(lengths.shape)}")
    totals = call.shaped(lengths, (batch, 1, 1, 1))
    keys = elementwise.constant_of(call, np.arange(length).reshape(1, 1, 1, -1))
    # How many keys from its own on a query is from the end.
    behind = elementwise.constant_of(
        call, np.arange(steps)[::-1].reshape(1, 1, -1, 1) if is_causal else np.zeros((1, 1, 1, 1), int)
    )

    def is_counted(s: Arithmetic, total: ir.Value, key: ir.Value, last: ir.Value) -> ir.Value:
        return s.compare("lt", key, s.op("arith.subi", total, last))

    found = elementwise.ternary(call, [totals, keys, behind], "i1", is_counted)
    return (
        found
        if mask is None
        else elementwise.binary(call, [found, mask], "i1", lambda s, x, y: s.op("arith.andi", x, y))
    )


def _head_count(call: Call, shape: Shape, index: int) -> int:
    name = "kv_num_heads" if index else "q_num_heads"
    if len(shape) == 4:
        call.ignore(name)
        return shape[1]
    return heads_count(call, name)


def _masks(call: Call, scores: Shape) -> tuple[list[Emit], Value | None]:
    """Input 3: numbers to be added to the scores, or booleans that select the scores that count."""
    if call.optional(3) is None:
        return [], None
    if elementwise.element_type(call.tensor(3)) != "i1":
        return [float_bias(call, call.f32(3), 3, scores)], None
    mask = value_of(call, 3)
    holds = elementwise.broadcast_shape(mask.shape, scores) == scores
    require(holds, f"input 3 must broadcast to {list(scores)}, but got {list(mask.shape)}")
    return [], mask


def _attended(
    call: Call,
    how: Attention,
    counts: tuple[int, ...],
    prepared: Sequence[Callable[[Emitter, ir.Value], ir.Value]],
    biases: Sequence[Emit],
    cache: Cache,
    counted: Value | None = None,
    stage: Stage = Stage.PRODUCTS,
) -> tuple[Tensor, ...]:
    """Inputs 0 to 2 with `counts` heads each, changed by `prepared`; the result has the form of the queries.

    All keys and values, those of the cache before those of the inputs, are what else is given, and the scores at a
    `stage` where they are asked for.
    """
    sources = [call.f32(index).f32(call.plan, call.name) for index in range(3)]
    heads = [heads_of(call, *one) for one in zip(sources, counts, prepared, strict=True)]
    whole = [appended(call, *pair) for pair in zip((cache.keys, cache.values), heads[1:], strict=True)]
    shape = call.f32(0).shape
    value_width = whole[1].shape[3]
    is_joined = len(shape) == 3
    after = (*shape[:2], counts[0] * value_width) if is_joined else (*shape[:3], value_width)

    def operands(emitter: Emitter) -> tuple[list[ir.Value], list[ir.Value], ir.Value | None]:
        query, key, value = map(emitter.to_channels_first, (heads[0], *whole))
        spread = [repeated_heads(emitter, one, counts[0] // n) for one, n in zip((key, value), counts[1:], strict=True)]
        mask = None if counted is None else emitter.to_channels_first(counted)
        return [query, *spread], [one(emitter) for one in biases], mask

    def emit(emitter: Emitter) -> Emitted:
        (query, key, value), added, mask = operands(emitter)
        result = how.emit(emitter, query, key, value, added, mask)
        return joined_heads(emitter, result) if is_joined else result, False

    def emit_scores(emitter: Emitter) -> Emitted:
        (query, key, _), added, mask = operands(emitter)
        return how.scores(emitter, query, key, added, mask, stage=stage), False

    found = [call.plan.compute(call.name, after, "f32", emit), *whole]
    if call.node.outputs[3:]:
        scores = (*heads[0].shape[:3], whole[0].shape[2])
        found.append(call.plan.compute(call.name, scores, "f32", emit_scores))
    return tuple(Computed(one.shape, one) for one in found)


# Caches of attention: keys and values of earlier tokens stand before those of a call, and both are given to the next.
#
# Caches are f32 of shape [B, N, P, K] for P earlier tokens; the results of a node have P and its own tokens.

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


def cache_of(call: Call, keys: int, values: int, element: str = "f32") -> Cache:
    """Inputs `keys` and `values`, of which none or both are given, of type `element`."""
    given = [index for index in (keys, values) if call.optional(index) is not None]
    require(len(given) != 1, f"inputs {keys} and {values}, the caches, must both be given or omitted")
    if not given:
        return Cache()
    tensors = [call.f32(index) if element == "f32" else value_of(call, index) for index in given]
    shapes = [list(tensor.shape) for tensor in tensors]
    holds = all(len(shape) == 4 for shape in shapes) and shapes[0][:3] == shapes[1][:3]
    require(holds, f"caches must have 4 dimensions and one length, but got {shapes[0]} and {shapes[1]}")
    found = [one if isinstance(one, Value) else one.f32(call.plan, call.name) for one in tensors]
    elements = {one.element for one in found}
    require(elements == {element}, f"caches must be {element}, but got {' and '.join(sorted(elements))}")
    return Cache(*found)


def rows_at(call: Call, own: Value, row: Value) -> Value:
    """The rows of [B, N, S, K] that `row`, [B, 1, L, 1], names, or the nearest: [B, N, L, K], or one for all of L."""
    batch, heads, steps, width = own.shape
    if steps == 1:
        return own
    begins = np.arange(batch * heads, dtype=NUMPY_DTYPES[row.element]) * steps
    first = elementwise.constant_of(call, begins.reshape(batch, heads, 1))
    line = call.shaped(row, (row.shape[0], 1, row.shape[2]))

    def index(s: Arithmetic, place: ir.Value, start: ir.Value) -> ir.Value:
        inside = s.op("arith.minsi", s.op("arith.maxsi", place, 0), steps - 1)
        return s.op("arith.addi", start, inside)

    indices = elementwise.binary(call, [line, first], row.element, index)
    lines = call.shaped(own, (batch * heads * steps, width))
    return elementwise.value_of_tensor(call, gathered(call.plan, call.name, elementwise.tensor_of(lines), indices, 0))


@imports("TensorScatter")
def _tensor_scatter(call: Call) -> Tensor:
    """A cache with the rows of input 1 in place of its own from an index of each sequence on."""
    cache, own = (value_of(call, index) for index in range(2))
    axis: int = call.attribute("axis", -2)
    axis += len(cache.shape) if axis < 0 else 0
    holds = 1 <= axis < len(cache.shape) == len(own.shape) and own.shape[axis] <= cache.shape[axis]
    wanted = (*cache.shape[:axis], own.shape[axis] if holds else 0, *cache.shape[axis + 1 :])
    require(holds and own.shape == wanted, f"updates must fit {list(cache.shape)}, but got {list(own.shape)}")
    require(own.element == cache.element, f"updates must be {cache.element}, but got {own.element}")
    mode: str = call.attribute("mode", "linear")
    require(mode in ("linear", "circular"), f"mode must be linear or circular, but got {mode}")
    batch, length, steps = cache.shape[0], cache.shape[axis], own.shape[axis]
    sides = math.prod(cache.shape[1:axis]), math.prod(cache.shape[axis + 1 :])
    flat = [call.shaped(one, (batch, sides[0], one.shape[axis], sides[1])) for one in (cache, own)]
    first = elementwise.constant_of(call, np.zeros(batch, np.int64)) if call.optional(2) is None else value_of(call, 2)
    holds = first.element == "i64" and first.shape == (batch,)
    require(holds, f"input 2, write_indices, must be {batch} entries of i64, but got {list(first.shape)}")
    begins = call.shaped(first, (batch, 1, 1, 1))
    places = elementwise.constant_of(call, np.arange(length).reshape(1, 1, -1, 1))

    def distance(s: Arithmetic, place: ir.Value, begin: ir.Value) -> ir.Value:
        beyond = s.op("arith.subi", place, begin)
        if mode == "linear":
            return beyond
        return s.op("arith.remsi", s.op("arith.addi", s.op("arith.remsi", beyond, length), length), length)

    row = elementwise.binary(call, [places, begins], "i64", distance)
    is_own = elementwise.unary(
        call, row, "i1", lambda s, x: s.op("arith.andi", s.compare("ge", x, 0), s.compare("lt", x, steps))
    )
    operands = [is_own, rows_at(call, flat[1], row), flat[0]]
    found = elementwise.ternary(call, operands, cache.element, lambda s, is_own, new, old: s.select(is_own, new, old))
    return elementwise.tensor_of(call.shaped(found, cache.shape))


def stacked_cache_of(call: Call, index: int, wanted: Shape) -> Cache:
    """Input `index`, [2, B, N, P, K]: keys, then values; `wanted` are B, N and K."""
    if call.optional(index) is None:
        return Cache()
    tensor = call.f32(index)
    batch, heads, width = wanted
    holds = len(tensor.shape) == 5 and tensor.shape[:3] == (2, batch, heads) and tensor.shape[4] == width
    require(holds, f"input {index} must have the shape {[2, batch, heads, 'P', width]}, but got {list(tensor.shape)}")
    source = tensor.f32(call.plan, call.name)
    whole = [Slice(0, 1, extent) for extent in tensor.shape[1:]]
    halves = [call.moved(source, Slicing.of([Slice(i, 1, 1), *whole])) for i in range(2)]
    return Cache(*(call.shaped(half, tensor.shape[1:]) for half in halves))


def stacked(call: Call, keys: Value, values: Value) -> F32Tensor:
    """[2, B, N, P, K] of both."""
    shape = (2, *keys.shape)

    def build(emitter: Emitter, held: list[ir.Value]) -> ir.Value:
        return emitter.concatenate([emitter.reshape(one, (1, *keys.shape)) for one in held], 0)

    return Computed(shape, call.plan.ordered(call.name, shape, "f32", [keys, values], build))


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
    joined = [cached, own]
    return call.plan.ordered(call.name, shape, own.element, joined, lambda emitter, held: emitter.concatenate(held, 2))


# Caches of 8 or 4 bits, as GroupQueryAttention of com.microsoft has them.
#
# Numbers are ``clip(round(x / s))``, ties to even, with a scale for all, or for each column of each head.  Two numbers
# of 4 bits are a byte, each plus 8, the first in the lower half.

_ALL, _COLUMNS = "PER_TENSOR", "PER_CHANNEL"
CACHE_ELEMENTS = {0: "f32", 4: "ui8", 8: "i8"}
"""The element type of caches of so many bits, 0 for those that are not quantized."""
_HALF, _MIDDLE = 4, 8


def cache_bits(call: Call, width: int) -> int:
    """Of a number of the caches; 0 for those of f32."""
    if call.attribute("k_quant_type", "NONE") == "NONE":
        return 0
    bits: int = call.attribute("kv_cache_bit_width", 0)
    holds = bits == 2 * _HALF or (bits == _HALF and width % 2 == 0)
    require(holds, f"kv_cache_bit_width must be 8, or 4 for an even width, but got {bits} for {width}")
    return bits


def cache_scales(call: Call, name: str, index: int, heads: int, width: int) -> Array | None:
    """Of a cache, to broadcast to [B, N, L, D]; None for one of f32."""
    kind: str = call.attribute(f"{name}_quant_type", "NONE")
    if kind == "NONE":
        require(call.optional(index) is None, f"input {index}, {name}_scale, must be omitted")
        return None
    require(kind in (_ALL, _COLUMNS), f"{name}_quant_type must be {_ALL} or {_COLUMNS}, but got {kind}")
    found, shape = call.constant(index), (1, heads, 1, width) if kind == _COLUMNS else (1, 1, 1, 1)
    holds = found.dtype == np.float32 and found.size == math.prod(shape)
    require(holds, f"input {index}, {name}_scale, must have {math.prod(shape)} entries of f32, but got {found.size}")
    return found.reshape(shape)


def in_few_bits(call: Call, source: Value, scales: Array | None, bits: int) -> Value:
    """Floats as a cache of `bits` has them; themselves without scales."""
    if scales is None:
        return source
    low, high = -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1

    def quantized(s: Arithmetic, x: ir.Value, scale: ir.Value) -> ir.Value:
        rounded = s.op("math.roundeven", s.op("arith.divf", x, scale))
        return converted(s, s.op("arith.minimumf", s.op("arith.maximumf", rounded, low), high), "f32", "i8")

    values = binary(call, [source, constant_of(call, scales)], "i8", quantized)
    return values if bits > _HALF else _paired(call, values)


def _paired(call: Call, source: Value) -> Value:
    """Numbers of 4 bits, two to a byte."""
    *outer, width = source.shape
    shape = (*outer, width // 2)

    def build(emitter: Emitter, operands: list[ir.Value]) -> ir.Value:
        s, rows = Arithmetic(emitter), [Slice(0, 1, extent) for extent in outer]
        columns = [take_slices(emitter, operands[0], [*rows, Slice(i, 2, width // 2)]) for i in range(2)]
        first, second = (s.op("arith.addi", s.resize(one, "i32"), _MIDDLE) for one in columns)
        joined = s.op("arith.ori", first, s.op("arith.shli", second, _HALF))
        return emitter.convert("tensor.bitcast", s.resize(joined, "i8"), "ui8")

    return call.plan.ordered(call.name, shape, "ui8", [source], build)


def _apart(call: Call, source: Value) -> Value:
    """The numbers of `_paired`."""
    *outer, count = source.shape

    def build(emitter: Emitter, operands: list[ir.Value]) -> ir.Value:
        s = Arithmetic(emitter)
        whole = s.resize(emitter.convert("tensor.bitcast", operands[0], "i8"), "i32")
        fields = s.op("arith.andi", whole, 15), s.op("arith.andi", s.op("arith.shrui", whole, _HALF), 15)
        numbers = [s.resize(s.op("arith.subi", field, _MIDDLE), "i8") for field in fields]
        columns = [emitter.reshape(one, (*source.shape, 1)) for one in numbers]
        return emitter.reshape(emitter.concatenate(columns, len(source.shape)), (*outer, 2 * count))

    return call.plan.ordered(call.name, (*outer, 2 * count), "i8", [source], build)


def as_numbers(call: Call, source: Value, scales: Array | None, bits: int) -> Value:
    """The floats of a cache of `bits`, which are its numbers without scales."""
    if scales is None:
        return source

    def number(s: Arithmetic, x: ir.Value, scale: ir.Value) -> ir.Value:
        return s.op("arith.mulf", converted(s, x, "i8", "f32"), scale)

    values = source if bits > _HALF else _apart(call, source)
    return binary(call, [values, constant_of(call, scales)], "f32", number)
