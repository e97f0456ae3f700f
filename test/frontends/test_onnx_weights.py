"""Constant float weights of ONNX models, and weights of few bits."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled_ops import variants_together
from onnx import TensorProto, helper
from onnx_graphs import Array, ModelBuilder, agreed, drawn, drawn_weights, of_onnx_runtime, refused, run
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx

# The shapes of the data and of the weights, and attributes.
KINDS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "Conv": ((1, 4, 8, 8), (8, 2, 3, 3), {"pads": [1, 1, 1, 1], "group": 2}),
    "ConvTranspose": ((1, 4, 5, 5), (4, 3, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "Gemm": ((9, 16), (16, 8), {}),
}
INTEGER_OPS = {"Conv": "qnn.conv2d", "ConvTranspose": "qnn.conv_transpose2d", "Gemm": "qnn.dense"}
WEIGHTS = {"both signs": (-0.2, 0.3), "positive": (0.1, 0.4), "negative": (-0.4, -0.1), "zero": (0.0, 0.0)}


def weights_of(kind: str, bounds: tuple[float, float] = (-0.2, 0.3)) -> tuple[Array, Array]:
    """F32 weights and a bias."""
    generator, shape = np.random.default_rng(4), KINDS[kind][1]
    channels = shape[0] if kind == "Conv" else shape[1]
    return generator.uniform(*bounds, shape).astype(np.float32), generator.normal(size=channels).astype(np.float32)


@variants_together
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("end", ["", "Relu", "Clip"])
@pytest.mark.parametrize("bounds", WEIGHTS)
def test_quantized_values_equal_onnx_runtime(bounds: str, end: str, dtype: Any, kind: str) -> None:
    b, (shape, _, attributes) = ModelBuilder(), KINDS[kind]
    weights, bias = weights_of(kind, WEIGHTS[bounds])
    data = b.dequantize(b.input("x", shape, dtype), (0.02, 3), dtype)
    result = b.node(kind, data, b.constant(weights), b.constant(bias), **attributes)
    if end:
        result = b.node(end, result, *([b.constant(-1.0), b.constant(1.0)] if end == "Clip" else []))
    agreed(b.finish(b.quantize(result, (0.013, 3), dtype), dtype=dtype), drawn(shape, dtype))


def gemm(
    before: str = "", after: str = "", bias_shape: tuple[int, ...] = (8,), *, is_read_twice: bool = False
) -> bytes:
    """A Gemm of f32 weights, with operators before and after it."""
    b, (weights, bias) = ModelBuilder(), weights_of("Gemm")
    target = {"Reshape": [b.constant(np.array([9, 16]))], "Flatten": [], "": []}[before]
    data = b.dequantize(b.input("x", (9, 16) if not before else (9, 2, 8), np.uint8), (0.02, 100))
    data = b.node(before, data, *target) if before else data
    operands = [b.constant(bias.reshape(bias_shape))] if bias_shape else []
    result = b.node("Gemm", data, b.constant(weights), *operands)
    for kind in after.split():
        result = b.node(kind, result, *([b.constant(np.array([72]))] if kind == "Reshape" else []))
    more = [b.quantize(result, (0.1, 100))] if is_read_twice else []
    return b.finish(b.quantize(result, (0.05, 100)), *more)


@variants_together
@pytest.mark.parametrize(
    ("before", "after", "bias_shape"),
    [
        *(("", "", ()), ("Reshape", "", (8,)), ("", "Reshape", (8,)), ("", "Relu Reshape", (8,))),
        *(("Flatten", "", (8,)), ("", "Reshape Relu", (8,)), ("", "", (1, 8))),
    ],
)
def test_neighbours_decide(before: str, after: str, bias_shape: tuple[int, ...]) -> None:
    content = gemm(before, after, bias_shape)
    stays_f32 = before == "Flatten" or after == "Reshape Relu" or bias_shape == (1, 8)
    text = str(import_onnx(content))
    assert ("weight_zero_points" not in text) == stays_f32
    agreed(content, drawn((9, 2, 8) if before else (9, 16), np.uint8))


def test_a_result_that_is_quantized_twice_is_f32() -> None:
    assert "weight_zero_points" not in str(import_onnx(gemm(is_read_twice=True)))


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_integers(kind: str) -> None:
    b, (shape, _, attributes) = ModelBuilder(), KINDS[kind]
    data = b.dequantize(b.input("x", shape, np.uint8), (0.02, 3))
    result = b.node(kind, data, *map(b.constant, weights_of(kind)), **attributes)
    assert INTEGER_OPS[kind] in str(import_onnx(b.finish(b.quantize(result, (0.013, 3)))))


# Powers of two: sums are exact in float32 in any order.
X, Y, W = (2.0**-5, 128), (2.0**-3, 7), 2.0**-6
EXACT: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    **KINDS,
    "Conv, one dimension": ((1, 3, 6), (4, 3, 3), {}),
    "Conv, by depth": ((1, 4, 4, 4), (4, 1, 3, 3), {"group": 4}),
    "Conv, three dimensions": ((1, 2, 3, 3, 3), (4, 2, 2, 2, 2), {}),
}
LARGE = np.array([2**31 - 1, -(2**31), 2**30, 7], np.int32)


def contraction(b: ModelBuilder, case: str, weights: str, bias: str, x: str = "") -> str:
    kind, (shape, _, attributes) = case.partition(",")[0], EXACT[case]
    return b.node(kind, b.dequantize(x or b.input("x", shape, np.uint8), X), weights, bias, **attributes)


def quantized_weights(case: str, channels: int, *, has_many: bool) -> tuple[Array, Any, int]:
    """Quantized weights, their scales, and the axis of these."""
    shape, axis = EXACT[case][1], 0 if case.startswith("Conv") and not case.startswith("ConvT") else 1
    scales = W * 2.0 ** (np.arange(channels) % 3) if has_many else W
    return drawn_weights(shape, np.int8, seed=2), scales, axis


@variants_together
@pytest.mark.parametrize("case", EXACT)
@pytest.mark.parametrize("end", ["", "Relu", "floats"])
@pytest.mark.parametrize(
    ("factor", "has_many", "values", "point"),
    [
        *((1.0, False, None, 0), (1 + 2.0**-7, False, None, 0), (3.0, False, None, 0), (1.0, True, None, 0)),
        *((0.25, True, None, 0), (1.0, False, None, 9), (1.0, False, LARGE, 0), ("one off", True, None, 0)),
    ],
)
def test_the_scale_of_a_bias_counts(
    point: int, values: Array | None, has_many: bool, factor: Any, end: str, case: str
) -> None:
    """But for integer kernels: that of a Conv reads a bias near the accumulators' scale, that of a Gemm any."""
    b, channels = ModelBuilder(), EXACT[case][1][1 if case in ("ConvTranspose", "Gemm") else 0]
    weights, scales, axis = quantized_weights(case, channels, has_many=has_many)
    bias = drawn((channels,), np.int16).astype(np.int32) if values is None else np.resize(values, channels)
    own = X[0] * np.broadcast_to(scales, channels) * (1.0 if factor == "one off" else factor)
    own[0] *= 4.0 if factor == "one off" else 1.0
    names = b.weight(weights, scales, axis), b.weight(bias, own.tolist() if has_many else float(own[0]), 0, point)
    result = contraction(b, case, *names)
    result = b.node("Relu", result) if end == "Relu" else result
    content = b.finish(result, dtype=np.float32) if end == "floats" else b.finish(b.quantize(result, Y))
    agreed(content, drawn(EXACT[case][0], np.uint8))


def test_two_convolutions_share_a_bias() -> None:
    b, case = ModelBuilder(), "Conv, one dimension"
    weights, bias = (
        b.weight(drawn_weights((4, 3, 3), np.int8), W),
        b.weight(np.array([-900, -450, 0, 450], np.int32), X[0] * W),
    )
    first = b.quantize(contraction(b, case, weights, bias), Y)
    other = b.dequantize(b.input("z", (1, 3, 6), np.uint8), (4 * X[0], 128))
    second = b.quantize(b.node("Conv", other, weights, bias), Y)
    both = b.node("Concat", *(b.dequantize(one, Y) for one in (first, second)), axis=0)
    agreed(b.finish(both, dtype=np.float32), *(drawn((1, 3, 6), np.uint8, seed) for seed in (0, 1)))


def ints(b: ModelBuilder, *values: int) -> str:
    return b.constant(np.array(values, np.int64))


def first_of(b: ModelBuilder, value: str, count: int, axis: int) -> str:
    """The first `count` elements along `axis`."""
    return b.node("Slice", value, ints(b, 0), ints(b, count), ints(b, axis))


def halves_exchanged(b: ModelBuilder, value: str, count: int, axis: int) -> str:
    b.node_of_many("Split", [value, ints(b, 1, count - 1)], ["one", "rest"], axis=axis)
    return b.node("Concat", "rest", "one", axis=axis)


def padded(b: ModelBuilder, value: str, rank: int, count: int, axis: int) -> str:
    amounts = np.zeros(2 * rank, np.int64)
    amounts[rank + axis] = 2
    return first_of(b, b.node("Pad", value, b.constant(amounts)), count, axis)


# From the f32 values of quantized weights, their shape and the axis of their scales.
Rewrite = Callable[[ModelBuilder, str, tuple[int, ...], int], str]
FACTORS = 2.0 ** -(np.arange(1152) % 5).astype(np.float32)
REWRITES: dict[str, Rewrite] = {
    "Mul": lambda b, w, shape, _: b.node("Mul", w, b.constant(FACTORS[: np.prod(shape)].reshape(shape))),
    "Div": lambda b, w, shape, _: b.node("Div", w, b.constant(FACTORS[: shape[-1]])),
    "Add": lambda b, w, shape, _: b.node("Add", w, b.constant(FACTORS[: shape[-1]])),
    "Where": lambda b, w, shape, _: b.node("Where", b.constant(np.arange(shape[-1]) % 2 == 0), w, b.constant(0.25)),
    "Cast": lambda b, w, _, __: b.node("Cast", w, to=1),
    "Identity": lambda b, w, _, __: b.node("Identity", w),
    "Reshape": lambda b, w, shape, _: b.node("Reshape", b.node("Reshape", w, ints(b, -1)), ints(b, *shape)),
    "Flatten": lambda b, w, shape, _: b.node("Reshape", b.node("Flatten", w), ints(b, *shape)),
    "Squeeze": lambda b, w, _, __: b.node("Squeeze", b.node("Unsqueeze", w, ints(b, 0)), ints(b, 0)),
    "Transpose": lambda b, w, _, __: b.node("Transpose", b.node("Transpose", w)),
    "Gather": lambda b, w, shape, axis: b.node("Gather", w, ints(b, *range(shape[axis])[::-1]), axis=axis),
    "Split": lambda b, w, shape, axis: halves_exchanged(b, w, shape[axis], axis),
    "Concat": lambda b, w, shape, axis: first_of(b, b.node("Concat", w, w, axis=axis), shape[axis], axis),
    "Tile": lambda b, w, shape, axis: first_of(
        b, b.node("Tile", w, ints(b, *np.eye(len(shape), dtype=np.int64)[axis] + 1)), shape[axis], axis
    ),
    "Pad": lambda b, w, shape, axis: padded(b, w, len(shape), shape[axis], axis),
    "Expand": lambda b, w, shape, _: b.node("Gather", b.node("Expand", w, ints(b, 2, *shape)), b.constant(np.array(1))),
}


@variants_together
@pytest.mark.parametrize("case", [*KINDS, "Conv, one dimension"])
@pytest.mark.parametrize("has_many", [False, True])
@pytest.mark.parametrize("rewrite", REWRITES)
def test_weights_computed_from_quantized_ones_are_floats(rewrite: str, *, has_many: bool, case: str) -> None:
    b, (shape, weight_shape, _) = ModelBuilder(), EXACT[case]
    axis = 1 if case in ("ConvTranspose", "Gemm") else 0
    weights, scales, _ = quantized_weights(case, weight_shape[axis], has_many=has_many)
    computed = REWRITES[rewrite](b, b.weight(weights, scales, axis, 0 if has_many else 3), weight_shape, axis)
    bias = b.weight(drawn((weight_shape[axis],), np.int16).astype(np.int32), 2 * X[0] * W)
    agreed(b.finish(b.quantize(contraction(b, case, computed, bias), Y)), drawn(shape, np.uint8))


# Weights of 4 bits are integers of 8, and weights that are quantized in blocks are f32 constants.

X_NARROW, Y_NARROW = (0.02, 128), (0.1, 120)
QUANTIZED = drawn((3, 10), np.uint8)
KINDS_NARROW = {"int4": (TensorProto.INT4, -8), "uint4": (TensorProto.UINT4, 0)}


def _narrow(model: ModelBuilder, kind: str, array: Array) -> str:
    name = model.constant(0.0)
    model.constants[-1] = helper.make_tensor(name, KINDS_NARROW[kind][0], array.shape, array.ravel().tolist())
    return name


def _drawn(kind: str, *shape: int) -> Array:
    low = KINDS_NARROW[kind][1]
    return np.random.default_rng(2).integers(low, low + 16, shape)


@pytest.mark.parametrize("kind", KINDS_NARROW)
def test_products_with_weights_of_4_bits_are_those_of_integers(kind: str) -> None:
    weights, point = _drawn(kind, 10, 4), 3

    def content(narrow: bool) -> bytes:
        model = ModelBuilder()
        data = model.dequantize(model.input("x", (3, 10), np.uint8), X_NARROW)
        wide = np.int8 if kind == "int4" else np.uint8
        held = [weights, np.array(point)]
        names = [_narrow(model, kind, one) if narrow else model.constant(one.astype(wide)) for one in held]
        matrix = model.node("DequantizeLinear", names[0], model.constant(0.1), names[1])
        return model.finish(model.quantize(model.node("MatMul", data, matrix), Y_NARROW), version=21)

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


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize(
    ("shape", "how"), [((), {}), ((4,), {"axis": 1}), ((3, 4), {"axis": 0, "block_size": 4}), ((10,), {"axis": 0})]
)
def test_constants_of_float8_are_floats(dtype: Any, shape: tuple[int, ...], how: dict[str, int]) -> None:
    model, rng = ModelBuilder(), np.random.default_rng(3)
    scales = model.constant(rng.uniform(0.1, 1, shape).astype(np.float32))
    weights = model.constant(rng.normal(size=(10, 4)).astype(dtype))
    numbers = model.node("DequantizeLinear", weights, scales, **how)
    content = model.finish(model.node("Mul", model.input("x", ()), numbers), dtype=np.float32, version=21)
    one = np.array(1, np.float32)
    np.testing.assert_array_equal(run(content, one), of_onnx_runtime(content, one)[0])


def test_scales_of_float8_that_do_not_fit_are_refused() -> None:
    for scales, point, reason in ((3, 0, r"scales must be those of [10, 4], but got [3]"), (4, 1, "must be 0")):
        model, weights = ModelBuilder(), np.ones((10, 4), ml_dtypes.float8_e4m3fn)
        points = model.constant(np.full(scales, point, weights.dtype))
        given = model.constant(weights), model.constant(np.ones(scales, np.float32)), points
        content = model.finish(model.node("DequantizeLinear", *given, axis=1), dtype=np.float32, version=21)
        assert reason in refused(content)


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
    (wanted,) = of_onnx_runtime(content, data, qdq_matmulnbits_accuracy_level="1")
    assert_floats_within(found, wanted, "layer")
    (rounded,) = of_onnx_runtime(content, data)
    truth = data.astype(np.float64) @ (weights * scales.astype(np.float64))
    assert_floats_within(found, truth, "layer")
    with pytest.raises(AssertionError):
        assert_floats_within(rounded, truth, "layer")


def test_scales_that_fit_no_block_are_refused() -> None:
    scales = np.ones((2, 4), np.float32)
    assert "scale must have the shape [3, 4], but got [2, 4]" in refused(_blocks(scales, 4))
    assert "block_size must be at least 1, but got -3" in refused(_blocks(scales, -3))


def test_data_in_blocks_is_refused() -> None:
    model = ModelBuilder()
    data = model.input("x", (10, 4), np.int8)
    numbers = model.node("DequantizeLinear", data, model.constant(np.ones((5, 4), np.float32)), axis=0, block_size=2)
    content = model.finish(numbers, dtype=np.float32, version=21)
    assert "input 0 must be constant where it is quantized in blocks" in refused(content)
