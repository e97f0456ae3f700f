"""Products and gathers of weights of few bits, which stay packed: compared with ONNX Runtime and with formulas."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from compiled_ops import check_compiled, variants_together
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx_graphs import CONTRIB, ModelBuilder

from qdialect.arithmetic.block_weights import BlockWeights, ordered_product, pack, quantize_blocks
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

Array = NDArray[Any]
ORT: Any = import_module("onnxruntime")
BLOCK_DENSE, BLOCK_GATHER = "qnn.block_dense", "qnn.block_gather"


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def runtime(content: bytes, *inputs: Array) -> Array:
    """What ONNX Runtime gives, which multiplies floats by what a DequantizeLinear gives."""
    options = ORT.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    session = ORT.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([one.name for one in session.get_inputs()], inputs, strict=True)))[0]


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
    text, result = found(content, data, compiles=points == "bytes")
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
    module = import_onnx(content)
    results = interpreter.run(module, [data])
    check_compiled(module, "host", [[data]], [results])
    assert (BLOCK_DENSE in str(module)) == (kind != "uneven")
    np.testing.assert_allclose(results[0], runtime(content, data), rtol=1e-5, atol=1e-5)


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
    held = builder.node("DequantizeLinear", builder.constant(table), builder.constant(scales), axis=axis)
    content = builder.finish(
        builder.node("Gather", held, builder.input("ids", (3,), np.int64), axis=axis), dtype=np.float32
    )
    ids = np.array([6, 0, -2])
    text, result = found(content, ids, op=BLOCK_GATHER)
    assert "bits = 4 : i64" in text
    np.testing.assert_array_equal(result, np.take(table * (scales[:, None] if axis == 0 else scales), ids, axis))
