"""Operators of ONNX models other than contractions: ONNX Runtime's formulas on every quantized value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_graphs import CONTRIB, ModelBuilder, f32_values, quantized_of, run

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

Array = NDArray[Any]
X, Y, Z = (0.043, 117), (0.031, 5), (0.057, 90)
ALL = np.arange(256, dtype=np.uint8).reshape(16, 16)


def image(shape: tuple[int, ...], seed: int = 0, dtype: type[np.generic] = np.uint8) -> Array:
    info = np.iinfo(np.dtype(dtype).name)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def leaky(x: Array) -> Array:
    return np.where(x >= 0, x, x * np.float32(0.1))


@pytest.mark.parametrize(("kind", "function"), [("Sigmoid", sigmoid), ("LeakyRelu", leaky)])
def test_qlinear_function_with_omitted_zero_points(kind: str, function: Callable[[Array], Array]) -> None:
    values, attributes = ALL.view(np.int8), {"alpha": 0.1} if kind == "LeakyRelu" else {}
    b = ModelBuilder()
    inputs = (b.input("x", ALL.shape, np.int8), b.constant(0.05), "", b.constant(0.013))
    content = b.finish(b.node(f"{CONTRIB}.QLinear{kind}", *inputs, **attributes), dtype=np.int8)
    assert np.array_equal(
        run(content, values), quantized_of(function(f32_values(values, (0.05, 0))), (0.013, 0), np.int8)
    )


@pytest.mark.parametrize("in_attributes", [True, False])
def test_clip_takes_bounds_either_way(in_attributes: bool) -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", ALL.shape, np.uint8), X)
    if in_attributes:
        clipped = b.node("Clip", data, min=-1.0, max=3.0)
    else:
        clipped = b.node("Clip", data, b.constant(-1.0), b.constant(3.0))
    assert np.array_equal(
        run(b.finish(b.quantize(clipped, Y)), ALL), quantized_of(np.clip(f32_values(ALL, X), -1, 3), Y)
    )


def summed(lhs: Array, rhs: Array, to: tuple[float, int] = Z) -> Array:
    """ONNX Runtime: one float32 sum with the zero points folded into a constant, rounded to even."""
    left, right = np.float32(X[0]) / np.float32(to[0]), np.float32(Y[0]) / np.float32(to[0])
    constant = np.float32(to[1]) - (left * np.float32(X[1]) + right * np.float32(Y[1]))
    total = lhs.astype(np.float32) * left + (rhs.astype(np.float32) * right + constant)
    return np.clip(np.rint(total), 0, 255).astype(np.uint8)


def multiplied(lhs: Array, rhs: Array) -> Array:
    factor = np.float32(X[0]) * np.float32(Y[0]) / np.float32(Z[0])
    product = (lhs.astype(int) - X[1]) * (rhs.astype(int) - Y[1])
    return np.clip(np.rint(product.astype(np.float32) * factor + np.float32(Z[1])), 0, 255).astype(np.uint8)


BINARIES = [("Add", summed), ("Mul", multiplied)]


@pytest.mark.parametrize(("kind", "function"), BINARIES)
def test_sum_and_product_on_every_pair_of_values(kind: str, function: Callable[[Array, Array], Array]) -> None:
    lhs, rhs = ALL.reshape(256, 1), ALL.reshape(1, 256)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", lhs.shape, np.uint8), X)
    other = b.node("DequantizeLinear", b.constant(rhs), *b.parameters(Y, np.uint8))
    assert np.array_equal(run(b.finish(b.quantize(b.node(kind, data, other), Z)), lhs), function(lhs, rhs))
    b = ModelBuilder()
    left = (b.input("x", lhs.shape, np.uint8), *b.parameters(X, np.uint8))
    right = (b.constant(rhs), *b.parameters(Y, np.uint8))
    content = b.finish(b.node(f"{CONTRIB}.QLinear{kind}", *left, *right, *b.parameters(Z, np.uint8)))
    assert np.array_equal(run(content, lhs), function(lhs, rhs))


def test_dequantize_and_quantize_alone_are_a_table() -> None:
    b = ModelBuilder()
    content = b.finish(
        b.quantize(b.dequantize(b.input("x", ALL.shape, np.uint8), X), (0.02, -9), np.int8), dtype=np.int8
    )
    assert np.array_equal(run(content, ALL), quantized_of(f32_values(ALL, X), (0.02, -9), np.int8))


@pytest.mark.parametrize("is_qlinear", [True, False])
@pytest.mark.parametrize("count", [16, 17, 40])
def test_concat_takes_any_number_of_parts(count: int, is_qlinear: bool) -> None:
    images = [image((1, 3, 2, 2), seed) for seed in range(count)]
    by = [(0.01 + 0.001 * i, i) for i in range(count)]
    b = ModelBuilder()
    names = [b.input(f"x{i}", one.shape, np.uint8) for i, one in enumerate(images)]
    if is_qlinear:
        parts = [one for name, own in zip(names, by, strict=True) for one in (name, *b.parameters(own, np.uint8))]
        out = b.node(f"{CONTRIB}.QLinearConcat", *b.parameters(Z, np.uint8), *parts, axis=1)
    else:
        values = [b.dequantize(name, own) for name, own in zip(names, by, strict=True)]
        out = b.quantize(b.node("Concat", *values, axis=1), Z)
    wanted = [quantized_of(f32_values(one, own), Z) for one, own in zip(images, by, strict=True)]
    (found,) = interpreter.run(import_onnx(b.finish(out)), images)
    assert np.array_equal(found, np.concatenate(wanted, axis=1))


MOVEMENTS: list[tuple[str, list[Array], dict[str, Any], Callable[[Array], Array]]] = [
    ("Transpose", [], {"perm": [2, 0, 1]}, lambda x: x.transpose(2, 0, 1)),
    ("Transpose", [], {}, lambda x: x.T),
    ("Reshape", [np.array([0, -1])], {}, lambda x: x.reshape(2, -1)),
    ("Flatten", [], {"axis": 2}, lambda x: x.reshape(6, 4)),
    ("Unsqueeze", [np.array([0, -1])], {}, lambda x: x[None, ..., None]),
    ("Pad", [np.array([0, 1, 0, 2, 0, 0]), np.array(0, np.float32)], {}, lambda x: np.pad(x, ((0, 2), (1, 0), (0, 0)))),
]


@pytest.mark.parametrize(("kind", "operands", "attributes", "function"), MOVEMENTS)
@pytest.mark.parametrize("before", [True, False])
def test_movement_on_either_side_of_a_quantization(
    kind: str, operands: list[Array], attributes: dict[str, Any], function: Callable[[Array], Array], before: bool
) -> None:
    """Before: of f32 values that are quantized afterwards. After: of quantized values that are dequantized first."""
    b = ModelBuilder()
    given = [b.constant(operand) for operand in operands]
    if before:
        x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
        content = b.finish(b.quantize(b.node(kind, b.input("x", x.shape), *given, **attributes), X))
        wanted = quantized_of(function(x), X)
    else:
        x = image((2, 3, 4))
        data = b.dequantize(b.input("x", x.shape, np.uint8), X)
        content = b.finish(b.node(kind, data, *given, **attributes), dtype=np.float32)
        wanted = function(f32_values(x, X))
    found = run(content, x)
    assert found.shape == wanted.shape
    assert np.array_equal(found, wanted)


def test_parameters_by_channel_of_what_is_computed() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    scales, points = np.array([0.01, 0.02, 0.03], np.float32), np.array([100, 128, 150], np.uint8)
    b = ModelBuilder()
    parameters = (b.constant(scales), b.constant(points))
    values = b.node("QuantizeLinear", b.input("x", x.shape), *parameters, axis=1)
    turned = b.node("Transpose", b.node("DequantizeLinear", values, *parameters, axis=-2), perm=[1, 0, 2])
    wanted = np.clip(np.rint(x / scales[:, None]) + points[:, None], 0, 255)
    wanted = ((wanted - points[:, None]).astype(np.float32) * scales[:, None]).transpose(1, 0, 2)
    assert np.array_equal(run(b.finish(turned, dtype=np.float32), x), wanted)


def test_weights_that_the_model_quantizes_itself_are_constants() -> None:
    x, w = image((3, 5)), np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    b = ModelBuilder()
    weight = b.dequantize(b.quantize(b.constant(w), (0.02, 0), np.int8), (0.02, 0), np.int8)
    product = b.node("MatMul", b.dequantize(b.input("x", x.shape, np.uint8), (0.5, 7)), weight)
    acc = (x.astype(int) - 7) @ quantized_of(w, (0.02, 0), np.int8).astype(int)
    found = run(b.finish(product, dtype=np.float32), x)
    assert np.array_equal(found, acc.astype(np.float32) * (np.float32(0.5) * np.float32(0.02)))


def softmaxed(x: Array, axis: int, to: tuple[float, int], dtype: type[np.generic]) -> Array:
    """ONNX Runtime: entries scaled by t keep the sum of a row finite; floor(1 / s_y) times an entry, over the sum."""
    scale = float(np.float32(X[0]))
    shift = float(np.log(np.finfo(np.float32).max / np.float32(x.shape[axis])) - np.float32(5)) / scale
    distance = x.max(axis=axis, keepdims=True).astype(int) - x
    terms = np.exp((shift - distance) * scale).astype(np.float32)
    total = np.take(np.add.accumulate(terms, axis=axis), [-1], axis=axis)
    info = np.iinfo(np.dtype(dtype).name)
    return np.clip(np.rint(terms * np.floor(1 / np.float32(to[0])) / total) + to[1], info.min, info.max)


@pytest.mark.parametrize(("version", "axis"), [(13, None), (13, 1), (11, None), (11, 2)])
@pytest.mark.parametrize("is_qlinear", [True, False])
def test_softmax(version: int, axis: int | None, is_qlinear: bool) -> None:
    """Before operator set 13 rows run along all dimensions from the axis on."""
    x, to = image((2, 3, 5, 4)), (1 / 256, 0)
    b = ModelBuilder()
    data, attributes = b.input("x", x.shape, np.uint8), {} if axis is None else {"axis": axis}
    if is_qlinear:
        inputs = (data, *b.parameters(X, np.uint8), *b.parameters(to, np.uint8))
        out = b.node(f"{CONTRIB}.QLinearSoftmax", *inputs, opset=version, **attributes)
    else:
        out = b.quantize(b.node("Softmax", b.dequantize(data, X), **attributes), to)
    if version >= 13:
        wanted = softmaxed(x, -1 if axis is None else axis, to, np.uint8)
    else:
        # ONNX Runtime's own operator has another default.
        flat = x.reshape((30 if is_qlinear else 2) if axis is None else 6, -1)
        wanted = softmaxed(flat, 1, to, np.uint8).reshape(x.shape)
    assert np.array_equal(run(b.finish(out, version=version), x), wanted)


def test_integers_are_f32_values_once_they_are_cast() -> None:
    """A picture of bytes that the model casts, scales and quantizes is a table of them."""
    b = ModelBuilder()
    picture = b.input("x", ALL.shape, np.uint8)
    scaled = b.node("Mul", b.node("CastLike", picture, b.constant(1.0)), b.constant(float(np.float32(1 / 255))))
    module = import_onnx(b.finish(b.quantize(scaled, (0.02, 3))))
    wanted = quantized_of(ALL.astype(np.float32) * np.float32(1 / 255), (0.02, 3))
    assert next(op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations) == "qnn.lut"
    assert np.array_equal(interpreter.run(module, [ALL])[0], wanted)


@pytest.mark.parametrize(("bounds", "minimum", "maximum"), [((-3, 70), -3, 70), ((None, 5), -128, 5), ((9, 2), 2, 2)])
def test_clip_of_integers(bounds: tuple[int | None, int], minimum: int, maximum: int) -> None:
    """Where the bounds are the wrong way round the upper one wins."""
    x = ALL.view(np.int8)
    b = ModelBuilder()
    names = ["" if bound is None else b.constant(np.array(bound, dtype=np.int8)) for bound in bounds]
    content = b.finish(b.node("Clip", b.input("x", x.shape, np.int8), *names), dtype=np.int8)
    assert np.array_equal(run(content, x), np.clip(x, minimum, maximum))
