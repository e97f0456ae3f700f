"""Operators of 16-bit activations interpreted and compiled: no element differs from LiteRT."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tflite
from compiled_ops import check_compiled, variants_together
from tflite_graphs import Array, Given, Result, check_operator, i32, one_operator, options_of, refused

from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.frontends.tflite.flatbuffer.writer import options as named_options
from qdialect.reference import interpreter

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
Shape = tuple[int, ...]
RELU, RELU6 = tflite.ActivationFunctionType.RELU, tflite.ActivationFunctionType.RELU6
SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
LOW, HIGH = -(2**15), 2**15 - 1


def q(*scales: float, axis: int = 0) -> Quantization:
    return Quantization(scales, (0,) * len(scales), axis)


def drawn(shape: Shape, dtype: Any = np.int16, seed: int = 0) -> Array:
    """Values of all magnitudes, the ends of the type among them."""
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    values = rng.integers(info.min, info.max, shape, endpoint=True) >> rng.integers(0, info.bits - 1, shape)
    values.flat[:: max(values.size // 3, 1)] = rng.choice([info.min, info.max])
    return values.astype(dtype)


Parts = tuple[int, list[Given], list[Result], Any]


def parts(
    kind: int,
    inputs: Sequence[Array],
    quantizations: Sequence[Quantization | None],
    output: Quantization | None,
    shape: Shape,
    option: Any = (),
    constants: Sequence[int] = (),
    dtype: Any = np.int16,
) -> Parts:
    """One operator: its inputs as arrays, some of them constant, and what its tensors are quantized by."""
    by = enumerate(zip(inputs, quantizations, strict=True))
    given = [Given(array, i in constants, quantization) for i, (array, quantization) in by]
    return kind, given, [Result(shape, dtype, output)], option or None


def check(*arguments: Any) -> None:
    check_operator(*parts(*arguments))


def extents(data: Shape, window: Sequence[int], padding: int, strides: Sequence[int], dilation: Any) -> list[int]:
    """Of the windows of an image."""
    whole = [(window[i] - 1) * dilation[i] + 1 for i in range(2)]
    return [
        -(-data[1 + i] // strides[i]) if padding == SAME else (data[1 + i] - whole[i]) // strides[i] + 1
        for i in range(2)
    ]


def pot_options(table: str, activation: int, is_pot: bool) -> Any:
    return named_options(table, FusedActivationFunction=activation, PotScaleInt16=is_pot)


SCALES = [(0.003, 0.007, 0.011), (0.5, 0.25, 1.0), (1e-4, 0.9, 0.9), (0.002, 0.002, 0.002)]
SHAPES: list[tuple[Shape, Shape]] = [((3, 19), (3, 19)), ((1, 4, 4, 67), (67,)), ((2, 1, 3), (2, 5, 3)), ((1,), (1,))]


@variants_together
@pytest.mark.parametrize("is_pot", [False, True])
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(("kind", "table"), [(KIND.ADD, "AddOptions"), (KIND.SUB, "SubOptions")])
def test_sums(kind: int, table: str, number: int, is_pot: bool) -> None:
    (lhs, rhs), scales = SHAPES[(number + is_pot + (kind == KIND.SUB)) % 4], SCALES[number]
    if is_pot and scales == SCALES[1]:
        # LiteRT shifts one operand alone, and without broadcasting.
        return
    for activation in (0, RELU):
        option = pot_options(table, activation, is_pot)
        shape = np.broadcast_shapes(lhs, rhs)
        arrays = [drawn(lhs), drawn(rhs, seed=1)]
        check(kind, arrays, [q(scales[0]), q(scales[1])], q(scales[2]), shape, option)


@variants_together
@pytest.mark.parametrize("scales", [(0.25, 0.25, 0.25), (0.0625, 0.25, 0.25), (0.25, 0.125, 0.25)])
@pytest.mark.parametrize(("kind", "table"), [(KIND.ADD, "AddOptions"), (KIND.SUB, "SubOptions")])
def test_sums_of_scales_that_are_powers_of_two(kind: int, table: str, scales: tuple[float, ...]) -> None:
    arrays = [drawn((40, 37)), drawn((40, 37), seed=1)]
    parameters = [q(scales[0]), q(scales[1])]
    check(kind, arrays, parameters, q(scales[2]), (40, 37), pot_options(table, 0, True))


@variants_together
@pytest.mark.parametrize("scales", [(0.003, 0.007, 0.011), (0.5, 0.25, 1.0), (2.0**-15, 2.0**-15, 2.0**-15)])
@pytest.mark.parametrize("number", range(4))
def test_products(number: int, scales: tuple[float, ...]) -> None:
    (lhs, rhs), activation = SHAPES[number], (0, RELU6)[(number + (scales[0] < 0.5)) % 2]
    option = options_of("Mul", activation)
    shape, arrays = np.broadcast_shapes(lhs, rhs), [drawn(lhs), drawn(rhs, seed=1)]
    check(KIND.MUL, arrays, [q(scales[0]), q(scales[1])], q(scales[2]), shape, option)


KINDS = [KIND.EQUAL, KIND.NOT_EQUAL, KIND.LESS, KIND.LESS_EQUAL, KIND.GREATER, KIND.GREATER_EQUAL]


@variants_together
@pytest.mark.parametrize("kind", KINDS)
def test_comparisons(kind: int) -> None:
    arrays = [drawn((40, 37)), drawn((40, 37), seed=1)]
    arrays[1][::2] = arrays[0][::2]
    check(kind, arrays, [q(0.01), q(0.01)], None, (40, 37), (), (), np.bool_)
    content = one_operator(*parts(kind, arrays, [q(0.01), q(0.5)], None, (40, 37), (), (), np.bool_))
    assert "inputs must have one scale, but got" in refused(content)


def test_a_selection_along_the_first_dimension() -> None:
    arrays = [np.array([True, False, True]), drawn((3, 19)), drawn((3, 19), seed=1)]
    check(KIND.SELECT, arrays, [None, q(0.1), q(0.2)], q(0.1), (3, 19), options_of("Select"))


@variants_together
@pytest.mark.parametrize("scales", [(1e-4, 1e-4), (1e-4, 1e-3), (3e-4, 0.0077), (2e-3, 1e-3), (2**-10, 2**-7)])
def test_sums_over_axes(scales: tuple[float, float]) -> None:
    """LiteRT's own kernel, as its reference kernel sums up words in 8 bits."""
    data = (drawn((300, 7)).astype(np.int32) // 60).astype(np.int16)
    how = options_of("Reducer"), (1,)
    content = one_operator(*parts(KIND.SUM, [data, i32(1)], [q(scales[0]), None], q(scales[1]), (300,), *how))
    wanted = frameworks.load_litert(content, 1, is_reference=False)([data])
    module = import_tflite(content)
    np.testing.assert_array_equal(interpreter.run(module, [data])[0], wanted[0])
    check_compiled(module, "host", [[data]], [wanted])


@variants_together
@pytest.mark.parametrize("scales", [(1e-4, 3e-4, 1e-3), (2e-3, 2e-3, 0.05), (1e-3, 1e-5, 0.02)])
def test_squared_differences(scales: tuple[float, float, float]) -> None:
    """LiteRT has no kernel of words: results are within two steps of the numbers, which are saturated."""
    arrays = [drawn((3, 70)), drawn((1, 70), seed=1)]
    known = [q(scales[0]), q(scales[1])]
    option = options_of("SquaredDifference")
    content = one_operator(*parts(KIND.SQUARED_DIFFERENCE, arrays, known, q(scales[2]), (3, 70), option))
    module = import_tflite(content)
    found = interpreter.run(module, arrays)[0]
    exact = np.square(arrays[0] * scales[0] - arrays[1] * scales[1]) / scales[2]
    step = 2 + 4 * np.sqrt(np.minimum(exact, HIGH) / scales[2]) * max(scales[:2])
    assert (np.abs(found - np.minimum(exact, HIGH)) <= step).all()
    check_compiled(module, "host", [arrays], [[found]])


@variants_together
@pytest.mark.parametrize("constants", [(), (1,)])
def test_prelu(constants: Any) -> None:
    slope = Quantization((0.01,), (3,))
    arrays = [drawn((2, 3, 5, 19)), drawn((1, 1, 19), np.int8, 1)]
    check(KIND.PRELU, arrays, [q(0.003), slope], q(0.0037), (2, 3, 5, 19), (), constants)


EVERY = np.arange(LOW, HIGH + 1).astype(np.int16).reshape(256, 256)
UNARY: list[tuple[int, float, float, Any]] = [
    (KIND.RELU, 0.01, 0.01, ()),
    (KIND.RELU, 0.01, 0.0037, ()),
    (KIND.RELU6, 0.001, 0.0013, ()),
    (KIND.ABS, 0.01, 0.01, ()),
    (KIND.ABS, 0.01, 0.0213, ()),
    (KIND.NEG, 0.01, 0.01, ()),
    (KIND.EXP, 1e-4, 0.001, ()),
    (KIND.EXP, 3e-4, 0.6, ()),
    (KIND.LOG, 1e-3, 2e-4, ()),
    (KIND.LOG, 0.1, 3e-4, ()),
    (KIND.GELU, 2e-4, 2.1e-4, options_of("Gelu", 0)),
    (KIND.GELU, 1e-3, 9e-4, options_of("Gelu", 1)),
    (KIND.LOGISTIC, 2.0**-12, 2.0**-15, ()),
    (KIND.LOGISTIC, 1e-4, 2.0**-15, ()),
    (KIND.LOGISTIC, 3.7e-4, 2.0**-15, ()),
    (KIND.LOGISTIC, 2.0**-12 * 1.0003, 2.0**-15, ()),
    (KIND.LOGISTIC, 0.9, 2.0**-15, ()),
    (KIND.TANH, 2.0**-12, 2.0**-15, ()),
    (KIND.TANH, 2.0**-11, 2.0**-15, ()),
    (KIND.TANH, 1e-4, 2.0**-15, ()),
    (KIND.TANH, 1e-6, 2.0**-15, ()),
]


@variants_together
@pytest.mark.parametrize(("kind", "scale", "output", "option"), UNARY)
def test_functions_of_every_value(kind: int, scale: float, output: float, option: Any) -> None:
    check(kind, [EVERY], [q(scale)], q(output), EVERY.shape, option)


@variants_together
@pytest.mark.parametrize("alpha", [0.1, 0.0, -0.3, 1.5])
def test_leaky_relu_of_every_value(alpha: float) -> None:
    option = options_of("LeakyRelu", alpha)
    check(KIND.LEAKY_RELU, [EVERY], [q(0.003)], q(0.0029), EVERY.shape, option)


def test_roots_of_every_value() -> None:
    positive = np.maximum(EVERY, 0)
    check(KIND.SQRT, [positive], [q(0.003)], q(0.0007), EVERY.shape)
    check(KIND.RSQRT, [positive], [q(0.003)], q(0.0007), EVERY.shape)


POOLS: list[tuple[Shape, Any, Any, int]] = [
    ((1, 5, 7, 3), (3, 3), (1, 1), SAME),
    ((2, 9, 8, 37), (2, 3), (2, 2), VALID),
    ((1, 1, 1, 1), (1, 1), (1, 1), VALID),
    ((1, 7, 7, 64), (7, 7), (1, 1), VALID),
]


@variants_together
@pytest.mark.parametrize("kind", [KIND.AVERAGE_POOL_2D, KIND.MAX_POOL_2D])
@pytest.mark.parametrize("activation", [0, RELU6])
@pytest.mark.parametrize(("data", "kernel", "strides", "padding"), POOLS)
def test_pools(kind: int, data: Shape, kernel: Any, strides: Any, padding: int, activation: int) -> None:
    option = options_of("Pool2D", padding, strides[1], strides[0], kernel[1], kernel[0], activation)
    size = extents(data, kernel, padding, strides, (1, 1))
    check(kind, [drawn(data)], [q(0.001)], q(0.001), (data[0], *size, data[3]), option)


@variants_together
@pytest.mark.parametrize("axes", [(1, 2), (3,), (-1, 0), (0, 1, 2, 3)])
@pytest.mark.parametrize("keep", [0, 1])
def test_reductions(axes: Shape, keep: int) -> None:
    data = drawn((2, 5, 7, 19))
    positive = [axis % 4 for axis in axes]
    shape = tuple(1 if i in positive else n for i, n in enumerate(data.shape) if keep or i not in positive)
    option = options_of("Reducer", keep)
    for scale in (0.0037, 0.003):
        check(KIND.MEAN, [data, i32(axes)], [q(0.003), None], q(scale), shape, option, (1,))
    for kind in (KIND.REDUCE_MAX, KIND.REDUCE_MIN):
        check(kind, [data, i32(axes)], [q(0.003), None], q(0.003), shape, option, (1,))


@variants_together
@pytest.mark.parametrize("shape", [(7, 10), (1, 2, 3, 67), (5, 1), (1, 1000)])
@pytest.mark.parametrize(("scale", "beta"), [(0.003, 1.0), (1e-4, 1.0), (0.1, 0.5), (2.0**-12, 2.0)])
def test_softmax(shape: Shape, scale: float, beta: float) -> None:
    option = options_of("Softmax", beta)
    for data in (drawn(shape), np.full(shape, HIGH, np.int16)):
        check(KIND.SOFTMAX, [data], [q(scale)], q(2.0**-15), shape, option)


@variants_together
@pytest.mark.parametrize("corners", [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize(("data", "size"), [((1, 5, 4, 3), (9, 7)), ((2, 7, 7, 19), (3, 4)), ((1, 2, 2, 8), (4, 4))])
@pytest.mark.parametrize("kind", [KIND.RESIZE_BILINEAR, KIND.RESIZE_NEAREST_NEIGHBOR])
def test_resizes(kind: int, data: Shape, size: tuple[int, int], corners: tuple[int, int]) -> None:
    table = "ResizeBilinearOptions" if kind == KIND.RESIZE_BILINEAR else "ResizeNearestNeighborOptions"
    option = named_options(table, AlignCorners=bool(corners[0]), HalfPixelCenters=bool(corners[1]))
    shape = (data[0], *size, data[3])
    check(kind, [drawn(data), i32(size)], [q(0.01), None], q(0.01), shape, option, (1,))


CONVERSIONS = [
    (np.int16, np.int8, Quantization((0.1,), (0,)), Quantization((7.3,), (-5,))),
    (np.int16, np.int16, Quantization((0.1,), (0,)), Quantization((0.037,), (0,))),
    (np.int8, np.int16, Quantization((0.1,), (-5,)), Quantization((0.0007,), (0,))),
    (np.uint8, np.int16, Quantization((0.1,), (131,)), Quantization((0.0007,), (0,))),
    (np.int32, np.int16, Quantization((1e-6,), (0,)), Quantization((0.03,), (0,))),
]


@variants_together
@pytest.mark.parametrize(("source", "target", "before", "after"), CONVERSIONS)
def test_requantization_between_types(source: Any, target: Any, before: Quantization, after: Quantization) -> None:
    check(KIND.QUANTIZE, [drawn((40, 37), source)], [before], after, (40, 37), (), (), target)


def test_between_floats_and_16_bits() -> None:
    values = (np.random.default_rng(0).normal(size=(40, 37)) * 1e3).astype(np.float32)
    check(KIND.QUANTIZE, [values], [None], q(0.037), values.shape)
    check(KIND.DEQUANTIZE, [drawn((40, 37))], [q(0.037)], None, (40, 37), (), (), np.float32)


IMAGE, ODD = drawn((1, 4, 4, 3)), Quantization((0.1,), (3,))
DEPTHWISE_OPTIONS = options_of("DepthwiseConv2D", SAME, 1, 1, 1, 0, 1, 1)
REFUSED: list[tuple[str, tuple[Any, ...]]] = [
    ("input zero point must be 0, but got 3", (KIND.MUL, [IMAGE] * 2, [ODD, q(0.1)], q(0.1), IMAGE.shape)),
    (
        "bias must be i64, but got i32",
        (
            KIND.DEPTHWISE_CONV_2D,
            [IMAGE, drawn((1, 3, 3, 3), np.int8), np.zeros(3, np.int32)],
            [q(0.1), q(0.1, axis=3), q(0.01)],
            q(0.1),
            IMAGE.shape,
            DEPTHWISE_OPTIONS,
            (1, 2),
        ),
    ),
    ("output scale must be 2^-15, but got 0.1", (KIND.LOGISTIC, [IMAGE], [q(0.1)], q(0.1), IMAGE.shape)),
    ("must be i8 or ui8, but got i16", (KIND.HARD_SWISH, [IMAGE], [q(0.1)], q(0.1), IMAGE.shape)),
]


@pytest.mark.parametrize(("message", "arguments"), REFUSED)
def test_refusals(message: str, arguments: tuple[Any, ...]) -> None:
    assert message in refused(one_operator(*parts(*arguments)))


# Convolutions and matrix products of 16-bit activations: no element differs from LiteRT.

BIAS_TYPES = {np.int32: tflite.TensorType.INT32, np.int64: tflite.TensorType.INT64}
CONVOLUTIONS: list[tuple[Shape, Shape, int, Any, Any]] = [
    ((1, 5, 7, 3), (8, 3, 3, 3), SAME, (1, 1), (1, 1)),
    ((2, 9, 8, 16), (21, 3, 3, 16), SAME, (2, 2), (1, 1)),
    ((1, 6, 6, 6), (10, 1, 1, 3), VALID, (1, 1), (1, 1)),
    ((1, 9, 9, 5), (7, 3, 2, 5), VALID, (1, 2), (2, 1)),
    ((1, 1, 1, 67), (3, 1, 1, 67), VALID, (1, 1), (1, 1)),
    ((1, 4, 4, 600), (2, 3, 3, 600), SAME, (1, 1), (1, 1)),
]


@variants_together
@pytest.mark.parametrize("bias", [np.int32, np.int64])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("number", range(len(CONVOLUTIONS)))
def test_convolutions(number: int, per_channel: bool, bias: Any) -> None:
    data, weight, padding, strides, dilation = CONVOLUTIONS[number]
    activation = (0, RELU, RELU6)[(number + per_channel + (bias is np.int64)) % 3]
    x, w = drawn(data), drawn(weight, np.int8, 1)
    if bias is np.int32:
        # What int32 does not hold has no meaning in the kernel.
        x >>= 5
    b = np.random.default_rng(2).integers(-(2**20), 2**20, weight[0]).astype(bias)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, weight[0] if per_channel else 1).tolist()
    size = extents(data, weight[1:3], padding, strides, dilation)
    output = (2.0**-6) * np.sqrt(np.prod(weight[1:]))
    entries = padding, strides[1], strides[0], activation, dilation[1], dilation[0], BIAS_TYPES[bias]
    option = options_of("Conv2D", *entries)
    parameters = [q(0.003), q(*scales), q(*(0.003 * s for s in scales))]
    shape = (data[0], *size, weight[0])
    check(KIND.CONV_2D, [x, w, b], parameters, q(float(output)), shape, option, (1, 2))


DEPTHWISE: list[tuple[Shape, Shape, int, Any, Any]] = [
    ((1, 5, 7, 8), (1, 3, 3, 8), SAME, (1, 1), (1, 1)),
    ((2, 9, 8, 19), (1, 3, 3, 19), SAME, (2, 2), (1, 1)),
    ((1, 8, 8, 3), (1, 3, 2, 12), VALID, (1, 1), (2, 1)),
    ((1, 1, 1, 1), (1, 1, 1, 1), VALID, (1, 1), (1, 1)),
]


@variants_together
@pytest.mark.parametrize(("data", "weight", "padding", "strides", "dilation"), DEPTHWISE)
def test_depthwise_convolutions(data: Shape, weight: Shape, padding: int, strides: Any, dilation: Any) -> None:
    x, w, channels = drawn(data), drawn(weight, np.int8, 1), weight[3]
    b = np.random.default_rng(2).integers(-(2**30), 2**30, channels).astype(np.int64)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, channels).tolist()
    size = extents(data, weight[1:3], padding, strides, dilation)
    entries = padding, strides[1], strides[0], channels // data[3], RELU6, dilation[1], dilation[0]
    option = options_of("DepthwiseConv2D", *entries)
    parameters = [q(0.003), q(*scales, axis=3), q(*(0.003 * s for s in scales))]
    shape = (data[0], *size, channels)
    check(KIND.DEPTHWISE_CONV_2D, [x, w, b], parameters, q(0.02), shape, option, (1, 2))


TRANSPOSED: list[tuple[Shape, Shape, Shape, int, Any]] = [
    ((1, 3, 4, 5), (7, 3, 3, 5), (1, 6, 8, 7), SAME, (2, 2)),
    ((1, 3, 4, 5), (7, 3, 3, 5), (1, 7, 9, 7), VALID, (2, 2)),
    ((2, 5, 3, 3), (4, 2, 2, 3), (2, 10, 6, 4), SAME, (2, 2)),
    ((1, 4, 4, 3), (4, 3, 2, 3), (1, 4, 4, 4), SAME, (1, 1)),
    ((1, 2, 2, 1), (1, 1, 1, 1), (1, 5, 4, 1), VALID, (3, 3)),
    ((1, 4, 4, 8), (9, 1, 1, 8), (1, 8, 8, 9), SAME, (2, 2)),
]


@variants_together
@pytest.mark.parametrize("bias", [None, np.int32, np.int64])
@pytest.mark.parametrize(("data", "weight", "shape", "padding", "strides"), TRANSPOSED)
def test_transposed_convolutions(
    data: Shape, weight: Shape, shape: Shape, padding: int, strides: Any, bias: Any
) -> None:
    x, w = drawn(data), drawn(weight, np.int8, 1)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, weight[0]).tolist()
    entries = padding, strides[1], strides[0], 0, BIAS_TYPES.get(bias, 0)
    option = options_of("TransposeConv", *entries)
    arrays: list[Array] = [i32(shape), w, x >> 3]
    parameters: list[Quantization | None] = [None, q(*scales), q(0.003)]
    if bias is not None:
        arrays.append(np.random.default_rng(2).integers(-(2**20), 2**20, weight[0]).astype(bias))
        parameters.append(q(*(0.003 * s for s in scales)))
    constants = (0, 1, 3)
    check(KIND.TRANSPOSE_CONV, arrays, parameters, q(0.01), shape, option, constants)


DENSE = [(1, 5, 19), (3, 70, 10), (7, 1030, 33), (1, 1, 1)]


@variants_together
@pytest.mark.parametrize("bias", [None, np.int32, np.int64])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(
    ("rows", "depth", "channels", "weights"),
    [*((*one, np.int8) for one in DENSE), (1, 5, 19, np.int16), (7, 330, 33, np.int16)],
)
def test_fully_connected(rows: int, depth: int, channels: int, weights: Any, per_channel: bool, bias: Any) -> None:
    of_words = weights is np.int16
    x, w = drawn((rows, depth)) >> (0 if of_words else 4), drawn((channels, depth), weights, 1)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, channels if per_channel else 1).tolist()
    option = options_of("FullyConnected", RELU if per_channel else 0, 0, 0, 0, BIAS_TYPES.get(bias, 0))
    arrays, parameters = [x, w], [q(0.003), q(*scales)]
    if bias is not None:
        most = 2 ** (30 if of_words else 20)
        arrays.append(np.random.default_rng(2).integers(-most, most, channels).astype(bias))
        parameters.append(q(*(0.003 * s for s in scales)))
    check(KIND.FULLY_CONNECTED, arrays, parameters, q(1.7 if of_words else 0.01), (rows, channels), option, (1, 2))


MATRICES: list[tuple[Shape, Shape, bool, bool]] = [
    ((2, 3, 7), (2, 7, 5), False, False),
    ((2, 3, 7), (2, 5, 7), False, True),
    ((3, 7, 3), (3, 7, 5), True, False),
    ((1, 4, 33), (1, 33, 20), False, False),
]


@variants_together
@pytest.mark.parametrize("right", [np.int8, np.int16])
@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize(("lhs", "rhs", "adj_x", "adj_y"), MATRICES)
def test_batch_matmul(lhs: Shape, rhs: Shape, adj_x: bool, adj_y: bool, constants: Any, right: Any) -> None:
    shape = (lhs[0], lhs[2] if adj_x else lhs[1], rhs[1] if adj_y else rhs[2])
    arrays, option = ([drawn(lhs) >> 2, drawn(rhs, right, 1)], options_of("BatchMatMul", int(adj_x), int(adj_y)))
    scale = 0.01 if right is np.int8 else 1.7
    check(KIND.BATCH_MATMUL, arrays, [q(0.003), q(0.007)], q(scale), shape, option, constants)
