"""Attention, rotary embeddings and other operators of language models: compared with ONNX Runtime."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from compiled_ops import variants_together
from onnx_graphs import (
    CONTRIB,
    Array,
    Known,
    ModelBuilder,
    Operand,
    agreed,
    check_node,
    drawn,
    found_by,
    node,
    numbers,
    of_onnx_runtime,
    refused,
)
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx

BATCH, STEPS, LENGTH, HEADS, WIDTH = 2, 5, 7, 3, 4
ATTENTION, MANY_HEADS = f"{CONTRIB}.Attention", f"{CONTRIB}.MultiHeadAttention"
Case = tuple[str, Sequence[Operand], dict[str, Any]]

OF_LENGTHS = np.array([4, 2], np.int32)
OF_KEYS = np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 1]], np.int32)
OF_PAIRS = np.tril(np.ones((2, 5, 5), np.int32))
OF_LONG_KEYS = np.array([[1] * 5 + [0] * 2, [1] * 7], np.int32)
ONE_INPUT: list[Operand] = [(BATCH, STEPS, 6), Known((6, 36)), Known((36,))]
QUERIES, KEYS, VALUES = (BATCH, STEPS, 12), (BATCH, LENGTH, 12), (BATCH, LENGTH, 6)
SPLIT_KEYS = (BATCH, HEADS, LENGTH, WIDTH)
BIASED: list[Operand] = [OF_LONG_KEYS, (BATCH, 1, STEPS, LENGTH)]
PLAIN: list[Case] = [
    *((ATTENTION, [*ONE_INPUT, mask], {}) for mask in (None, OF_LENGTHS, OF_KEYS, OF_PAIRS)),
    *((ATTENTION, [*ONE_INPUT, Known(mask)], {}) for mask in (OF_LENGTHS, OF_KEYS, OF_PAIRS)),
    (
        ATTENTION,
        [(BATCH, STEPS, 6), Known((6, 30)), Known((30,)), None, None, (1, HEADS, STEPS, STEPS)],
        {"qkv_hidden_sizes": [12, 12, 6], "unidirectional": 1, "scale": 0.25},
    ),
    (MANY_HEADS, [QUERIES, KEYS, VALUES, Known((30,)), *BIASED], {}),
    # Keys and values that have the heads in a dimension of their own get no bias.
    (MANY_HEADS, [QUERIES, SPLIT_KEYS, SPLIT_KEYS, Known((36,)), *BIASED], {}),
]
STANDARD: list[Case] = [
    ("Attention", [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)], {}),
    ("Attention", [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), (5, 7)], {"scale": 0.3}),
    ("Attention", [(2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 6)], {"is_causal": 1}),
    ("Attention", [(2, 6, 5, 4), (2, 2, 7, 4), (2, 2, 7, 4)], {"softcap": 2.0}),
    ("Attention", [(2, 5, 24), (2, 7, 8), (2, 7, 12)], {"q_num_heads": 6, "kv_num_heads": 2}),
    ("Attention", [(2, 3, 5, 4)] * 3 + [Known(np.tril(np.ones((5, 5), np.bool_)))], {}),
    ("RotaryEmbedding", [(BATCH, 3, STEPS, 8), (BATCH, STEPS, 4), (BATCH, STEPS, 4)], {}),
]
FUSED: list[Case] = [
    *(
        (f"{CONTRIB}.FusedMatMul", [[(2, 4, 6), (2, 6, 4)][a], [(2, 6, 4), (2, 4, 6)][b]], {"transA": a, "transB": b})
        for a in (0, 1)
        for b in (0, 1)
    ),
    *((f"{CONTRIB}.{kind}", [(2, 3, 7), Known((7,))], {}) for kind in ("BiasGelu", "FastGelu")),
]


@variants_together
@pytest.mark.parametrize(("kind", "operands", "attributes"), PLAIN)
def test_attention(kind: str, operands: Sequence[Operand], attributes: dict[str, Any]) -> None:
    check_node(kind, operands, num_heads=HEADS, **attributes)


@variants_together
@pytest.mark.parametrize(("kind", "operands", "attributes"), STANDARD)
def test_operators_of_the_standard(kind: str, operands: Sequence[Operand], attributes: dict[str, Any]) -> None:
    check_node(kind, operands, version=23, **attributes)


@variants_together
@pytest.mark.parametrize(("kind", "operands", "attributes"), FUSED)
def test_products_and_functions_that_are_fused(
    kind: str, operands: Sequence[Operand], attributes: dict[str, Any]
) -> None:
    how: dict[str, Any] = {"alpha": 0.5, **attributes} if "MatMul" in kind else {}
    check_node(kind, operands, **how)


@variants_together
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [[3], [[0, 1, 2, 3, 4], [5, 4, 3, 2, 1]]])
@pytest.mark.parametrize("turned", [8, 4])
@pytest.mark.parametrize("is_known", [False, True])
def test_rotary_embeddings(turned: int, positions: list[Any], interleaved: int, is_known: bool) -> None:
    table = np.random.default_rng(1).uniform(0, 3, (9, turned // 2)).astype(np.float32)
    places = Known(np.array(positions)) if is_known else np.array(positions)
    operands = [(BATCH, STEPS, 3 * 8), places, Known(np.cos(table)), Known(np.sin(table))]
    how: dict[str, Any] = {"num_heads": 3, "rotary_embedding_dim": turned, "interleaved": interleaved}
    check_node(f"{CONTRIB}.RotaryEmbedding", operands, **how)


@pytest.mark.parametrize("kind", ["Attention", "QAttention", "FusedMatMul"])
def test_products_of_quantized_values_are_those_of_integers(kind: str) -> None:
    x, w, bias = drawn((BATCH, STEPS, 6), np.uint8), drawn((6, 36), np.int8, 1), numbers(36, seed=2)
    by, b = (0.02, 120), ModelBuilder()
    data = b.input("x", x.shape, np.uint8)
    if kind == "QAttention":
        scales, points = b.parameters(by, np.uint8), b.parameters((0.01, 0), np.int8)
        inputs = [data, b.constant(w), b.constant(bias), scales[0], points[0], "", scales[1], points[1]]
    else:
        rest = [b.constant(bias)] if kind == "Attention" else []
        inputs = [b.dequantize(data, by), b.weight(w, 0.01), *rest]
    how = {"alpha": 0.5} if kind == "FusedMatMul" else {"num_heads": HEADS}
    content = b.finish(b.node(f"{CONTRIB}.{kind}", *inputs, **how), dtype=np.float32)
    text = str(import_onnx(content))
    assert "qnn.dense" in text
    # QAttention quantizes nothing between its products.
    assert "qnn.f32_matmul" not in text or kind != "FusedMatMul"
    agreed(content, x, within="layer")


REFUSED: list[tuple[str, str, list[Operand], dict[str, Any]]] = [
    ("num_heads must be at least 1, but got 0", MANY_HEADS, [(2, 5, 6)] * 3, {}),
    (
        "input 1 must have 4 heads, but has the shape [2, 5, 6]",
        MANY_HEADS,
        [(2, 5, 8), (2, 5, 6), (2, 5, 8)],
        {"num_heads": 4},
    ),
    ("keys and values must fit the queries", MANY_HEADS, [(2, 5, 8), (2, 5, 8), (2, 4, 8)], {"num_heads": 4}),
    (
        "inputs 6 and 7, the caches, must both be given or omitted",
        MANY_HEADS,
        [(2, 5, 8), (2, 5, 8), (2, 5, 8), None, None, None, (2, 4, 3, 2)],
        {"num_heads": 4},
    ),
    (
        "cache must have the shape [2, 4, 3, 2], but got [2, 4, 3, 5]",
        MANY_HEADS,
        [(2, 5, 8), (2, 5, 8), (2, 5, 8), None, None, None, (2, 4, 3, 5), (2, 4, 3, 5)],
        {"num_heads": 4},
    ),
    (
        "rotary_embedding_dim must be even and in [2, 8], but got 5",
        "RotaryEmbedding",
        [(2, 3, 5, 8), (2, 5, 4), (2, 5, 4)],
        {"rotary_embedding_dim": 5},
    ),
    (
        "operands must be matrices that multiply, but got [2, 5] and [4, 3]",
        f"{CONTRIB}.FusedMatMul",
        [(2, 5), (4, 3)],
        {},
    ),
    (
        "must be 0 where 1 queries have 5 keys",
        "Attention",
        [(1, 1, 8), (1, 5, 8), (1, 5, 8), None, (1, 2, 3, 4), (1, 2, 3, 4)],
        {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1, "outputs": 3},
    ),
    (
        "must be 0 where 1 queries have 5 keys",
        MANY_HEADS,
        [(1, 1, 8), (1, 5, 8), (1, 5, 8), None, None, None, (1, 2, 3, 4), (1, 2, 3, 4)],
        {"num_heads": 2, "unidirectional": 1, "outputs": 3},
    ),
]


@pytest.mark.parametrize(("message", "kind", "operands", "attributes"), REFUSED)
def test_operators_without_a_meaning_are_refused(
    message: str, kind: str, operands: list[Operand], attributes: dict[str, Any]
) -> None:
    assert message in refused(node(kind, operands, version=23, **attributes)[0])


# Keys and values of earlier tokens.

NEW, EARLIER, KEPT_HEADS, KEPT_WIDTH = 3, 5, 4, 2
ROWS, CACHE = (BATCH, NEW, KEPT_HEADS * KEPT_WIDTH), (BATCH, KEPT_HEADS, EARLIER, KEPT_WIDTH)
OF_CACHE = np.ones((BATCH, EARLIER + NEW), np.int32)
OF_CACHE[0, :2] = OF_CACHE[1, 3] = 0
WITH_CACHES: list[Case] = [
    *(
        (MANY_HEADS, [ROWS] * 3 + caches, {"outputs": outputs, "num_heads": KEPT_HEADS, "unidirectional": causal})
        for caches, outputs in (([None] * 3 + [CACHE] * 2, 3), ([], 3), ([], 1))
        for causal in (0, 1)
    ),
    (
        MANY_HEADS,
        [ROWS, ROWS, ROWS, None, Known(OF_CACHE), None, CACHE, CACHE],
        {"outputs": 3, "num_heads": KEPT_HEADS},
    ),
    *(
        (
            ATTENTION,
            [(BATCH, NEW, 6), Known((6, 24)), Known((24,)), *caches],
            {"outputs": outputs, "num_heads": KEPT_HEADS, "unidirectional": causal},
        )
        for caches, outputs in (([None, (2, *CACHE)], 2), ([], 2), ([], 1))
        for causal in (0, 1)
    ),
    *(
        (
            "Attention",
            [(BATCH, KEPT_HEADS, NEW, KEPT_WIDTH)]
            + [(BATCH, heads, NEW, KEPT_WIDTH)] * 2
            + [None]
            + [(BATCH, heads, EARLIER, KEPT_WIDTH)] * 2,
            {"outputs": 3, "is_causal": causal},
        )
        for heads in (KEPT_HEADS, 2)
        for causal in (0, 1)
    ),
]


@variants_together
@pytest.mark.parametrize(("kind", "operands", "options"), WITH_CACHES)
def test_attention_with_caches(kind: str, operands: list[Operand], options: dict[str, Any]) -> None:
    check_node(kind, operands, version=23, **options)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("is_truth", [False, True])
def test_scores_at_every_stage(mode: int, is_truth: bool) -> None:
    """Of a query, no key counts."""
    counts = np.random.default_rng(3).random((NEW, EARLIER + NEW)) < 0.6
    counts[1] = False
    mask = counts if is_truth else np.where(counts, np.float32(0.5), np.float32(-np.inf))
    how: dict[str, Any] = {"is_causal": 1, "softcap": 1.5, "qk_matmul_output_mode": mode}
    rows = (BATCH, KEPT_HEADS, NEW, KEPT_WIDTH)
    check_node("Attention", [rows, rows, rows, Known(mask), CACHE, CACHE], outputs=4, version=23, **how)


def test_scores_of_one_head_of_several_examples() -> None:
    rows = [numbers(BATCH, 1, KEPT_WIDTH, seed=seed) for seed in range(3)]
    model, results = ModelBuilder(), ["y", "keys", "values", "scores"]
    names = [model.input(f"x{index}", array.shape) for index, array in enumerate(rows)]
    mask = model.constant(np.array([[1], [0]], np.int32))
    model.node_of_many(MANY_HEADS, [*names, "", mask], results, num_heads=1)
    agreed(model.finish(*results, dtype=np.float32, version=21), *rows, within="layer")


@pytest.mark.parametrize("lowest", [-np.inf, np.finfo(np.float32).min])
def test_a_query_of_which_no_key_counts(lowest: float) -> None:
    """As in a batch that is padded on the left."""
    mask, rows = np.zeros((BATCH, 1, NEW, NEW), np.float32), (BATCH, KEPT_HEADS, NEW, KEPT_WIDTH)
    mask[0, :, :, :2] = lowest
    for given in (mask.shape, mask, Known(mask)):
        check_node("Attention", [rows, rows, rows, given], version=23, is_causal=1)


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
    length, is_flat = 6, how.get("rank") == 3
    rows = (KEPT_HEADS * KEPT_WIDTH,) if is_flat else (KEPT_WIDTH,)
    before = (BATCH,) if is_flat else (BATCH, KEPT_HEADS)
    sizes = {"q": steps, "k": steps, "v": steps, "keys": length, "values": length}
    given = {name: numbers(*before, size, *rows, seed=index) for index, (name, size) in enumerate(sizes.items())}
    model = ModelBuilder()
    names = {name: model.input(name, array.shape) for name, array in given.items()}
    names |= {name: model.input(name, (BATCH,), np.int64) for name in ("begins", "totals")}
    where = {"axis": len(before), "mode": str(how.get("mode", "linear"))}
    caches = [
        model.node("TensorScatter", names[cache], names[own], names["begins"], output=f"new_{cache}", **where)
        for cache, own in (("keys", "k"), ("values", "v"))
    ]
    mask = np.random.default_rng(1).random((steps, length)) < 0.7
    inputs = [names["q"], *caches, model.constant(mask) if "is_masked" in how else "", "", "", names["totals"]]
    heads = {"q_num_heads": KEPT_HEADS, "kv_num_heads": KEPT_HEADS} if is_flat else {}
    y = model.node("Attention", *inputs, is_causal=how["is_causal"], **heads)
    content = model.finish(y, *caches, dtype=np.float32, version=24)
    arrays = [*given.values(), np.array(begins), np.minimum(np.array(begins) + steps, length)]
    agreed(content, *arrays, within="layer")


@variants_together
@pytest.mark.parametrize("how", [{}, {"activation": "silu", "dilation": 2}])
@pytest.mark.parametrize("has_state", [False, True])
@pytest.mark.parametrize("steps", [1, 5])
def test_convolutions_that_keep_a_state(how: dict[str, Any], has_state: bool, steps: int) -> None:
    """Of four taps, in calls that are shorter too."""
    state = (2, 6, 3 * how.get("dilation", 1)) if has_state else None
    operands = [(2, 6, steps), Known((6, 1, 4)), Known((6,)), state]
    check_node(f"{CONTRIB}.CausalConvWithState", operands, outputs=2, version=21, **how)


# GroupQueryAttention: queries that share keys.

QUERY_HEADS, KEY_HEADS, QUERY_WIDTH = 4, 2, 16
RESULTS = ["y", "keys", "values"]
TURNS = [Known(np.cos(numbers(16, 8))), Known(np.sin(numbers(16, 8)))]
QUERY_CASES: dict[str, dict[str, Any]] = {
    "rotary": {"do_rotary": 1},
    "interleaved": {"do_rotary": 1, "rotary_interleaved": 1},
    "window": {"local_window_size": 3},
    "softcap": {"softcap": 2.5, "scale": 0.5},
    "window of scores with a bound": {"softcap": 2.5, "local_window_size": 1},
    "packed": {"do_rotary": 1, "is_packed": True},
    "sinks": {"has_sinks": True, "local_window_size": 3},
    "smooth softmax": {"smooth_softmax": 1, "softcap": 2.5},
    "all keys": {"causal": 0},
}


def query_attention(
    name: str, earlier: int, lengths: list[int], *, steps: int = NEW, total: int | None = None, is_known: bool = False
) -> tuple[list[Operand], dict[str, Any]]:
    """Operands and attributes; the lengths of the sequences are found at run time where they are not known."""
    how, batch = QUERY_CASES[name].copy(), len(lengths)
    heads = (QUERY_HEADS, KEY_HEADS, KEY_HEADS)
    own = [numbers(batch, steps, count * QUERY_WIDTH, seed=i) for i, count in enumerate(heads)]
    rows: list[Operand] = [np.concatenate(own, 2), None, None] if how.pop("is_packed", False) else [*own]
    past: list[Operand] = [numbers(batch, KEY_HEADS, earlier, QUERY_WIDTH, seed=seed) for seed in (7, 8)]
    held = np.array(lengths, np.int32)
    counts: list[Operand] = [
        Known(held) if is_known else held,
        Known(np.array(earlier + steps if total is None else total, np.int32)),
    ]
    turns: list[Operand] = [*TURNS] if how.get("do_rotary") else [None, None]
    sinks: list[Operand] = [None, None, numbers(QUERY_HEADS, seed=9)] if how.pop("has_sinks", False) else []
    operands = [*rows, *(past if earlier else [None, None]), *counts, *turns, *sinks]
    return operands, {"num_heads": QUERY_HEADS, "kv_num_heads": KEY_HEADS, **how}


def check_queries(*arguments: Any, **options: Any) -> None:
    operands, how = query_attention(*arguments, **options)
    check_node(f"{CONTRIB}.GroupQueryAttention", operands, outputs=RESULTS, version=21, **how)


@variants_together
@pytest.mark.parametrize("name", [name for name in QUERY_CASES if name != "all keys"])
@pytest.mark.parametrize("earlier", [0, 5])
def test_queries_that_share_keys(name: str, earlier: int) -> None:
    check_queries(name, earlier, [earlier + NEW - 1], is_known=True)


@variants_together
@pytest.mark.parametrize("name", QUERY_CASES)
@pytest.mark.parametrize(("earlier", "lengths"), [(0, [2, 1, 0]), (5, [4])])
def test_sequences_of_other_lengths(name: str, earlier: int, lengths: list[int]) -> None:
    """Known when the network runs: padding behind a sequence, and caches longer than what they hold."""
    check_queries(name, earlier, lengths)


@variants_together
@pytest.mark.parametrize("name", ["rotary", "window", "packed", "window of scores with a bound"])
@pytest.mark.parametrize(
    ("earlier", "total", "steps", "lengths"), [(9, 6, 3, [5]), (9, 3, 3, [2, 1]), (5, 5, 3, [3]), (9, 7, 1, [6, 0])]
)
def test_caches_that_are_longer_than_all_sequences(
    name: str, earlier: int, total: int, steps: int, lengths: list[int]
) -> None:
    """Buffers that past and present share: of the lengths of a call, of a first prompt, and of one that grows."""
    check_queries(name, earlier, lengths, steps=steps, total=total)


@variants_together
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize(
    ("earlier", "total", "steps", "lengths"),
    [(0, 3, 3, [2, 1]), (5, 8, 3, [7]), (9, 6, 1, [5, 3]), (9, 10, 1, [9, 7, 4])],
)
def test_caches_of_few_bits(bits: int, kind: str, earlier: int, total: int, steps: int, lengths: list[int]) -> None:
    operands, how = query_attention("rotary", earlier, lengths, steps=steps, total=total)
    count = KEY_HEADS * QUERY_WIDTH if kind == "PER_CHANNEL" else 1
    scales = (np.abs(numbers(2, count, seed=3)) * np.float32(0.01) + np.float32(0.005)) * np.float32(2 ** (8 - bits))
    width, dtype = (QUERY_WIDTH, np.int8) if bits == 8 else (QUERY_WIDTH // 2, np.uint8)
    operands[3:5] = [drawn((len(lengths), KEY_HEADS, earlier, width), dtype, seed) for seed in (4, 5)]
    operands += [None] * 3 + [Known(scales[0]), Known(scales[1])]
    how |= {"kv_cache_bit_width": bits, "k_quant_type": kind, "v_quant_type": kind}
    check_node(f"{CONTRIB}.GroupQueryAttention", operands, outputs=RESULTS, version=21, **how)


GROUPED = f"{CONTRIB}.GroupQueryAttention"


def total_at_run_time(past: int, present: int | str, steps: int, **how: Any) -> tuple[bytes, list[Array]]:
    """GroupQueryAttention that reads `total_sequence_length`, its caches `past` and `present` long."""
    operands, attributes = query_attention("rotary" if how.get("do_rotary") else "softcap", past, [0], steps=steps)
    operands[6] = np.array([0], np.int32)
    return declared(operands, {**attributes, **how}, present)


def array_of(operand: Operand) -> Array:
    found = operand.value if isinstance(operand, Known) else operand
    assert found is not None
    assert not isinstance(found, tuple)
    return found


def declared(
    operands: Sequence[Operand], how: dict[str, Any], present: int | str, dtype: type = np.float32
) -> tuple[bytes, list[Array]]:
    """The model, whose caches are declared to be `present` long, and its inputs."""
    content, given = node(GROUPED, operands, RESULTS, 21, **how)
    model, element = onnx.load_from_string(content), onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    for info, shape in zip(model.graph.output, [None, *[(1, KEY_HEADS, present, QUERY_WIDTH)] * 2], strict=True):
        info.CopyFrom(onnx.helper.make_tensor_value_info(info.name, element, shape))
    return model.SerializeToString(), given


@variants_together
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize(
    ("earlier", "total", "steps", "batch"), [(0, 3, 3, 2), (0, 1, 1, 2), (5, 8, 3, 1), (9, 3, 3, 1), (9, 4, 1, 2)]
)
def test_positions_of_a_first_prompt_follow_the_first_of_all(
    earlier: int, total: int, steps: int, batch: int, is_known: bool
) -> None:
    operands, how = query_attention("rotary", earlier, [total - 1] * batch, steps=steps, total=total)
    places = np.random.default_rng(3).integers(0, 9, (batch, steps))
    operands.append(Known(places) if is_known else places)
    check_node(GROUPED, operands, outputs=RESULTS, version=21, **how)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_positions_with_a_total_at_run_time(dtype: type) -> None:
    """Caches are declared by results that are conversions, too."""
    operands, how = query_attention("rotary", 9, [0], steps=3)
    queries, keys, values, *caches, lengths, _, cos, sin = map(array_of, operands)
    floats: list[Array] = [one.astype(dtype) for one in (queries, keys, values, *caches, cos, sin)]
    total, places = np.array([0], np.int32), np.array([[4, 9, 2]])
    given: list[Operand] = [*floats[:5], lengths, total, *map(Known, floats[5:]), places]
    content, inputs = declared(given, how, 9, dtype)
    lengths, total = (array for array in inputs if array.dtype == np.int32)
    for count in (3, 5):
        lengths[:], total[:] = count - 1, count
        for one, other in zip(found_by(content, *inputs), of_onnx_runtime(content, *inputs), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, atol=1e-5 if dtype == np.float32 else 4e-3)


@pytest.mark.parametrize("how", [{"do_rotary": 1}, {"local_window_size": 2, "softcap": 2.5}])
@pytest.mark.parametrize(
    ("past", "present", "steps", "totals"), [(9, 9, 3, (3, 5, 9)), (9, 9, 1, (1, 7)), (5, 8, 3, (8,)), (0, 3, 3, (3,))]
)
def test_totals_that_are_known_at_run_time(
    past: int, present: int, steps: int, totals: tuple[int, ...], how: dict[str, Any]
) -> None:
    """One network for the first prompt, later ones and tokens; another total than caches are for is seen in results."""
    content, given = total_at_run_time(past, present, steps, **how)
    lengths, total = (array for array in given if array.dtype == np.int32)
    for count in totals:
        lengths[:], total[:] = count - 1, count
        agreed(content, *given, within="layer")
    total[:] = max(past, present) + 1
    assert np.isnan(found_by(content, *given)[0]).all()


def test_a_total_at_run_time_says_nothing_of_caches_that_may_grow() -> None:
    content, _ = total_at_run_time(9, "grown", 3)
    assert "must be constant where output 1 is not declared to be 9 long" in refused(content)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_bias_has_no_columns_for_the_rest_of_a_shared_buffer(is_known: bool) -> None:
    operands, how = query_attention("softcap", 9, [4], total=5)
    if not is_known:
        operands[6] = np.array(5, np.int32)
    content, given = declared([*operands, None, numbers(1, QUERY_HEADS, NEW, 5, seed=3)], how, 9)
    agreed(content, *given, within="layer")


@pytest.mark.parametrize(
    ("window", "length", "steps"), [(3, 3, (2, 1, 1, 5, 1)), (2, 5, (7, 1, 1, 1)), (4, 6, (1,) * 9)]
)
@pytest.mark.parametrize("batch", [1, 2])
def test_caches_of_a_window(window: int, length: int, steps: tuple[int, ...], batch: int) -> None:
    """One call after the other, whatever stands behind the tokens that a cache holds."""
    caches = [np.full((batch, KEY_HEADS, length, QUERY_WIDTH), 7, np.float32) for _ in range(2)]
    total = 0
    for count in steps if batch == 1 else [one for one in steps if one == 1 or one is steps[0]]:
        total += count
        operands, how = query_attention("rotary", length, [total - 1] * batch, steps=count, total=total)
        operands[3:5] = caches
        how |= {"local_window_size": window, "sliding_window_cache": 1}
        content, given = node(GROUPED, operands, RESULTS, 21, **how)
        found, wanted = found_by(content, *given), of_onnx_runtime(content, *given)
        more = -(-max(total - length, 0) // (length - window + 1))
        held = total - more * (length - window + 1)
        assert_floats_within(found[0], wanted[0], "layer")
        for one, other in zip(found[1:], wanted[1:], strict=True):
            assert_floats_within(one[:, :, :held], other[:, :, :held], "layer")
        caches = [*found[1:]]


def test_a_window_of_no_token_is_refused() -> None:
    operands, how = query_attention("window", 0, [NEW - 1], is_known=True)
    content, _ = node(f"{CONTRIB}.GroupQueryAttention", operands, RESULTS, 21, **{**how, "local_window_size": 0})
    assert "local_window_size must not be 0" in refused(content)


# EmbedLayerNormalization.

IDS = np.random.default_rng(3).integers(0, 20, (2, 6), np.int32)
KINDS = np.array([[0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 0, 0]], np.int32)


@pytest.mark.parametrize("kinds", [None, KINDS])
def test_embeddings(kinds: Array | None) -> None:
    tables: list[Operand] = [Known((20, 8)), Known((10, 8)), None if kinds is None else Known((2, 8))]
    operands = [IDS, kinds, *tables, Known((8,)), Known((8,))]
    check_node(f"{CONTRIB}.EmbedLayerNormalization", operands, outputs=["y", "", "total"], epsilon=1e-5)


def test_embeddings_at_positions_count_tokens_that_a_mask_shows() -> None:
    mask, positions = np.ones((2, 6), np.int32), np.array([[3, 2, 1, 0, 9, 5]], np.int32)
    mask[1, 4:] = 0
    operands = [IDS, None, Known((20, 8)), Known((10, 8)), None, Known((8,)), Known((8,)), mask, positions]
    content, given = node(f"{CONTRIB}.EmbedLayerNormalization", operands, ["y", "count"], mask_index_type=1)
    # ONNX Runtime has no name for the second output where nothing reads it.
    assert_floats_within(found_by(content, *given)[0], of_onnx_runtime(content, *given)[0], "layer")
