"""Attention, rotary embeddings and fused products of ONNX models: against formulas, interpreted and compiled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from compiled_ops import check_compiled, variants_together
from numpy.typing import NDArray
from onnx_evaluated import numbers, run_both
from onnx_graphs import CONTRIB, ModelBuilder, drawn, evaluated, f32_values
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
BATCH, STEPS, LENGTH, HEADS, WIDTH = 2, 5, 7, 3, 4
FILTER = -10000.0


def heads_of(x: Array) -> Array:
    return x.astype(np.float64).reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def attention(q: Array, k: Array, v: Array, bias: Array | float = 0.0, scale: float | None = None) -> Array:
    """Of rows with the heads side by side."""
    query, key, value = map(heads_of, (q, k, v))
    scores = query @ key.swapaxes(2, 3) * (scale or 1 / math.sqrt(query.shape[3])) + bias
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    result = raised / raised.sum(-1, keepdims=True) @ value
    return result.transpose(0, 2, 1, 3).reshape(*q.shape[:2], -1)


MASKS: dict[str, tuple[Array, Array]] = {
    "lengths": (np.array([4, 2], np.int32), np.array([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]])[:, None, None]),
    "keys": (
        np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 1]], np.int32),
        np.array([[0, 0, 1, 0, 1], [0, 1, 0, 0, 0]])[:, None, None],
    ),
    "pairs": (np.tril(np.ones((2, 5, 5), np.int32)), 1 - np.tril(np.ones((2, 1, 5, 5)))),
}


@variants_together
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("mask", [None, *MASKS])
def test_attention_of_one_input(mask: str | None, is_known: bool) -> None:
    x, w, bias = numbers(BATCH, STEPS, 6), numbers(6, 36, seed=1), numbers(36, seed=2)
    b, inputs = ModelBuilder(), [x]
    names = [b.input("x", x.shape), b.constant(w), b.constant(bias)]
    if mask:
        array = MASKS[mask][0]
        names.append(b.constant(array) if is_known else b.input("mask", array.shape, np.int32))
        inputs += [] if is_known else [array]
    content = b.finish(b.node(f"{CONTRIB}.Attention", *names, num_heads=HEADS), dtype=np.float32)
    q, k, v = np.split(x.astype(np.float64) @ w + bias, 3, axis=2)
    assert_floats_within(
        run_both(content, *inputs), attention(q, k, v, MASKS[mask][1] * FILTER if mask else 0.0), "layer"
    )


def test_attention_of_sizes_of_its_own_looks_back_alone() -> None:
    x, w, bias = numbers(BATCH, STEPS, 6), numbers(6, 30, seed=1), numbers(1, HEADS, STEPS, STEPS, seed=2)
    b = ModelBuilder()
    names = [b.input("x", x.shape), b.constant(w), "", "", "", b.input("bias", bias.shape)]
    attributes: dict[str, Any] = {
        "num_heads": HEADS,
        "qkv_hidden_sizes": [12, 12, 6],
        "unidirectional": 1,
        "scale": 0.25,
    }
    content = b.finish(b.node(f"{CONTRIB}.Attention", *names, **attributes), dtype=np.float32)
    q, k, v = np.split(x.astype(np.float64) @ w, [12, 24], axis=2)
    wanted = attention(q, k, v, np.triu(np.full((STEPS, STEPS), -np.inf), 1) + bias, 0.25)
    assert_floats_within(run_both(content, x, bias), wanted, "layer")


@variants_together
@pytest.mark.parametrize("is_qdq", [False, True])
def test_attention_of_quantized_values(is_qdq: bool) -> None:
    """The product of queries, keys and values is one of integers."""
    x, w, bias = drawn((BATCH, STEPS, 6), np.uint8), drawn((6, 36), np.int8, 1), numbers(36, seed=2)
    x_by, w_by = (0.02, 120), 0.01
    b = ModelBuilder()
    data = b.input("x", x.shape, np.uint8)
    if is_qdq:
        inputs = [b.dequantize(data, x_by), b.weight(w, w_by), b.constant(bias)]
        result = b.node(f"{CONTRIB}.Attention", *inputs, num_heads=HEADS)
    else:
        scales, points = b.parameters(x_by, np.uint8), b.parameters((w_by, 0), np.int8)
        inputs = [data, b.constant(w), b.constant(bias), scales[0], points[0], "", scales[1], points[1]]
        result = b.node(f"{CONTRIB}.QAttention", *inputs, num_heads=HEADS)
    content = b.finish(result, dtype=np.float32)
    assert "qnn.dense" in str(import_onnx(content))
    q, k, v = np.split(f32_values(x, x_by).astype(np.float64) @ f32_values(w, (w_by, 0)) + bias, 3, axis=2)
    assert_floats_within(run_both(content, x), attention(q, k, v), "layer")


@variants_together
@pytest.mark.parametrize("is_split", [False, True])
def test_attention_of_many_heads(is_split: bool) -> None:
    """A mask and biases, which keys and values that have the heads in a dimension of their own do not get."""
    q, k = numbers(BATCH, STEPS, HEADS * WIDTH), numbers(BATCH, LENGTH, HEADS * WIDTH, seed=1)
    v, bias = numbers(BATCH, LENGTH, HEADS * 2, seed=2), numbers(HEADS * (2 * WIDTH + 2), seed=3)
    mask, scores = np.array([[1] * 5 + [0] * 2, [1] * 7], np.int32), numbers(BATCH, 1, STEPS, LENGTH, seed=4)
    keys = [np.ascontiguousarray(heads_of(one).astype(np.float32)) if is_split else one for one in (k, v)]
    b = ModelBuilder()
    names = [b.input(f"x{i}", one.shape) for i, one in enumerate((q, *keys))]
    names += [b.constant(bias), b.input("mask", mask.shape, np.int32), b.input("scores", scores.shape)]
    content = b.finish(b.node(f"{CONTRIB}.MultiHeadAttention", *names, num_heads=HEADS), dtype=np.float32)
    parts = np.split(bias, [HEADS * WIDTH, 2 * HEADS * WIDTH])
    added = [one + (0 if is_split and i else part) for i, (one, part) in enumerate(zip((q, k, v), parts, strict=True))]
    wanted = attention(added[0], added[1], added[2], (1 - mask[:, None, None]) * FILTER + scores)
    assert_floats_within(run_both(content, q, *keys, mask, scores), wanted, "layer")


STANDARD: dict[str, tuple[list[tuple[int, ...]], dict[str, Any]]] = {
    "heads of their own": ([(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)], {}),
    "a mask of numbers": ([(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), (5, 7)], {"scale": 0.3}),
    "looking back alone": ([(2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 6)], {"is_causal": 1}),
    "shared keys": ([(2, 6, 5, 4), (2, 2, 7, 4), (2, 2, 7, 4)], {"softcap": 2.0}),
    "side by side": ([(2, 5, 24), (2, 7, 8), (2, 7, 12)], {"q_num_heads": 6, "kv_num_heads": 2}),
}


@variants_together
@pytest.mark.parametrize("name", STANDARD)
def test_attention_of_the_standard(name: str) -> None:
    shapes, attributes = STANDARD[name]
    arrays = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    b = ModelBuilder()
    names = [b.input(f"x{i}", array.shape) for i, array in enumerate(arrays)]
    content = b.finish(b.node("Attention", *names, **attributes), dtype=np.float32, version=23)
    assert_floats_within(run_both(content, *arrays), evaluated(content, *arrays), "layer")


def test_a_mask_of_known_truth_values() -> None:
    q, k, v = (numbers(2, 3, 5, 4, seed=i) for i in range(3))
    mask = np.tril(np.ones((5, 5), np.bool_))
    b = ModelBuilder()
    names = [b.input(f"x{i}", q.shape) for i in range(3)]
    content = b.finish(b.node("Attention", *names, b.constant(mask)), dtype=np.float32, version=23)
    assert_floats_within(run_both(content, q, k, v), evaluated(content, q, k, v), "layer")


def rotated(x: Array, angles: Array, is_interleaved: bool) -> Array:
    """[B, N, S, D] turned by angles [B, 1, S, D / 2], as numbers of a plane."""
    half = angles.shape[3]
    rest = x[..., 2 * half :]
    pairs = (
        (x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2])
        if is_interleaved
        else (x[..., :half], x[..., half : 2 * half])
    )
    turned = (pairs[0] + 1j * pairs[1].astype(np.float64)) * np.exp(1j * angles)
    order = np.stack([turned.real, turned.imag], -1) if is_interleaved else np.stack([turned.real, turned.imag], -2)
    return np.concatenate([order.reshape(*x.shape[:3], 2 * half), rest], -1)


@variants_together
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [[3], [[0, 1, 2, 3, 4], [5, 4, 3, 2, 1]]])
@pytest.mark.parametrize("turned", [8, 4])
@pytest.mark.parametrize("is_known", [False, True])
def test_rotary_embeddings(turned: int, positions: list[Any], interleaved: int, is_known: bool) -> None:
    x, table = numbers(BATCH, STEPS, 3 * 8), np.random.default_rng(1).uniform(0, 3, (9, turned // 2)).astype(np.float32)
    ids = np.array(positions)
    b = ModelBuilder()
    places = b.constant(ids) if is_known else b.input("ids", ids.shape, np.int64)
    names = ["x", places, b.constant(np.cos(table)), b.constant(np.sin(table))]
    b.input("x", x.shape)
    attributes = {"num_heads": 3, "rotary_embedding_dim": turned, "interleaved": interleaved}
    content = b.finish(b.node(f"{CONTRIB}.RotaryEmbedding", *names, **attributes), dtype=np.float32)
    rows = (
        np.broadcast_to(ids, (BATCH, STEPS))
        if ids.ndim == 2
        else np.broadcast_to(ids + np.arange(STEPS), (BATCH, STEPS))
    )
    heads = x.reshape(BATCH, STEPS, 3, 8).transpose(0, 2, 1, 3)
    wanted = rotated(heads, table[rows][:, None].astype(np.float64), bool(interleaved))
    given = [x] if is_known else [ids, x]
    assert_floats_within(run_both(content, *given), wanted.transpose(0, 2, 1, 3).reshape(x.shape), "formula")


def test_rotary_embeddings_with_angles_for_each_row() -> None:
    x, table = numbers(BATCH, 3, STEPS, 8), numbers(BATCH, STEPS, 4, seed=1)
    b = ModelBuilder()
    names = [b.input("x", x.shape), b.input("cos", table.shape), b.input("sin", table.shape)]
    content = b.finish(b.node("RotaryEmbedding", *names), dtype=np.float32, version=23)
    wanted = rotated(x, table[:, None].astype(np.float64), is_interleaved=False)
    assert_floats_within(run_both(content, x, np.cos(table), np.sin(table)), wanted, "formula")


@variants_together
@pytest.mark.parametrize("turns", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("is_quantized", [False, True])
def test_fused_products(turns: tuple[int, int], is_quantized: bool) -> None:
    shapes = [(2, 4, 6) if turn == own else (2, 6, 4) for own, turn in enumerate(turns)]
    shapes[1] = (2, 6, 4) if not turns[1] else (2, 4, 6)
    shapes[0] = (2, 4, 6) if not turns[0] else (2, 6, 4)
    b = ModelBuilder()
    if is_quantized:
        arrays = [drawn(shape, np.uint8, i) for i, shape in enumerate(shapes)]
        names = [b.dequantize(b.input(f"x{i}", one.shape, np.uint8), (0.02, 120)) for i, one in enumerate(arrays)]
        values = [f32_values(one, (0.02, 120)) for one in arrays]
    else:
        arrays = values = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
        names = [b.input(f"x{i}", one.shape) for i, one in enumerate(arrays)]
    attributes = {"transA": turns[0], "transB": turns[1], "alpha": 0.5}
    content = b.finish(b.node(f"{CONTRIB}.FusedMatMul", *names, **attributes), dtype=np.float32)
    assert ("qnn.f32_matmul" in str(import_onnx(content))) != is_quantized
    lhs, rhs = (one.astype(np.float64).swapaxes(1, 2) if turn else one for one, turn in zip(values, turns, strict=True))
    assert_floats_within(run_both(content, *arrays), 0.5 * (lhs @ rhs), "layer")


@variants_together
@pytest.mark.parametrize("kind", ["BiasGelu", "FastGelu"])
def test_functions_with_a_bias(kind: str) -> None:
    x, bias = numbers(2, 3, 7), numbers(7, seed=1)
    b = ModelBuilder()
    content = b.finish(b.node(f"{CONTRIB}.{kind}", b.input("x", x.shape), b.constant(bias)), dtype=np.float32)
    y = x.astype(np.float64) + bias
    inner = (
        np.vectorize(math.erf)(y / math.sqrt(2))
        if kind == "BiasGelu"
        else np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3))
    )
    assert_floats_within(run_both(content, x), y / 2 * (1 + inner), "formula")


REFUSED: dict[str, tuple[str, list[tuple[int, ...] | None], dict[str, Any]]] = {
    "num_heads must be at least 1, but got 0": (f"{CONTRIB}.MultiHeadAttention", [(2, 5, 6)] * 3, {}),
    "input 1 must have 4 heads, but has the shape [2, 5, 6]": (
        f"{CONTRIB}.MultiHeadAttention",
        [(2, 5, 8), (2, 5, 6), (2, 5, 8)],
        {"num_heads": 4},
    ),
    "keys and values must fit the queries": (
        f"{CONTRIB}.MultiHeadAttention",
        [(2, 5, 8), (2, 5, 8), (2, 4, 8)],
        {"num_heads": 4},
    ),
    "inputs 6 and 7, the caches, must both be given or omitted": (
        f"{CONTRIB}.MultiHeadAttention",
        [(2, 5, 8), (2, 5, 8), (2, 5, 8), None, None, None, (2, 4, 3, 2)],
        {"num_heads": 4},
    ),
    "cache must have the shape [2, 4, 3, 2], but got [2, 4, 3, 5]": (
        f"{CONTRIB}.MultiHeadAttention",
        [(2, 5, 8), (2, 5, 8), (2, 5, 8), None, None, None, (2, 4, 3, 5), (2, 4, 3, 5)],
        {"num_heads": 4},
    ),
    "rotary_embedding_dim must be even and in [2, 8], but got 5": (
        "RotaryEmbedding",
        [(2, 3, 5, 8), (2, 5, 4), (2, 5, 4)],
        {"rotary_embedding_dim": 5},
    ),
    "operands must be matrices that multiply, but got [2, 5] and [4, 3]": (
        f"{CONTRIB}.FusedMatMul",
        [(2, 5), (4, 3)],
        {},
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_has_no_meaning_is_refused(message: str) -> None:
    kind, shapes, attributes = REFUSED[message]
    b = ModelBuilder()
    names = ["" if shape is None else b.input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    with pytest.raises(ImportModelError) as caught:
        import_onnx(b.finish(b.node(kind, *names, **attributes), dtype=np.float32, version=23))
    assert message in caught.value.render()


@pytest.mark.parametrize("kind", ["Attention", f"{CONTRIB}.MultiHeadAttention"])
def test_queries_of_other_numbers_than_causal_keys_are_refused(kind: str) -> None:
    b = ModelBuilder()
    names = [b.input(f"x{i}", (1, steps, 8)) for i, steps in enumerate((1, 5, 5))]
    cache = [b.input(f"cache{i}", (1, 2, 3, 4)) for i in range(2)]
    is_own = kind != "Attention"
    omitted = [""] * (3 if is_own else 1)
    how = {"num_heads": 2, "unidirectional": 1} if is_own else {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1}
    b.node_of_many(kind, [*names, *omitted, *cache], ["y", "keys", "values"], **how)
    with pytest.raises(ImportModelError, match="must be 0 where 1 queries have 5 keys"):
        import_onnx(b.finish("y", "keys", "values", dtype=np.float32, version=23))


# frontends/onnx/operators/attention_cache.py: keys and values of earlier tokens, compared with ONNX Runtime.

ORT: Any = import_module("onnxruntime")
NEW, EARLIER, KEPT_HEADS, KEPT_WIDTH = 3, 5, 4, 2
ROWS, CACHE = (BATCH, NEW, KEPT_HEADS * KEPT_WIDTH), (BATCH, KEPT_HEADS, EARLIER, KEPT_WIDTH)
SPLIT = (BATCH, KEPT_HEADS, NEW, KEPT_WIDTH)


def _check(
    kind: str, shapes: Sequence[tuple[int, ...] | None], outputs: int, constants: dict[int, Array], **attributes: Any
) -> None:
    """Inputs without a shape are omitted or constants."""
    model, given = ModelBuilder(), list[Array]()
    names: list[str] = []
    for index, shape in enumerate(shapes):
        if shape is None:
            names.append(model.constant(constants[index]) if index in constants else "")
            continue
        names.append(model.input(f"x{index}", shape))
        given.append(numbers(*shape, seed=index))
    results = [f"y{index}" for index in range(outputs)]
    model.node_of_many(kind, names, results, **attributes)
    content = model.finish(*results, dtype=np.float32, version=23)
    session = ORT.InferenceSession(content, providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(zip([one.name for one in session.get_inputs()], given, strict=True)))
    module = import_onnx(content)
    reference = interpreter.run(module, given)
    compiled = compile_module(module)(*given)
    found = compiled if isinstance(compiled, tuple) else (compiled,)
    for one, other, exact in zip(found, wanted, reference, strict=True):
        np.testing.assert_array_equal(one, exact)
        assert_floats_within(one, other, "layer")


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize(("earlier", "outputs"), [(True, 3), (False, 3), (False, 1)])
def test_several_heads(is_causal: int, earlier: bool, outputs: int) -> None:
    caches: list[tuple[int, ...] | None] = [None, None, None, CACHE, CACHE] if earlier else []
    how = {"num_heads": KEPT_HEADS, "unidirectional": is_causal}
    _check(f"{CONTRIB}.MultiHeadAttention", [ROWS, ROWS, ROWS, *caches], outputs, {}, **how)


def test_a_mask_of_keys_counts_those_of_the_cache() -> None:
    mask = np.ones((BATCH, EARLIER + NEW), np.int32)
    mask[0, :2] = mask[1, 3] = 0
    shapes = [ROWS, ROWS, ROWS, None, None, None, CACHE, CACHE]
    _check(f"{CONTRIB}.MultiHeadAttention", shapes, 3, {4: mask}, num_heads=KEPT_HEADS)


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize(("earlier", "outputs"), [(True, 2), (False, 2), (False, 1)])
def test_one_input(is_causal: int, earlier: bool, outputs: int) -> None:
    weights = {1: numbers(6, 3 * KEPT_HEADS * KEPT_WIDTH, seed=8), 2: numbers(3 * KEPT_HEADS * KEPT_WIDTH, seed=9)}
    caches: list[tuple[int, ...] | None] = [None, (2, *CACHE)] if earlier else []
    how = {"num_heads": KEPT_HEADS, "unidirectional": is_causal}
    _check(f"{CONTRIB}.Attention", [(BATCH, NEW, 6), None, None, *caches], outputs, weights, **how)


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("key_heads", [KEPT_HEADS, 2])
def test_the_standard_operator(is_causal: int, key_heads: int) -> None:
    keys, cache = (BATCH, key_heads, NEW, KEPT_WIDTH), (BATCH, key_heads, EARLIER, KEPT_WIDTH)
    _check("Attention", [SPLIT, keys, keys, None, cache, cache], 3, {}, is_causal=is_causal)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("is_truth", [False, True])
def test_scores_at_every_stage(mode: int, is_truth: bool) -> None:
    """Of a query, no key counts."""
    counts = np.random.default_rng(3).random((NEW, EARLIER + NEW)) < 0.6
    counts[1] = False
    mask = counts if is_truth else np.where(counts, np.float32(0.5), np.float32(-np.inf))
    how = {"is_causal": 1, "softcap": 1.5, "qk_matmul_output_mode": mode}
    _check("Attention", [SPLIT, SPLIT, SPLIT, None, CACHE, CACHE], 4, {3: mask}, **how)


def test_scores_of_one_head_of_several_examples() -> None:
    row = (BATCH, 1, KEPT_WIDTH)
    mask = np.array([[1], [0]], np.int32)
    _check(f"{CONTRIB}.MultiHeadAttention", [row, row, row], 4, {4: mask}, num_heads=1)


@pytest.mark.parametrize("lowest", [-np.inf, np.finfo(np.float32).min])
def test_a_query_of_which_no_key_counts(lowest: float) -> None:
    """As in a batch that is padded on the left."""
    mask = np.zeros((BATCH, 1, NEW, NEW), np.float32)
    mask[0, :, :, :2] = lowest
    _check("Attention", [SPLIT, SPLIT, SPLIT, mask.shape], 1, {}, is_causal=1)
    _check("Attention", [SPLIT, SPLIT, SPLIT, None], 1, {3: mask}, is_causal=1)


@variants_together
@pytest.mark.parametrize(
    ("steps", "begins", "how"),
    [
        (1, [0, 4], {"is_causal": 1}),
        (3, [2, 0], {"is_causal": 1}),
        (3, [3, 1], {"is_causal": 0, "is_masked": True}),
        (2, [4, 5], {"is_causal": 0, "mode": "circular"}),
        (5, [0, 0], {"is_causal": 1, "rank": 3}),
    ],
)
def test_caches_that_are_written_in_place(steps: int, begins: list[int], how: dict[str, Any]) -> None:
    """Rows put into a cache at an index of each sequence; keys behind the last one do not count."""
    length, is_flat, mode = 6, how.get("rank") == 3, str(how.get("mode", "linear"))
    rows = (KEPT_HEADS * KEPT_WIDTH,) if is_flat else (KEPT_WIDTH,)
    before = (BATCH,) if is_flat else (BATCH, KEPT_HEADS)
    sizes = {"q": steps, "k": steps, "v": steps, "keys": length, "values": length}
    given = {name: numbers(*before, size, *rows, seed=index) for index, (name, size) in enumerate(sizes.items())}
    totals = np.minimum(np.array(begins) + steps, length)
    model = ModelBuilder()
    names = {name: model.input(name, array.shape) for name, array in given.items()}
    names |= {name: model.input(name, (BATCH,), np.int64) for name in ("begins", "totals")}
    where = {"axis": len(before), "mode": mode}
    caches = [
        model.node("TensorScatter", names[cache], names[own], names["begins"], output=f"new_{cache}", **where)
        for cache, own in (("keys", "k"), ("values", "v"))
    ]
    mask = np.random.default_rng(1).random((steps, length)) < 0.7
    masks = model.constant(mask) if "is_masked" in how else ""
    heads = {"q_num_heads": KEPT_HEADS, "kv_num_heads": KEPT_HEADS} if is_flat else {}
    y = model.node(
        "Attention", names["q"], *caches, masks, "", "", names["totals"], is_causal=how["is_causal"], **heads
    )
    content = model.finish(y, *caches, dtype=np.float32, version=24)
    arrays = [*given.values(), np.array(begins), totals]
    session = ORT.InferenceSession(content, providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(zip([one.name for one in session.get_inputs()], arrays, strict=True)))
    module = import_onnx(content)
    found = interpreter.run(module, arrays)
    check_compiled(module, "host", [arrays], [found])
    for one, other in zip(found, wanted, strict=True):
        assert_floats_within(one, other, "layer")
