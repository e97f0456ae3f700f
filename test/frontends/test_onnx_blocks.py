"""Products and gathers of weights of few bits, which stay packed: compared with ONNX Runtime and with formulas."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled_ops import check_compiled, variants_together
from onnx import TensorProto, helper
from onnx_graphs import (
    CONTRIB,
    Array,
    Known,
    ModelBuilder,
    Operand,
    check_node,
    found_by,
    numbers,
    of_onnx_runtime,
    refused,
)

from qdialect.arithmetic.block_weights import BlockWeights, ordered_product, pack, quantize_blocks
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

BLOCK_DENSE, BLOCK_GATHER = "qnn.block_dense", "qnn.block_gather"


def runtime(content: bytes, *inputs: Array, level: str = "1") -> Array:
    """What ONNX Runtime gives; at level 1 it multiplies floats by what a DequantizeLinear gives."""
    return of_onnx_runtime(content, *inputs, qdq_matmulnbits_accuracy_level=level)[0]


def found(content: bytes, *inputs: Array, op: str = BLOCK_DENSE, compiles: bool = True) -> tuple[str, Array]:
    """The text of the module, which must have an `op` and no product of f32 constants, and its result."""
    module = import_onnx(content)
    results = interpreter.run(module, list(inputs))
    if compiles:
        check_compiled(module, "host", [list(inputs)], [results])
    text = str(module)
    assert op in text
    assert "qnn.f32_matmul" not in text
    return text, results[0]


def product_of(weights: BlockWeights, bits: int, points: Array | None, level: int, data: Array) -> bytes:
    """MatMulNBits; rows are filled up to whole blocks."""
    (rows, depth), size, blocks = weights.quantized.shape, weights.block, weights.scales.shape[1]
    builder = ModelBuilder()
    whole = np.pad(weights.quantized, ((0, 0), (0, blocks * size - depth)))
    held = [pack(whole, bits).reshape(rows, blocks, -1), weights.scales]
    held += [] if points is None else [points if points.dtype == np.float32 else pack(points, bits)]
    names = [builder.input("x", data.shape), *(builder.constant(one) for one in held)]
    how = {"K": depth, "N": rows, "bits": bits, "block_size": size, "accuracy_level": level}
    return builder.finish(builder.node(f"{CONTRIB}.MatMulNBits", *names, **how), dtype=np.float32, version=21)


def drawn_weights(bits: int, size: int, depth: int, points: str) -> tuple[BlockWeights, Array | None]:
    rng, rows, blocks = np.random.default_rng(bits + size), 11, -(-depth // size)
    quantized = rng.integers(0, 2**bits, (rows, depth)).astype(np.uint8)
    scales = rng.uniform(0.005, 0.02, (rows, blocks)).astype(np.float32)
    given = {"none": None, "bytes": rng.integers(0, 2**bits, (rows, blocks)), "f32": numbers(rows, blocks) + 2}[points]
    held = np.full((rows, blocks), 2 ** (bits - 1)) if given is None else given
    return BlockWeights(quantized, scales, held.astype(np.float32), size), given


def bound(data: Array, weights: BlockWeights) -> Array:
    """How far two orders of the sums of blocks may be apart: ONNX Runtime's has 16 parts, and the zero points apart."""
    size = weights.block
    integers, scales = quantize_blocks(data, size, f16_scales=False)
    total = np.zeros((*data.shape[:-1], len(weights.scales)))
    for index in range(scales.shape[-1]):
        part = slice(index * size, (index + 1) * size)
        own, stored = integers[..., part].astype(np.float64), weights.quantized[:, part].astype(np.float64)
        magnitude = np.abs(own) @ stored.T + np.abs(own.sum(-1, keepdims=True) * weights.zero_points[:, index])
        total += scales[..., index, np.newaxis] * weights.scales[:, index] * magnitude
    return (scales.shape[-1] + 24) * 2.0**-24 * total


@variants_together
@pytest.mark.parametrize("points", ["none", "bytes", "f32"])
@pytest.mark.parametrize(("bits", "size", "depth"), [(2, 32, 70), (2, 16, 48), (4, 32, 96), (8, 16, 40)])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("level", [0, 4])
def test_products_in_blocks(points: str, bits: int, size: int, depth: int, rows: int, level: int) -> None:
    """At level 0 equal from two rows on, where ONNX Runtime adds terms in order; at level 4 within a bound."""
    weights, given = drawn_weights(bits, size, depth, points)
    data = numbers(rows, depth, seed=7)
    content = product_of(weights, bits, given, level, data)
    text, result = found(content, data, compiles=points == "bytes" and rows > 1)
    is_rounded = level == 4 and points != "f32" and (bits, size) != (2, 16)
    assert ('activations = "i8_block"' in text) == is_rounded
    assert f"bits = {bits} : i64, block = {size} : i64" in text
    if bits == 8 and points == "f32":  # ONNX Runtime has no kernel.
        np.testing.assert_array_equal(result, ordered_product(data, weights.values()))
        return
    wanted = runtime(content, data)
    if is_rounded:
        assert (np.abs(result - wanted) <= bound(data, weights)).all()
    elif rows > 1 and points != "f32":
        np.testing.assert_array_equal(result, wanted)
    else:
        magnitudes = np.abs(data) @ (np.abs(weights.quantized * weights.scales.max(1, keepdims=True))).T
        assert (np.abs(result - wanted) <= (depth + 2) * 2.0**-24 * magnitudes).all()


@pytest.mark.parametrize("bits", [4, 8])
def test_the_integers_of_rounded_rows_are_those_of_onnx_runtime(bits: int) -> None:
    """Weights that pick one number each, and zero points of 0: nothing is added, so that every bit is equal."""
    picks, points = np.tile(np.eye(32, dtype=np.uint8), (1, 4)), np.zeros((32, 4), np.uint8)
    data = np.concatenate([numbers(40, 128), np.zeros((1, 128), np.float32)])
    data[0, :8], data[1, 32:64] = [127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5], 0
    for scales in np.eye(4, dtype=np.float32):
        weights = BlockWeights(picks, np.tile(scales, (32, 1)), points.astype(np.float32), 32)
        content = product_of(weights, bits, points, 4, data)
        np.testing.assert_array_equal(interpreter.run(import_onnx(content), [data])[0], runtime(content, data))


@variants_together
@pytest.mark.parametrize("kind", ["ordered", "shuffled", "uneven"])
def test_groups_along_the_depth(kind: str) -> None:
    """The block of each term: even ones are reordered, others become f32."""
    weights, _ = drawn_weights(4, 16, 64, "none")
    rng, data = np.random.default_rng(0), numbers(3, 64)
    even = np.arange(64) // 16
    groups = {"ordered": even, "shuffled": rng.permutation(even), "uneven": rng.integers(0, 4, 64)}[kind]
    builder = ModelBuilder()
    held = [pack(weights.quantized, 4).reshape(11, 4, -1), weights.scales]
    names = [
        builder.input("x", data.shape),
        *map(builder.constant, held),
        "",
        builder.constant(groups.astype(np.int32)),
    ]
    how = {"K": 64, "N": 11, "bits": 4, "block_size": 16, "accuracy_level": 4}
    content = builder.finish(builder.node(f"{CONTRIB}.MatMulNBits", *names, **how), dtype=np.float32, version=21)
    assert (BLOCK_DENSE in str(import_onnx(content))) == (kind != "uneven")
    np.testing.assert_allclose(found_by(content, data)[0], runtime(content, data), rtol=1e-5, atol=1e-5)


@variants_together
@pytest.mark.parametrize(("bits", "has_points"), [(4, False), (4, True), (8, True), (2, False)])
def test_products_with_a_bias(bits: int, has_points: bool) -> None:
    """Of several batches; the last block of a row is not full."""
    rows, depth, size, blocks, random = 7, 40, 16, 3, np.random.default_rng(bits)
    weights = pack(random.integers(0, 2**bits, (rows, blocks * size)), bits).reshape(rows, blocks, -1)
    points = pack(random.integers(0, 2**bits, (rows, blocks)), bits)
    operands = [(2, 5, depth), Known(weights), Known(np.abs(numbers(rows, blocks)) / 8)]
    operands += [Known(points) if has_points else None, None, Known((rows,))]
    check_node(f"{CONTRIB}.MatMulNBits", operands, version=21, K=depth, N=rows, bits=bits, block_size=size)


INT4, UINT4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)


@variants_together
@pytest.mark.parametrize("dtype", [INT4, UINT4])
@pytest.mark.parametrize(
    ("shape", "gathers", "blocks"), [((5, 33), 0, 1), ((5, 16), 1, -1), ((4, 20), 1, 0), ((3, 17, 4), 0, 1)]
)
def test_elements_of_a_table_of_four_bits(dtype: Any, shape: tuple[int, ...], gathers: int, blocks: int) -> None:
    """The zero points count, one for each block along any dimension."""
    low, counts, random = (-8 if dtype == INT4 else 0), list(shape), np.random.default_rng(0)
    counts[blocks] = -(-shape[blocks] // 16)
    table, points = (Known(random.integers(low, low + 16, one).astype(dtype)) for one in (shape, counts))
    operands: list[Operand] = [table, np.array([[2, 0]]), Known(np.abs(numbers(*counts))), points]
    how: dict[str, Any] = {"gather_axis": gathers, "quantize_axis": blocks, "block_size": 16}
    check_node(f"{CONTRIB}.GatherBlockQuantized", operands, version=21, **how)


@pytest.mark.parametrize("has_points", [False, True])
def test_rows_of_a_table_in_bytes(has_points: bool) -> None:
    random = np.random.default_rng(0)
    table, points = (Known(pack(random.integers(0, 16, shape), 4)) for shape in ((9, 32), (9, 2)))
    ids = np.array([[0, 8, 3], [5, 5, 1]])
    operands: list[Operand] = [table, ids, Known(np.abs(numbers(9, 2))), points if has_points else None]
    how: dict[str, Any] = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": 4}
    check_node(f"{CONTRIB}.GatherBlockQuantized", operands, version=21, **how)


KINDS = {
    "int2": (TensorProto.INT2, -2, 2, 25),
    "uint2": (TensorProto.UINT2, 0, 2, 25),
    "int4": (TensorProto.INT4, -8, 4, 21),
    "uint4": (TensorProto.UINT4, 0, 4, 21),
    "int8": (TensorProto.INT8, -128, 8, 21),
    "uint8": (TensorProto.UINT8, 0, 8, 23),
}
FORMS = {
    # Shape of the weights, axis, size of blocks (0: channels), and what multiplies.
    "blocks of rows": ((96, 11), 0, 32, "MatMul"),
    "short block": ((40, 11), 0, 16, "MatMul"),
    "channels": ((24, 11), 1, 0, "MatMul"),
    "blocks behind a transpose": ((11, 64), 1, 16, "Transpose"),
    "channels behind a transpose": ((11, 24), 0, 0, "Transpose"),
    "blocks of a Gemm": ((11, 48), -1, 48, "Gemm"),
}


@variants_together
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_dequantized_weights_stay_packed(kind: str, form: str) -> None:
    """The bits of a product of floats, from as few bits as the file has."""
    code, low, bits, version = KINDS[kind]
    (shape, axis, size, reader), has_points = FORMS[form], len(kind + form) % 2 == 0
    rng, builder = np.random.default_rng(3), ModelBuilder()
    count = [-(-shape[axis] // size) if i == axis % 2 else n for i, n in enumerate(shape)] if size else [shape[axis]]
    weights, points = (rng.integers(low, low + 2**bits, one) for one in (shape, count))
    weights.flat[:2] = low, low + 2**bits - 1
    points = points if has_points else np.zeros(count, np.int64)
    scales = rng.uniform(0.01, 0.02, count).astype(np.float32)
    if bits == 8:
        # NNCF gives scales the sign of the weight farthest from zero.
        scales.flat[::3] *= -1
    names = [builder.constant(0.0) for _ in "wz"]
    builder.constants[-2:] = [
        helper.make_tensor(name, code, one.shape, one.ravel().tolist())
        for name, one in zip(names, (weights, points), strict=True)
    ]
    how = {"axis": axis, **({"block_size": size} if size else {})}
    given = [names[0], builder.constant(scales), *([names[1]] if has_points else [])]
    held = builder.node("DequantizeLinear", *given, **how)
    is_by_row = reader != "MatMul"
    depth = shape[1] if is_by_row else shape[0]
    data = numbers(3, depth, seed=5)
    read = builder.node("Transpose", held) if reader == "Transpose" else held
    x = builder.input("x", data.shape)
    result = builder.node("Gemm", x, read, transB=1) if reader == "Gemm" else builder.node("MatMul", x, read)
    content = builder.finish(result, dtype=np.float32, version=version)
    text, computed = found(content, data, compiles=kind in ("int4", "uint8"))
    assert f"bits = {bits} : i64" in text
    along = [np.repeat(one, size, axis)[: shape[0], : shape[1]] for one in (points, scales)] if size else None
    spread = [1, 1]
    spread[axis] = -1
    zero, scale = along or [one.reshape(spread) for one in (points, scales)]
    values = (weights - zero).astype(np.float32) * scale
    np.testing.assert_array_equal(computed, ordered_product(data, values if is_by_row else values.T))


@variants_together
@pytest.mark.parametrize("reader", ["MatMul", "Gather"])
def test_scales_may_be_dequantized_too(reader: str) -> None:
    rng, builder = np.random.default_rng(3), ModelBuilder()
    weights, steps = rng.integers(-128, 128, (8, 32)).astype(np.int8), rng.integers(1, 255, (8, 2)).astype(np.uint8)
    by_row = rng.uniform(1e-4, 1e-3, 8).astype(np.float32)
    scales = builder.node("DequantizeLinear", builder.constant(steps), builder.constant(by_row), axis=0)
    held = builder.node("DequantizeLinear", builder.constant(weights), scales, axis=1, block_size=16)
    values = (weights * np.repeat(steps * by_row[:, None], 16, 1)).astype(np.float32)
    if reader == "Gather":
        ids = np.array([[3, 0], [7, 7]])
        content = builder.finish(builder.node("Gather", held, builder.input("ids", (2, 2), np.int64)), dtype=np.float32)
        np.testing.assert_array_equal(found(content, ids, op=BLOCK_GATHER)[1], values[ids])
        return
    data = numbers(2, 32)
    read = builder.node("MatMul", builder.input("x", data.shape), builder.node("Transpose", held))
    content = builder.finish(read, dtype=np.float32, version=21)
    np.testing.assert_array_equal(found(content, data)[1], ordered_product(data, values))


@variants_together
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_a_table_with_scales_of_their_own(axis: int) -> None:
    """Rows of an odd number of elements, read along either dimension."""
    rng, builder = np.random.default_rng(3), ModelBuilder()
    table, scales = rng.integers(-8, 8, (9, 7)).astype(np.int8), rng.uniform(0.1, 1, (9, 7)[axis]).astype(np.float32)
    scales[1::2] *= -1
    held = builder.node("DequantizeLinear", builder.constant(table), builder.constant(scales), axis=axis)
    content = builder.finish(
        builder.node("Gather", held, builder.input("ids", (3,), np.int64), axis=axis), dtype=np.float32
    )
    ids = np.array([6, 0, -2])
    text, result = found(content, ids, op=BLOCK_GATHER)
    assert "bits = 4 : i64" in text
    np.testing.assert_array_equal(result, np.take(table * (scales[:, None] if axis == 0 else scales), ids, axis))


@pytest.mark.parametrize("size", [0, 16, 64])
@pytest.mark.parametrize("kind", ["MatMul", "Gemm"])
def test_a_profile_rounds_activations_everywhere(size: int, kind: str) -> None:
    """As ONNX Runtime's default optimization does, in blocks of the weights, or of 32 with scales by channel."""
    rng, builder, data = np.random.default_rng(3), ModelBuilder(), numbers(3, 96)
    quantized = rng.integers(0, 16, (96, 24)).astype(np.uint8)
    shape = (-(-96 // size), 24) if size else (24,)
    scales, points = rng.uniform(0.01, 0.02, shape).astype(np.float32), rng.integers(0, 16, shape).astype(np.uint8)
    names = [builder.constant(one) for one in (quantized, scales, points)]
    held = builder.node("DequantizeLinear", *names, **({"axis": 0, "block_size": size} if size else {"axis": 1}))
    content = builder.finish(builder.node(kind, builder.input("x", data.shape), held), dtype=np.float32, version=21)
    by_block: list[Array] = [one.T if size else np.tile(one, (3, 1)).T for one in (scales, points)]
    weights = BlockWeights(quantized.T, by_block[0], by_block[1].astype(np.float32), size or 32)
    module = import_onnx(content, profile="ort-accuracy-4")
    assert ("activation_block = 32" in str(module)) == (size == 0)
    wanted = runtime(content, data, level="4")
    assert (np.abs(interpreter.run(module, [data])[0] - wanted) <= bound(data, weights)).all()
    assert "i8_block" not in str(import_onnx(content, profile="ort-accuracy-0"))


WIDTH, HEADS, KEY_HEADS, HEAD, INNER, TOKENS, PAST = 64, 4, 2, 16, 96, 50, 8


def decoder(layers: int) -> bytes:
    """One step of a decoder as onnxruntime-genai writes it: weights of 4 bits at accuracy level 4, caches of `PAST`."""
    b, rng = ModelBuilder(), np.random.default_rng(0)

    def drawn(*shape: int) -> str:
        return b.constant(rng.uniform(0.5, 1.5, shape).astype(np.float32))

    def dense(x: str, depth: int, rows: int) -> str:
        weights = b.constant(pack(rng.integers(0, 16, (rows, depth)), 4).reshape(rows, depth // 32, -1))
        scales = b.constant((rng.uniform(0.05, 0.1, (rows, depth // 32)) / depth**0.5).astype(np.float32))
        how = {"K": depth, "N": rows, "bits": 4, "block_size": 32, "accuracy_level": 4}
        return b.node(f"{CONTRIB}.MatMulNBits", x, weights, scales, **how)

    def added(x: str, y: str, name: str) -> tuple[str, str]:
        outputs = [f"norm_{name}", "", "", f"sum_{name}"]
        b.node_of_many(f"{CONTRIB}.SkipSimplifiedLayerNormalization", [x, y, drawn(WIDTH)], outputs, epsilon=1e-5)
        return outputs[0], outputs[3]

    table = b.constant(pack(rng.integers(0, 16, (TOKENS, WIDTH)), 4))
    where = {"gather_axis": 0, "quantize_axis": 1, "block_size": 32, "bits": 4}
    x = b.node(f"{CONTRIB}.GatherBlockQuantized", table, b.input("id", (1, 1), np.int64), drawn(TOKENS, 2), **where)
    length, total = b.input("length", (1,), np.int32), b.constant(np.array(PAST + 1, np.int32))
    angles = np.arange(32)[:, None] / 100 ** (np.arange(HEAD // 2) / (HEAD // 2))
    turns = [b.constant(turn.astype(np.float32)) for turn in (np.cos(angles), np.sin(angles))]
    norm, names = b.node("SimplifiedLayerNormalization", x, drawn(WIDTH), axis=-1, epsilon=1e-5), list[str]()
    for layer in range(layers):
        past = [b.input(f"past_{kind}{layer}", (1, KEY_HEADS, PAST, HEAD)) for kind in ("key", "value")]
        rows = [dense(norm, WIDTH, (HEADS + 2 * KEY_HEADS) * HEAD), "", "", *past, length, total, *turns]
        outputs = [f"heads{layer}", f"key{layer}", f"value{layer}"]
        how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, "do_rotary": 1}
        b.node_of_many(f"{CONTRIB}.GroupQueryAttention", rows, outputs, **how)
        norm, x = added(x, dense(outputs[0], HEADS * HEAD, WIDTH), f"attention{layer}")
        gate = dense(norm, WIDTH, INNER)
        inner = b.node("Mul", b.node("Mul", gate, b.node("Sigmoid", gate)), dense(norm, WIDTH, INNER))
        norm, x = added(x, dense(inner, INNER, WIDTH), f"inner{layer}")
        names += outputs[1:]
    return b.finish(dense(norm, WIDTH, TOKENS), *names, dtype=np.float32, version=21)


def test_a_step_of_a_decoder() -> None:
    content = decoder(2)
    module, cache = import_onnx(content), (1, KEY_HEADS, PAST, HEAD)
    given = [np.array([[7]]), np.array([PAST], np.int32), *(numbers(*cache, seed=i) for i in range(4))]
    for one, other in zip(found_by(content, *given), of_onnx_runtime(content, *given), strict=True):
        assert np.abs(one - other).max() <= 1e-5 * np.abs(other).max()
    counts = [str(module).count(one) for one in (BLOCK_DENSE, BLOCK_GATHER, 'activations = "i8_block"')]
    assert counts == [11, 1, 11]


# QMoE and MoE: the experts of a token, weighed.


def experts_of(kind: str, form: tuple[int, int], given: str, attributes: dict[str, Any]) -> tuple[bytes, list[Array]]:
    """A model of 4 experts for 3 tokens or `many`; `given` names inputs that may be omitted. Some logits are equal."""
    (bits, size), rng, builder = form, np.random.default_rng(4), ModelBuilder()
    has_gate = attributes["activation_type"] == "swiglu"
    inner, width, names = 64, 96, dict[int, str]()
    tokens = 40 if "many" in given else 3
    data = [numbers(1, tokens, width), np.round(numbers(tokens, 4, seed=1))]
    data += [rng.random((tokens, 4)).astype(np.float32)] if "weights" in given else []
    slots = [(2, 4, 11, (1 + has_gate) * inner, width), (5, 7, 12, width, inner)]
    for index, bias, point, rows, depth in (
        slots if kind == "QMoE" else [(2, 3, 0, inner, width), (4, 5, 0, width, inner)]
    ):
        if kind == "MoE":
            names[index] = builder.constant(numbers(4, rows, depth, seed=index) / 8)
        else:
            blocks = (4, rows, depth // size) if size else (4, rows)
            names[index] = builder.constant(pack(rng.integers(0, 2**bits, (4, rows, depth)), bits))
            names[index + 1] = builder.constant(rng.uniform(0.005, 0.02, blocks).astype(np.float32))
            if "points" in given:
                names[point] = builder.constant(pack(rng.integers(0, 2**bits, blocks), bits))
        if "bias" in given:
            names[bias] = builder.constant(numbers(4, rows, seed=rows))
    names |= {index: builder.input(f"x{index}", x.shape) for index, x in zip((0, 1, 14), data, strict=False)}
    inputs = [names.get(index, "") for index in range(max(names) + 1)]
    how = {"expert_weight_bits": bits, **({"block_size": size} if size else {})} if kind == "QMoE" else {}
    node = builder.node(f"{CONTRIB}.{kind}", *inputs, **how, **attributes)
    return builder.finish(node, dtype=np.float32, version=21), data


GATED = {"activation_type": "swiglu", "swiglu_fusion": 1}
EXPERTS: list[tuple[str, tuple[int, int], str, dict[str, Any]]] = [
    ("QMoE", (4, 32), "", {"activation_type": "relu", "k": 2}),
    ("QMoE", (4, 0), "points bias", {"activation_type": "silu", "k": 1}),
    ("QMoE", (8, 0), "points", {"activation_type": "gelu", "k": 4}),
    ("QMoE", (2, 0), "weights", {"activation_type": "identity", "k": 3, "normalize_routing_weights": 1}),
    ("QMoE", (4, 16), "weights bias", {**GATED, "k": 2}),
    (
        "QMoE",
        (4, 32),
        "points",
        {**GATED, "k": 2, "activation_alpha": 1.7, "activation_beta": 1.0, "swiglu_limit": 0.5},
    ),
    ("QMoE", (4, 32), "points", {**GATED, "k": 2, "accuracy_level": 4}),
    ("QMoE", (4, 32), "many bias", {**GATED, "k": 1}),
    ("QMoE", (8, 32), "many", {"activation_type": "relu", "k": 2}),
    ("QMoE", (8, 32), "bias", {"activation_type": "relu", "k": 3}),
    ("MoE", (0, 0), "many bias", {"activation_type": "relu", "k": 2}),
    ("MoE", (0, 0), "", {"activation_type": "gelu", "k": 2, "normalize_routing_weights": 1}),
]


@variants_together
@pytest.mark.parametrize(("kind", "form", "given", "attributes"), EXPERTS)
def test_experts(kind: str, form: tuple[int, int], given: str, attributes: dict[str, Any]) -> None:
    """Sums of floats in another order than ONNX Runtime's."""
    content, inputs = experts_of(kind, form, given, attributes)
    (result,) = found_by(content, *inputs)
    assert ("i8_block" in str(import_onnx(content))) == (form == (8, 32) or "accuracy_level" in attributes)
    np.testing.assert_allclose(result, runtime(content, *inputs), rtol=0, atol=2e-6 * float(np.abs(result).max()))


@variants_together
@pytest.mark.parametrize("target", ["host", "avx2", "x86-64"])
@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("is_row", [False, True])
def test_experts_that_a_gather_picks(kind: type[np.generic], target: str, is_row: bool) -> None:
    """As exported programs have them: products with the matrix of each index, which nobody copies."""
    b, indices = ModelBuilder(), np.array([2, 0, -1, 2, -3])
    weights = numbers(3, 19, 83).astype(kind).astype(np.float32)
    data, bias = numbers(5, 19, 1, seed=1), numbers(83, seed=2)
    picked = b.node(
        "Gather", b.constant(weights if is_row else weights.transpose(0, 2, 1)), b.input("i", (5,), np.int64)
    )
    column = b.input("x", data.shape)
    if is_row:
        product = b.node("MatMul", b.node("Transpose", column, perm=[0, 2, 1]), picked)
    else:
        product = b.node("Transpose", b.node("MatMul", picked, column), perm=[0, 2, 1])
    content = b.finish(b.node("Add", product, b.constant(bias)), dtype=np.float32)
    module = import_onnx(content)
    (result,) = interpreter.run(module, [indices, data])
    check_compiled(module, target, [[indices, data]], [[result]])
    np.testing.assert_allclose(result, runtime(content, indices, data), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("form", "attributes", "reason"),
    [
        ((2, 32), {}, "weights of 2 bits must have one scale a channel"),
        ((4, 32), {"use_sparse_mixer": 1}, "use_sparse_mixer must be 0"),
        ((4, 32), {"swiglu_fusion": 1}, "swiglu_fusion must be 0 for relu, but is 1"),
        ((4, 32), {"weights_prepacked": 1}, "weights_prepacked must be -1 or 0"),
        ((4, 32), {"k": 5}, "k must be in [1, 4], but is 5"),
        ((4, 32), {"quant_type": "fp4"}, "quant_type must be 'int'"),
    ],
)
def test_experts_that_do_not_fit_are_refused(form: tuple[int, int], attributes: dict[str, Any], reason: str) -> None:
    content, _ = experts_of("QMoE", form, "", {"activation_type": "relu", "k": 2, **attributes})
    assert reason in refused(content)
