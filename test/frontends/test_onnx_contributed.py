"""Operators of com.microsoft that its optimizers write into language models, and others: compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import recordings
from compiled_ops import check_compiled, variants_together
from numpy.typing import NDArray
from onnx_graphs import CONTRIB, ModelBuilder, drawn
from recordings import Recording
from tolerances import EXACT, Tolerance, assert_floats_within, assert_within, tolerance_of

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
ORT: Any = import_module("onnxruntime")


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def check(
    kind: str,
    inputs: Sequence[Array | None],
    constants: dict[int, Array] | None = None,
    outputs: Sequence[str] = ("y",),
    **attributes: Any,
) -> None:
    """A node of these inputs, None where one is omitted or among `constants`."""
    content, given = model_of(kind, inputs, constants, outputs, **attributes)
    module = import_onnx(content)
    session = ORT.InferenceSession(content, providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(zip([one.name for one in session.get_inputs()], given, strict=True)))
    results = interpreter.run(module, given)
    check_compiled(module, "host", [given], [results])
    for one, other in zip(results, wanted, strict=True):
        assert one.dtype == other.dtype
        if one.dtype != np.float32:
            np.testing.assert_array_equal(one, other)
        else:
            assert_floats_within(one, other, "layer")


def model_of(
    kind: str,
    inputs: Sequence[Array | None],
    constants: dict[int, Array] | None = None,
    outputs: Sequence[str] = ("y",),
    **attributes: Any,
) -> tuple[bytes, list[Array]]:
    """The model that `check` runs, and what it is given."""
    dtype: type[np.generic] | list[type[np.generic]] = attributes.pop("dtype", np.float32)
    shapes: dict[str, Sequence[int | str]] = attributes.pop("shapes", {})
    held, builder = constants or {}, ModelBuilder()
    names = [
        builder.input(f"x{index}", one.shape, one.dtype.type)
        if one is not None
        else builder.constant(held[index])
        if index in held
        else ""
        for index, one in enumerate(inputs)
    ]
    builder.node_of_many(kind, names, outputs, **attributes)
    given = [one for one in inputs if one is not None]
    found = [name for name in outputs if name]
    return builder.finish(*found, dtype=dtype, version=21, shapes=shapes), given


@variants_together
@pytest.mark.parametrize("constants", [False, True])
def test_remainders_of_floats(constants: bool) -> None:
    x, y = numbers(3, 40) * 8, np.abs(numbers(40, seed=1)) + 0.25
    check("Mod", [x, None if constants else y], {1: y}, fmod=1)


@variants_together
@pytest.mark.parametrize("how", [{}, {"activation": "silu", "dilation": 2}])
@pytest.mark.parametrize("has_state", [False, True])
@pytest.mark.parametrize("steps", [1, 5])
def test_convolutions_that_keep_a_state(how: dict[str, Any], has_state: bool, steps: int) -> None:
    """Of four taps, in calls that are shorter too."""
    state = numbers(2, 6, 3 * how.get("dilation", 1), seed=2) if has_state else None
    inputs = [numbers(2, 6, steps), None, None, state]
    constants = {1: numbers(6, 1, 4, seed=1), 2: numbers(6, seed=3)}
    check(f"{CONTRIB}.CausalConvWithState", inputs, constants, ["y", "state"], **how)


def test_a_mean_of_several() -> None:
    check("Mean", [numbers(2, 5), numbers(5, seed=1), numbers(2, 1, seed=2)])


@variants_together
@pytest.mark.parametrize("kind", ["Sinh", "Cosh", "Tan", "Asinh", "Atanh"])
def test_functions(kind: str) -> None:
    check(kind, [np.clip(numbers(300) * 0.4, -0.9, 0.9)])


def test_shrink() -> None:
    check("Shrink", [numbers(50)], lambd=0.75, bias=0.25)


@variants_together
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("align", [0, 1])
def test_images_read_between_their_elements(mode: str, padding: str, align: int) -> None:
    """Some positions lie outside."""
    grid = np.clip(numbers(2, 4, 6, 2, seed=1), -1.5, 1.5)
    check("GridSample", [numbers(2, 3, 5, 7), grid], mode=mode, padding_mode=padding, align_corners=align)


def packed(values: Array, bits: int) -> Array:
    """Numbers along the last dimension in bytes, the first in the lowest bits."""
    count = 8 // bits
    parts = values.reshape(*values.shape[:-1], -1, count).astype(np.uint32) << (np.arange(count) * bits)
    return parts.sum(-1).astype(np.uint8)


@pytest.mark.parametrize(("bits", "has_points"), [(4, False), (4, True), (8, True), (2, False)])
def test_products_with_weights_in_blocks(bits: int, has_points: bool) -> None:
    """The last block of a row is not full."""
    rows, depth, size, blocks = 7, 40, 16, 3
    random = np.random.default_rng(bits)
    weights = packed(random.integers(0, 2**bits, (rows, blocks, size)), bits)
    scales, points = np.abs(numbers(rows, blocks, seed=1)) / 8, random.integers(0, 2**bits, (rows, 8))
    points[:, blocks:] = 0
    held = packed(points, bits)[:, : -(-blocks * bits // 8)]
    constants = {1: weights, 2: scales, 3: held, 5: numbers(rows, seed=2)}
    inputs = [numbers(2, 5, depth), None, None, None, None, None]
    if not has_points:
        del constants[3]
    check(f"{CONTRIB}.MatMulNBits", inputs, constants, ("y",), K=depth, N=rows, bits=bits, block_size=size)


@pytest.mark.parametrize("has_points", [False, True])
def test_rows_of_a_table_in_blocks(has_points: bool) -> None:
    random = np.random.default_rng(0)
    table = packed(random.integers(0, 16, (9, 32)), 4)
    constants = {0: table, 2: np.abs(numbers(9, 2)), 3: packed(random.integers(0, 16, (9, 2)), 4)}
    if not has_points:
        del constants[3]
    ids = np.array([[0, 8, 3], [5, 5, 1]])
    how: dict[str, Any] = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": 4}
    check(f"{CONTRIB}.GatherBlockQuantized", [None, ids, None, None], constants, **how)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize(
    ("shape", "gathers", "blocks"), [((5, 33), 0, 1), ((5, 16), 1, -1), ((4, 20), 1, 0), ((3, 17, 4), 0, 1)]
)
def test_elements_of_a_table_of_four_bits(dtype: str, shape: tuple[int, ...], gathers: int, blocks: int) -> None:
    """The zero points count, one for each block along any dimension."""
    low = -8 if dtype == "int4" else 0
    counts = list(shape)
    counts[blocks] = -(-shape[blocks] // 16)
    random, four_bits = np.random.default_rng(0), np.dtype(getattr(import_module("ml_dtypes"), dtype))
    table, points = (random.integers(low, low + 16, one).astype(four_bits) for one in (shape, counts))
    constants = {0: table, 2: np.abs(numbers(*counts)), 3: points}
    how: dict[str, Any] = {"gather_axis": gathers, "quantize_axis": blocks, "block_size": 16}
    check(f"{CONTRIB}.GatherBlockQuantized", [None, np.array([[2, 0]]), None, None], constants, **how)


EMBEDDINGS = {2: numbers(20, 8), 3: numbers(10, 8, seed=1), 5: numbers(8, seed=3), 6: numbers(8, seed=4)}
IDS = np.random.default_rng(3).integers(0, 20, (2, 6), np.int32)
KINDS = np.array([[0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 0, 0]], np.int32)


@pytest.mark.parametrize("kinds", [None, KINDS])
def test_embeddings(kinds: Array | None) -> None:
    table = EMBEDDINGS if kinds is None else {**EMBEDDINGS, 4: numbers(2, 8, seed=2)}
    inputs = [IDS, kinds, None, None, None, None, None]
    check(f"{CONTRIB}.EmbedLayerNormalization", inputs, table, ["y", "", "total"], epsilon=1e-5)


def test_embeddings_at_positions_count_what_a_mask_shows() -> None:
    mask, positions = np.ones((2, 6), np.int32), np.array([[3, 2, 1, 0, 9, 5]], np.int32)
    mask[1, 4:] = 0
    inputs = [IDS, None, None, None, None, None, None, mask, positions]
    builder = ModelBuilder()
    names = [
        builder.constant(EMBEDDINGS[index])
        if index in EMBEDDINGS
        else builder.input(f"x{index}", one.shape, np.int32)
        if one is not None
        else ""
        for index, one in enumerate(inputs)
    ]
    builder.node_of_many(f"{CONTRIB}.EmbedLayerNormalization", names, ["y", "count"], mask_index_type=1)
    given = [one for one in inputs if one is not None]
    content = builder.finish("y", dtype=np.float32)
    session = ORT.InferenceSession(content, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, dict(zip([one.name for one in session.get_inputs()], given, strict=True)))
    assert_floats_within(interpreter.run(import_onnx(content), given)[0], wanted, "layer")


HEADS, KEY_HEADS, WIDTH, STEPS = 4, 2, 16, 3
CACHES = {"cos": np.cos(numbers(16, 8)), "sin": np.sin(numbers(16, 8))}


def query_attention(
    batch: int, earlier: int, lengths: Array, steps: int = STEPS, **attributes: Any
) -> tuple[list[Array | None], dict[int, Array]]:
    """Inputs and constants of GroupQueryAttention."""
    own = [numbers(batch, steps, count * WIDTH, seed=i) for i, count in enumerate((HEADS, KEY_HEADS, KEY_HEADS))]
    rows: list[Array | None] = [np.concatenate(own, 2), None, None] if attributes.get("is_packed") else [*own]
    past = [numbers(batch, KEY_HEADS, earlier, WIDTH, seed=seed) for seed in (7, 8)]
    total = np.array(earlier + steps, np.int32)
    turned: list[Array | None] = [None, None] if attributes.get("do_rotary") else []
    constants = {6: total, 7: CACHES["cos"], 8: CACHES["sin"]} if turned else {6: total}
    inputs: list[Array | None] = [*rows, *(past if earlier else [None, None]), lengths, None, *turned]
    if attributes.get("has_sinks"):
        inputs += [None] * (11 - len(inputs)) + [numbers(HEADS, seed=9)]
    return inputs, constants


QUERY_CASES: dict[str, dict[str, Any]] = {
    "rotary": {"do_rotary": 1},
    "interleaved": {"do_rotary": 1, "rotary_interleaved": 1},
    "window": {"local_window_size": 3},
    "softcap": {"softcap": 2.5, "scale": 0.5},
    "window of scores with a bound": {"softcap": 2.5, "local_window_size": 1},
    "packed": {"do_rotary": 1, "is_packed": True},
    "sinks": {"has_sinks": True, "local_window_size": 3},
    "smooth softmax": {"smooth_softmax": 1, "softcap": 2.5},
}


@variants_together
@pytest.mark.parametrize("name", QUERY_CASES)
@pytest.mark.parametrize("earlier", [0, 5])
def test_queries_that_share_keys(name: str, earlier: int) -> None:
    how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, **QUERY_CASES[name]}
    lengths = np.array([earlier + STEPS - 1], np.int32)
    inputs, constants = query_attention(1, earlier, lengths, **how)
    how = {key: value for key, value in how.items() if key not in ("is_packed", "has_sinks")}
    inputs[5] = None
    check(f"{CONTRIB}.GroupQueryAttention", inputs, {**constants, 5: lengths}, ["y", "keys", "values"], **how)


@variants_together
@pytest.mark.parametrize("name", [*QUERY_CASES, "all keys"])
@pytest.mark.parametrize(("earlier", "lengths"), [(0, [2, 1, 0]), (5, [4])])
def test_sequences_of_other_lengths(name: str, earlier: int, lengths: list[int]) -> None:
    """Known when the network runs: padding behind a sequence, and caches longer than what they hold."""
    how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, **QUERY_CASES.get(name, {"causal": 0})}
    inputs, constants = query_attention(len(lengths), earlier, np.array(lengths, np.int32), **how)
    how = {key: value for key, value in how.items() if key not in ("is_packed", "has_sinks")}
    check(f"{CONTRIB}.GroupQueryAttention", inputs, constants, ["y", "keys", "values"], **how)


@variants_together
@pytest.mark.parametrize("name", ["rotary", "window", "packed", "window of scores with a bound"])
@pytest.mark.parametrize(
    ("earlier", "total", "steps", "lengths"), [(9, 6, 3, [5]), (9, 3, 3, [2, 1]), (5, 5, 3, [3]), (9, 7, 1, [6, 0])]
)
def test_caches_that_are_longer_than_all_sequences(
    name: str, earlier: int, total: int, steps: int, lengths: list[int]
) -> None:
    """Buffers that past and present share: of the lengths of a call, of a first prompt, and of one that grows."""
    how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, **QUERY_CASES[name]}
    inputs, constants = query_attention(len(lengths), earlier, np.array(lengths, np.int32), steps, **how)
    how = {key: value for key, value in how.items() if key not in ("is_packed", "has_sinks")}
    constants[6] = np.array(total, np.int32)
    check(f"{CONTRIB}.GroupQueryAttention", inputs, constants, ["y", "keys", "values"], **how)


@variants_together
@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize(
    ("earlier", "total", "steps", "lengths"),
    [(0, 3, 3, [2, 1]), (5, 8, 3, [7]), (9, 6, 1, [5, 3]), (9, 10, 1, [9, 7, 4])],
)
def test_caches_of_eight_bits(kind: str, earlier: int, total: int, steps: int, lengths: list[int]) -> None:
    how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, "do_rotary": 1, "kv_cache_bit_width": 8}
    how |= {"k_quant_type": kind, "v_quant_type": kind}
    inputs, constants = query_attention(len(lengths), earlier, np.array(lengths, np.int32), steps, do_rotary=1)
    count = KEY_HEADS * WIDTH if kind == "PER_CHANNEL" else 1
    scales = np.abs(numbers(2, count, seed=3)).astype(np.float32) * 0.01 + 0.005
    past = len(lengths), KEY_HEADS, earlier, WIDTH
    inputs[3:5] = [drawn(past, np.int8, seed) for seed in (4, 5)]
    inputs += [None] * (14 - len(inputs))
    constants |= {6: np.array(total, np.int32), 12: scales[0], 13: scales[1]}
    dtype = [np.float32, np.int8, np.int8]
    check(f"{CONTRIB}.GroupQueryAttention", inputs, constants, ["y", "keys", "values"], dtype=dtype, **how)


def total_at_run_time(past: int, present: int | str, steps: int, **attributes: Any) -> tuple[bytes, list[Array]]:
    """GroupQueryAttention that reads `total_sequence_length`, its caches `past` and `present` long."""
    inputs, constants = query_attention(1, past, np.array([0], np.int32), steps, **attributes)
    inputs[6] = np.array([0], np.int32)
    how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, **attributes}
    cache = (1, KEY_HEADS, present, WIDTH)
    names, shapes = ["y", "keys", "values"], {"keys": cache, "values": cache}
    return model_of(f"{CONTRIB}.GroupQueryAttention", inputs, constants, names, shapes=shapes, **how)


@pytest.mark.parametrize("how", [{"do_rotary": 1}, {"local_window_size": 2, "softcap": 2.5}])
@pytest.mark.parametrize(
    ("past", "present", "steps", "totals"), [(9, 9, 3, (3, 5, 9)), (9, 9, 1, (1, 7)), (5, 8, 3, (8,)), (0, 3, 3, (3,))]
)
def test_totals_that_are_known_at_run_time(
    past: int, present: int, steps: int, totals: tuple[int, ...], how: dict[str, Any]
) -> None:
    """One network for the first prompt, later ones and tokens; another total than caches are for is seen in results."""
    content, given = total_at_run_time(past, present, steps, **how)
    module, session = import_onnx(content), ORT.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    for total in totals:
        given[names.index("x5")][:], given[names.index("x6")][:] = total - 1, total
        results = interpreter.run(module, given)
        check_compiled(module, "host", [given], [results])
        for one, other in zip(results, session.run(None, dict(zip(names, given, strict=True))), strict=True):
            assert_floats_within(one, other, "layer")
    given[names.index("x6")][:] = max(past, present) + 1
    assert np.isnan(interpreter.run(module, given)[0]).all()


def test_a_total_at_run_time_says_nothing_of_caches_that_may_grow() -> None:
    content, _ = total_at_run_time(9, "grown", 3)
    with pytest.raises(ImportModelError, match="must be constant where output 1 is not declared to be 9 long"):
        import_onnx(content)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_bias_has_no_columns_for_the_rest_of_a_shared_buffer(is_known: bool) -> None:
    lengths = np.array([4], np.int32)
    inputs, constants = query_attention(1, 9, lengths)
    inputs += [None, None, None, numbers(1, HEADS, STEPS, 5, seed=3)]
    if not is_known:
        inputs[6] = np.array(5, np.int32)
    how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, "shapes": {"keys": (1, KEY_HEADS, 9, WIDTH)}}
    constants[6] = np.array(5, np.int32)
    check(f"{CONTRIB}.GroupQueryAttention", inputs, constants, ["y", "keys", "values"], **how)


@pytest.mark.parametrize(
    ("window", "length", "steps"), [(3, 3, (2, 1, 1, 5, 1)), (2, 5, (7, 1, 1, 1)), (4, 6, (1,) * 9)]
)
@pytest.mark.parametrize("batch", [1, 2])
def test_caches_of_a_window(window: int, length: int, steps: tuple[int, ...], batch: int) -> None:
    """One call after the other, whatever stands behind the tokens that a cache holds."""
    how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, "do_rotary": 1}
    how |= {"local_window_size": window, "sliding_window_cache": 1}
    caches = [np.full((batch, KEY_HEADS, length, WIDTH), 7, np.float32) for _ in range(2)]
    total, names = 0, ["y", "keys", "values"]
    for count in steps if batch == 1 else [one for one in steps if one == 1 or one is steps[0]]:
        total += count
        lengths = np.full(batch, total - 1, np.int32)
        inputs, constants = query_attention(batch, length, lengths, count, do_rotary=1)
        inputs[3:5], constants[6] = caches, np.array(total, np.int32)
        content, given = model_of(f"{CONTRIB}.GroupQueryAttention", inputs, constants, names, **how)
        session = ORT.InferenceSession(content, providers=["CPUExecutionProvider"])
        wanted = session.run(None, dict(zip([one.name for one in session.get_inputs()], given, strict=True)))
        module = import_onnx(content)
        results = interpreter.run(module, given)
        check_compiled(module, "host", [given], [results])
        more = -(-max(total - length, 0) // (length - window + 1))
        held = total - more * (length - window + 1)
        assert_floats_within(results[0], wanted[0], "layer")
        for one, other in zip(results[1:], wanted[1:], strict=True):
            assert_floats_within(one[:, :, :held], other[:, :, :held], "layer")
        caches = results[1:]


def test_a_window_of_no_token_is_refused() -> None:
    how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, "local_window_size": 0}
    inputs, constants = query_attention(1, 0, np.array([STEPS - 1], np.int32))
    inputs[5] = None
    with pytest.raises(ImportModelError, match="local_window_size must not be 0"):
        check(
            f"{CONTRIB}.GroupQueryAttention",
            inputs,
            {**constants, 5: np.array([STEPS - 1], np.int32)},
            ["y", "keys", "values"],
            **how,
        )


@variants_together
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_choices_of_quantized_values(dtype: type[np.generic]) -> None:
    condition, shape = drawn((3, 1, 5), np.uint8) > 128, (3, 4, 5)
    scales = {index: np.array(scale, np.float32) for index, scale in ((2, 0.05), (5, 0.02), (7, 0.04))}
    points = {index: np.array(point, dtype) for index, point in ((3, 3), (6, 4), (8, 5))}
    inputs = [condition, drawn(shape, dtype), None, None, drawn(shape, dtype, 1), *[None] * 4]
    check(f"{CONTRIB}.QLinearWhere", inputs, {**scales, **points}, dtype=dtype)


# ONNX models against numbers that ONNX Runtime gave.
#
# `tools/record/README.md` says what the families are and which version and options gave them.  Of the f32 sums ONNX
# Runtime computes those results that its order of adding decides.

FAMILIES = ("contractions", "elementwise", "movement", "resize", "softmax", "qdq_groups")
CASES = {
    f"{family}.{name}": case for family in FAMILIES for name, case in recordings.read_family(f"onnx_{family}").items()
}
LAYERS = recordings.read_family("onnx_layers")
SUMS = recordings.read_family("onnx_float_sums")


def check_recorded(case: Recording, tolerance: Tolerance) -> int:
    """How many elements of all outputs are away."""
    outputs = interpreter.run(import_onnx(case.model), list(case.inputs))
    for pair in zip(outputs, case.outputs, strict=True):
        assert_within(*pair, tolerance)
    return sum(int((found != wanted).sum()) for found, wanted in zip(outputs, case.outputs, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_equals_the_recorded_output(case: str) -> None:
    assert check_recorded(CASES[case], EXACT) == 0


@pytest.mark.parametrize("case", LAYERS)
def test_layers_are_as_close_as_their_tolerance_says(case: str) -> None:
    check_recorded(LAYERS[case], tolerance_of(".onnx", case.rpartition("_")[0]))


@pytest.mark.parametrize("kind", sorted({case.partition("_")[0] for case in SUMS}))
def test_sums_of_floats_are_as_close_as_their_tolerance_says(kind: str) -> None:
    """And not closer: an operator whose cases are all equal would need none."""
    cases = [case for name, case in SUMS.items() if name.startswith(f"{kind}_")]
    tolerance = tolerance_of(".onnx", kind)
    assert (sum(check_recorded(case, tolerance) for case in cases) > 0) == (tolerance != EXACT)
