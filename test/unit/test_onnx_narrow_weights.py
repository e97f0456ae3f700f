"""Weights of 4 bits are integers of 8, and weights that are quantized in blocks are f32 constants."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx_agreement import ORT
from onnx_graphs import ModelBuilder, drawn, run
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
X, Y = (0.02, 128), (0.1, 120)
QUANTIZED = drawn((3, 10), np.uint8)
FLOATS = np.random.default_rng(1).normal(size=(3, 10)).astype(np.float32)
KINDS = {"int4": (TensorProto.INT4, -8), "uint4": (TensorProto.UINT4, 0)}


def _narrow(model: ModelBuilder, kind: str, array: Array) -> str:
    name = model.constant(0.0)
    model.constants[-1] = helper.make_tensor(name, KINDS[kind][0], array.shape, array.ravel().tolist())
    return name


def _drawn(kind: str, *shape: int) -> Array:
    low = KINDS[kind][1]
    return np.random.default_rng(2).integers(low, low + 16, shape)


@pytest.mark.parametrize("kind", KINDS)
def test_products_with_weights_of_4_bits_are_those_of_integers(kind: str) -> None:
    weights, point = _drawn(kind, 10, 4), 3

    def content(narrow: bool) -> bytes:
        model = ModelBuilder()
        data = model.dequantize(model.input("x", (3, 10), np.uint8), X)
        wide = np.int8 if kind == "int4" else np.uint8
        held = [weights, np.array(point)]
        names = [_narrow(model, kind, one) if narrow else model.constant(one.astype(wide)) for one in held]
        matrix = model.node("DequantizeLinear", names[0], model.constant(0.1), names[1])
        return model.finish(model.quantize(model.node("MatMul", data, matrix), Y), version=21)

    assert "qnn.dense" in str(import_onnx(content(True)))
    np.testing.assert_array_equal(run(content(True), QUANTIZED), run(content(False), QUANTIZED))


@pytest.mark.parametrize("kind", ["int4", "uint4", "int8"])
@pytest.mark.parametrize(("axis", "size"), [(0, 4), (-1, 2)])
def test_blocks_have_scales_of_their_own(kind: str, axis: int, size: int) -> None:
    weights = drawn((10, 4), np.int8) if kind == "int8" else _drawn(kind, 10, 4)
    shape = (3, 4) if axis == 0 else (10, 2)
    scales = np.random.default_rng(3).uniform(0.1, 1, shape).astype(np.float32)
    points = np.random.default_rng(4).integers(0, 7, shape)
    model = ModelBuilder()
    held = [
        model.constant(one.astype(np.int8)) if kind == "int8" else _narrow(model, kind, one)
        for one in (weights, points)
    ]
    numbers = model.node("DequantizeLinear", held[0], model.constant(scales), held[1], axis=axis, block_size=size)
    content = model.finish(model.node("Mul", model.input("x", ()), numbers), dtype=np.float32, version=21)
    repeated = [np.repeat(one, size, axis)[:10] for one in (scales, points)]
    wanted = (weights - repeated[1]).astype(np.float32) * repeated[0]
    np.testing.assert_array_equal(run(content, np.array(1, np.float32)), wanted)


def _blocks(scales: Array, size: int) -> bytes:
    model = ModelBuilder()
    weights = model.constant(drawn((10, 4), np.int8))
    numbers = model.node("DequantizeLinear", weights, model.constant(scales), axis=0, block_size=size)
    return model.finish(model.node("MatMul", model.input("x", (3, 10)), numbers), dtype=np.float32, version=21)


@pytest.mark.parametrize("depth", [20, 64])
def test_floats_times_weights_of_8_bits_are_not_rounded(depth: int) -> None:
    """As by ONNX Runtime with an option; without, it rounds the activations to 8 bits and is further from the truth."""
    rng = np.random.default_rng(5)
    model, scales = ModelBuilder(), rng.uniform(0.001, 0.01, 24).astype(np.float32)
    weights, data = drawn((depth, 24), np.int8), rng.normal(size=(3, depth)).astype(np.float32)
    matrix = model.weight(weights, scales.tolist(), 1)
    content = model.finish(model.node("MatMul", model.input("x", (3, depth)), matrix), dtype=np.float32)
    found = run(content, data)
    options = ORT.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    (wanted,) = ORT.InferenceSession(content, options).run(None, {"x": data})
    assert_floats_within(found, wanted, "layer")
    (rounded,) = ORT.InferenceSession(content).run(None, {"x": data})
    truth = data.astype(np.float64) @ (weights * scales.astype(np.float64))
    assert_floats_within(found, truth, "layer")
    with pytest.raises(AssertionError):
        assert_floats_within(rounded, truth, "layer")


def test_what_fits_no_block_is_refused() -> None:
    with pytest.raises(ImportModelError, match=r"scale must have the shape \[3, 4\], but got \[2, 4\]"):
        import_onnx(_blocks(np.ones((2, 4), np.float32), 4))
    with pytest.raises(ImportModelError, match="block_size must be at least 1, but got -3"):
        import_onnx(_blocks(np.ones((2, 4), np.float32), -3))


def test_data_in_blocks_is_refused() -> None:
    model = ModelBuilder()
    data = model.input("x", (10, 4), np.int8)
    numbers = model.node("DequantizeLinear", data, model.constant(np.ones((5, 4), np.float32)), axis=0, block_size=2)
    with pytest.raises(ImportModelError, match="input 0 must be constant where it is quantized in blocks"):
        import_onnx(model.finish(numbers, dtype=np.float32, version=21))
