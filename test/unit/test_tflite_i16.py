"""Operators of 16-bit activations beside LiteRT's reference kernels: interpreted and compiled, no element differs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from litert import reference
from numpy.typing import NDArray
from tflite_graphs import i32, options

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
Array = NDArray[Any]
Shape = tuple[int, ...]
RELU, RELU6 = tflite.ActivationFunctionType.RELU, tflite.ActivationFunctionType.RELU6
LOW, HIGH = -(2**15), 2**15 - 1


def q(*scales: float, axis: int = 0) -> Quantization:
    return Quantization(scales, (0,) * len(scales), axis)


def drawn(shape: Shape, dtype: Any = np.int16, seed: int = 0) -> Array:
    """Values of all magnitudes, the ends of the type among them."""
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    values = rng.integers(info.min, info.max, shape, endpoint=True) >> rng.integers(0, info.bits - 1, shape)
    values.flat[:: max(values.size // 3, 1)] = rng.choice([info.min, info.max])
    return values.astype(dtype)


@dataclass
class Node:
    """One operator: its inputs as arrays, some of them constant, and what its tensors are quantized by."""

    kind: int
    inputs: Sequence[Array]
    quantizations: Sequence[Quantization | None]
    output: Quantization | None
    shape: Shape
    option: Sequence[Any] = ()
    constants: Sequence[int] = ()
    dtype: Any = np.int16
    order: Sequence[int] = field(default_factory=tuple)

    def content(self) -> bytes:
        writer, names, free = ModelWriter("one operator"), list[int](), list[int]()
        for i, (array, quantization) in enumerate(zip(self.inputs, self.quantizations, strict=True)):
            if i in self.constants:
                names.append(writer.constant(f"c{i}", array, quantization))
            else:
                names.append(writer.tensor(f"x{i}", array.shape, array.dtype.type, quantization))
                free.append(names[-1])
        result = writer.tensor("y", self.shape, self.dtype, self.output)
        writer.operator(self.kind, names, result, *self.option)
        return writer.finish(free, [result])

    @property
    def given(self) -> list[Array]:
        return [array for i, array in enumerate(self.inputs) if i not in self.constants]


def check(node: Node) -> Array:
    content, given = node.content(), node.given
    (wanted,) = reference(content, given)
    module = import_tflite(content)
    (found,) = interpreter.run(module, given)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(compile_module(module)(*given), wanted)
    return wanted


def refusal(node: Node) -> str:
    with pytest.raises(ImportModelError) as caught:
        import_tflite(node.content())
    return caught.value.render()


# ---- contractions


def conv_options(padding: int, strides: Sequence[int], activation: int, dilation: Sequence[int], bias: int) -> Any:
    return OPTIONS.Conv2DOptions, options_of(
        "ibbbbbb", padding, strides[1], strides[0], activation, dilation[1], dilation[0], bias
    )


def options_of(_: str, *entries: int) -> Any:
    return options(*entries)


SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
BIAS_TYPES = {np.int32: tflite.TensorType.INT32, np.int64: tflite.TensorType.INT64}
CONVOLUTIONS: list[tuple[Shape, Shape, int, Any, Any]] = [
    ((1, 5, 7, 3), (8, 3, 3, 3), SAME, (1, 1), (1, 1)),
    ((2, 9, 8, 16), (21, 3, 3, 16), SAME, (2, 2), (1, 1)),
    ((1, 6, 6, 6), (10, 1, 1, 3), VALID, (1, 1), (1, 1)),
    ((1, 9, 9, 5), (7, 3, 2, 5), VALID, (1, 2), (2, 1)),
    ((1, 1, 1, 67), (3, 1, 1, 67), VALID, (1, 1), (1, 1)),
    ((1, 4, 4, 600), (2, 3, 3, 600), SAME, (1, 1), (1, 1)),
]


@pytest.mark.parametrize("bias", [np.int32, np.int64])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("data", "weight", "padding", "strides", "dilation"), CONVOLUTIONS)
def test_convolutions(
    data: Shape, weight: Shape, padding: int, strides: Any, dilation: Any, per_channel: bool, bias: Any
) -> None:
    x, w = drawn(data), drawn(weight, np.int8, 1)
    if bias is np.int32:
        # What int32 does not hold has no meaning in the kernel.
        x >>= 5
    b = np.random.default_rng(2).integers(-(2**20), 2**20, weight[0]).astype(bias)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, weight[0] if per_channel else 1).tolist()
    effective = [(weight[1 + i] - 1) * dilation[i] + 1 for i in range(2)]
    size = [
        -(-data[1 + i] // strides[i]) if padding == SAME else (data[1 + i] - effective[i]) // strides[i] + 1
        for i in range(2)
    ]
    output = (2.0**-6) * np.sqrt(np.prod(weight[1:]))
    for activation in (0, RELU, RELU6):
        option = conv_options(padding, strides, activation, dilation, BIAS_TYPES[bias])
        parameters = [q(0.003), q(*scales), q(*(0.003 * s for s in scales))]
        shape = (data[0], *size, weight[0])
        check(Node(KIND.CONV_2D, [x, w, b], parameters, q(float(output)), shape, option, (1, 2)))


DEPTHWISE: list[tuple[Shape, Shape, int, Any, Any]] = [
    ((1, 5, 7, 8), (1, 3, 3, 8), SAME, (1, 1), (1, 1)),
    ((2, 9, 8, 19), (1, 3, 3, 19), SAME, (2, 2), (1, 1)),
    ((1, 8, 8, 3), (1, 3, 2, 12), VALID, (1, 1), (2, 1)),
    ((1, 1, 1, 1), (1, 1, 1, 1), VALID, (1, 1), (1, 1)),
]


@pytest.mark.parametrize(("data", "weight", "padding", "strides", "dilation"), DEPTHWISE)
def test_depthwise_convolutions(data: Shape, weight: Shape, padding: int, strides: Any, dilation: Any) -> None:
    x, w, channels = drawn(data), drawn(weight, np.int8, 1), weight[3]
    b = np.random.default_rng(2).integers(-(2**30), 2**30, channels).astype(np.int64)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, channels).tolist()
    effective = [(weight[1 + i] - 1) * dilation[i] + 1 for i in range(2)]
    size = [
        -(-data[1 + i] // strides[i]) if padding == SAME else (data[1 + i] - effective[i]) // strides[i] + 1
        for i in range(2)
    ]
    entries = padding, strides[1], strides[0], channels // data[3], RELU6, dilation[1], dilation[0]
    option = OPTIONS.DepthwiseConv2DOptions, options(*entries)
    parameters = [q(0.003), q(*scales, axis=3), q(*(0.003 * s for s in scales))]
    shape = (data[0], *size, channels)
    check(Node(KIND.DEPTHWISE_CONV_2D, [x, w, b], parameters, q(0.02), shape, option, (1, 2)))


TRANSPOSED: list[tuple[Shape, Shape, Shape, int, Any]] = [
    ((1, 3, 4, 5), (7, 3, 3, 5), (1, 6, 8, 7), SAME, (2, 2)),
    ((1, 3, 4, 5), (7, 3, 3, 5), (1, 7, 9, 7), VALID, (2, 2)),
    ((2, 5, 3, 3), (4, 2, 2, 3), (2, 10, 6, 4), SAME, (2, 2)),
    ((1, 4, 4, 3), (4, 3, 2, 3), (1, 4, 4, 4), SAME, (1, 1)),
    ((1, 2, 2, 1), (1, 1, 1, 1), (1, 5, 4, 1), VALID, (3, 3)),
    ((1, 4, 4, 8), (9, 1, 1, 8), (1, 8, 8, 9), SAME, (2, 2)),
]


@pytest.mark.parametrize("bias", [None, np.int32, np.int64])
@pytest.mark.parametrize(("data", "weight", "shape", "padding", "strides"), TRANSPOSED)
def test_transposed_convolutions(
    data: Shape, weight: Shape, shape: Shape, padding: int, strides: Any, bias: Any
) -> None:
    x, w = drawn(data), drawn(weight, np.int8, 1)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, weight[0]).tolist()
    entries = padding, strides[1], strides[0], 0, BIAS_TYPES.get(bias, 0)
    option = OPTIONS.TransposeConvOptions, options(*entries)
    arrays: list[Array] = [i32(shape), w, x >> 3]
    parameters: list[Quantization | None] = [None, q(*scales), q(0.003)]
    if bias is not None:
        arrays.append(np.random.default_rng(2).integers(-(2**20), 2**20, weight[0]).astype(bias))
        parameters.append(q(*(0.003 * s for s in scales)))
    constants = (0, 1, 3)
    check(Node(KIND.TRANSPOSE_CONV, arrays, parameters, q(0.01), shape, option, constants))


@pytest.mark.parametrize("bias", [None, np.int32, np.int64])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize(("rows", "depth", "channels"), [(1, 5, 19), (3, 70, 10), (7, 1030, 33), (1, 1, 1)])
def test_fully_connected(rows: int, depth: int, channels: int, per_channel: bool, bias: Any) -> None:
    x, w = drawn((rows, depth)), drawn((channels, depth), np.int8, 1)
    scales = np.random.default_rng(3).uniform(0.001, 0.01, channels if per_channel else 1).tolist()
    option = OPTIONS.FullyConnectedOptions, options(RELU if per_channel else 0, 0, 0, 0, BIAS_TYPES.get(bias, 0))
    arrays, parameters = [x >> 4, w], [q(0.003), q(*scales)]
    if bias is not None:
        arrays.append(np.random.default_rng(2).integers(-(2**20), 2**20, channels).astype(bias))
        parameters.append(q(*(0.003 * s for s in scales)))
    node = Node(KIND.FULLY_CONNECTED, arrays, parameters, q(0.01), (rows, channels), option, (1, 2))
    check(node)


MATRICES: list[tuple[Shape, Shape, bool, bool]] = [
    ((2, 3, 7), (2, 7, 5), False, False),
    ((2, 3, 7), (2, 5, 7), False, True),
    ((3, 7, 3), (3, 7, 5), True, False),
    ((1, 4, 33), (1, 33, 20), False, False),
]


@pytest.mark.parametrize("right", [np.int8, np.int16])
@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize(("lhs", "rhs", "adj_x", "adj_y"), MATRICES)
def test_batch_matmul(lhs: Shape, rhs: Shape, adj_x: bool, adj_y: bool, constants: Any, right: Any) -> None:
    def write(builder: Builder) -> int:
        tflite.BatchMatMulOptionsStart(builder)
        tflite.BatchMatMulOptionsAddAdjX(builder, adj_x)
        tflite.BatchMatMulOptionsAddAdjY(builder, adj_y)
        return tflite.BatchMatMulOptionsEnd(builder)

    shape = (lhs[0], lhs[2] if adj_x else lhs[1], rhs[1] if adj_y else rhs[2])
    arrays, option = [drawn(lhs) >> 2, drawn(rhs, right, 1)], (OPTIONS.BatchMatMulOptions, write)
    scale = 0.01 if right is np.int8 else 1.7
    check(Node(KIND.BATCH_MATMUL, arrays, [q(0.003), q(0.007)], q(scale), shape, option, constants))


# ---- element-wise


def pot_options(table: str) -> Any:
    def write(activation: int, is_pot: bool) -> Any:
        def written(builder: Builder) -> int:
            getattr(tflite, f"{table}Start")(builder)
            getattr(tflite, f"{table}AddFusedActivationFunction")(builder, activation)
            getattr(tflite, f"{table}AddPotScaleInt16")(builder, is_pot)
            return getattr(tflite, f"{table}End")(builder)

        return getattr(OPTIONS, table), written

    return write


SCALES = [(0.003, 0.007, 0.011), (0.5, 0.25, 1.0), (1e-4, 0.9, 0.9), (0.002, 0.002, 0.002)]
SHAPES: list[tuple[Shape, Shape]] = [((3, 19), (3, 19)), ((1, 4, 4, 67), (67,)), ((2, 1, 3), (2, 5, 3)), ((1,), (1,))]


@pytest.mark.parametrize("is_pot", [False, True])
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize(("lhs", "rhs"), SHAPES)
@pytest.mark.parametrize(("kind", "table"), [(KIND.ADD, "AddOptions"), (KIND.SUB, "SubOptions")])
def test_sums(kind: int, table: str, lhs: Shape, rhs: Shape, scales: tuple[float, ...], is_pot: bool) -> None:
    if is_pot and scales == SCALES[1]:
        # LiteRT shifts one operand alone, and without broadcasting.
        return
    for activation in (0, RELU):
        option = pot_options(table)(activation, is_pot)
        shape = np.broadcast_shapes(lhs, rhs)
        arrays = [drawn(lhs), drawn(rhs, seed=1)]
        check(Node(kind, arrays, [q(scales[0]), q(scales[1])], q(scales[2]), shape, option))


@pytest.mark.parametrize("scales", [(0.25, 0.25, 0.25), (0.0625, 0.25, 0.25), (0.25, 0.125, 0.25)])
@pytest.mark.parametrize(("kind", "table"), [(KIND.ADD, "AddOptions"), (KIND.SUB, "SubOptions")])
def test_sums_of_scales_that_are_powers_of_two(kind: int, table: str, scales: tuple[float, ...]) -> None:
    arrays = [drawn((40, 37)), drawn((40, 37), seed=1)]
    parameters = [q(scales[0]), q(scales[1])]
    check(Node(kind, arrays, parameters, q(scales[2]), (40, 37), pot_options(table)(0, True)))


@pytest.mark.parametrize("scales", [(0.003, 0.007, 0.011), (0.5, 0.25, 1.0), (2.0**-15, 2.0**-15, 2.0**-15)])
@pytest.mark.parametrize(("lhs", "rhs"), SHAPES)
def test_products(lhs: Shape, rhs: Shape, scales: tuple[float, ...]) -> None:
    for activation in (0, RELU6):
        option = OPTIONS.MulOptions, options(activation)
        shape, arrays = np.broadcast_shapes(lhs, rhs), [drawn(lhs), drawn(rhs, seed=1)]
        check(Node(KIND.MUL, arrays, [q(scales[0]), q(scales[1])], q(scales[2]), shape, option))


@pytest.mark.parametrize("kind", [KIND.MAXIMUM, KIND.MINIMUM])
@pytest.mark.parametrize(("lhs", "rhs"), SHAPES)
def test_extremes(kind: int, lhs: Shape, rhs: Shape) -> None:
    arrays, shape = [drawn(lhs), drawn(rhs, seed=1)], np.broadcast_shapes(lhs, rhs)
    check(Node(kind, arrays, [q(0.3), q(0.3)], q(0.3), shape, (OPTIONS.MaximumMinimumOptions, options())))


@pytest.mark.parametrize("constants", [(), (1,)])
def test_prelu(constants: Any) -> None:
    slope = Quantization((0.01,), (3,))
    arrays = [drawn((2, 3, 5, 19)), drawn((1, 1, 19), np.int8, 1)]
    check(Node(KIND.PRELU, arrays, [q(0.003), slope], q(0.0037), (2, 3, 5, 19), (), constants))


EVERY = np.arange(LOW, HIGH + 1).astype(np.int16).reshape(256, 256)
UNARY: list[tuple[int, float, float, Any]] = [
    (KIND.RELU, 0.01, 0.01, ()),
    (KIND.RELU, 0.01, 0.0037, ()),
    (KIND.RELU6, 0.001, 0.0013, ()),
    (KIND.ABS, 0.01, 0.01, ()),
    (KIND.ABS, 0.01, 0.0213, ()),
    (KIND.EXP, 1e-4, 0.001, ()),
    (KIND.EXP, 3e-4, 0.6, ()),
    (KIND.LOG, 1e-3, 2e-4, ()),
    (KIND.LOG, 0.1, 3e-4, ()),
    (KIND.GELU, 2e-4, 2.1e-4, (OPTIONS.GeluOptions, options(0))),
    (KIND.GELU, 1e-3, 9e-4, (OPTIONS.GeluOptions, options(1))),
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


@pytest.mark.parametrize(("kind", "scale", "output", "option"), UNARY)
def test_functions_of_every_value(kind: int, scale: float, output: float, option: Any) -> None:
    check(Node(kind, [EVERY], [q(scale)], q(output), EVERY.shape, option))


@pytest.mark.parametrize("alpha", [0.1, 0.0, -0.3, 1.5])
def test_leaky_relu_of_every_value(alpha: float) -> None:
    def write(builder: Builder) -> int:
        tflite.LeakyReluOptionsStart(builder)
        tflite.LeakyReluOptionsAddAlpha(builder, alpha)
        return tflite.LeakyReluOptionsEnd(builder)

    option = OPTIONS.LeakyReluOptions, write
    check(Node(KIND.LEAKY_RELU, [EVERY], [q(0.003)], q(0.0029), EVERY.shape, option))


def test_inverse_roots_of_every_value() -> None:
    positive = np.maximum(EVERY, 0)
    check(Node(KIND.RSQRT, [positive], [q(0.003)], q(0.0007), EVERY.shape))


# ---- pools, reductions, softmax


POOLS: list[tuple[Shape, Any, Any, int]] = [
    ((1, 5, 7, 3), (3, 3), (1, 1), SAME),
    ((2, 9, 8, 37), (2, 3), (2, 2), VALID),
    ((1, 1, 1, 1), (1, 1), (1, 1), VALID),
    ((1, 7, 7, 64), (7, 7), (1, 1), VALID),
]


@pytest.mark.parametrize("kind", [KIND.AVERAGE_POOL_2D, KIND.MAX_POOL_2D])
@pytest.mark.parametrize("activation", [0, RELU6])
@pytest.mark.parametrize(("data", "kernel", "strides", "padding"), POOLS)
def test_pools(kind: int, data: Shape, kernel: Any, strides: Any, padding: int, activation: int) -> None:
    option = OPTIONS.Pool2DOptions, options(padding, strides[1], strides[0], kernel[1], kernel[0], activation)
    size = [
        -(-data[1 + i] // strides[i]) if padding == SAME else (data[1 + i] - kernel[i]) // strides[i] + 1
        for i in range(2)
    ]
    check(Node(kind, [drawn(data)], [q(0.001)], q(0.001), (data[0], *size, data[3]), option))


@pytest.mark.parametrize("axes", [(1, 2), (3,), (-1, 0), (0, 1, 2, 3)])
@pytest.mark.parametrize("keep", [0, 1])
def test_reductions(axes: Shape, keep: int) -> None:
    data = drawn((2, 5, 7, 19))
    positive = [axis % 4 for axis in axes]
    shape = tuple(1 if i in positive else n for i, n in enumerate(data.shape) if keep or i not in positive)
    option = OPTIONS.ReducerOptions, options(keep)
    for scale in (0.0037, 0.003):
        check(Node(KIND.MEAN, [data, i32(axes)], [q(0.003), None], q(scale), shape, option, (1,)))
    for kind in (KIND.REDUCE_MAX, KIND.REDUCE_MIN):
        check(Node(kind, [data, i32(axes)], [q(0.003), None], q(0.003), shape, option, (1,)))


@pytest.mark.parametrize("shape", [(7, 10), (1, 2, 3, 67), (5, 1), (1, 1000)])
@pytest.mark.parametrize(("scale", "beta"), [(0.003, 1.0), (1e-4, 1.0), (0.1, 0.5), (2.0**-12, 2.0)])
def test_softmax(shape: Shape, scale: float, beta: float) -> None:
    def write(builder: Builder) -> int:
        tflite.SoftmaxOptionsStart(builder)
        tflite.SoftmaxOptionsAddBeta(builder, beta)
        return tflite.SoftmaxOptionsEnd(builder)

    option = OPTIONS.SoftmaxOptions, write
    for data in (drawn(shape), np.full(shape, HIGH, np.int16)):
        check(Node(KIND.SOFTMAX, [data], [q(scale)], q(2.0**-15), shape, option))


# ---- movement and conversion


def test_movements() -> None:
    x, s = drawn((2, 3, 4, 5)), q(0.01)
    check(Node(KIND.RESHAPE, [x, i32([6, 20])], [s, None], s, (6, 20), (), (1,)))
    check(Node(KIND.TRANSPOSE, [x, i32([0, 3, 1, 2])], [s, None], s, (2, 5, 3, 4), (), (1,)))
    pads = i32([[0, 0], [1, 2], [0, 1], [3, 0]])
    check(Node(KIND.PAD, [x, pads], [s, None], s, (2, 6, 5, 8), (), (1,)))
    fill = np.array([-777], np.int16)
    check(Node(KIND.PADV2, [x, pads, fill], [s, None, s], s, (2, 6, 5, 8), (), (1, 2)))
    begin, size = i32([0, 1, 0, 2]), i32([2, 2, 3, 3])
    check(Node(KIND.SLICE, [x, begin, size], [s, None, None], s, (2, 2, 3, 3), (), (1, 2)))
    option = OPTIONS.StridedSliceOptions, options(0)
    bounds = [i32([0, 0, 1, 0]), i32([2, 3, 4, 5]), i32([1, 2, 1, 2])]
    check(Node(KIND.STRIDED_SLICE, [x, *bounds], [s, None, None, None], s, (2, 2, 3, 3), option, (1, 2, 3)))
    option = OPTIONS.GatherOptions, options(1)
    check(Node(KIND.GATHER, [x, i32([2, 0])], [s, None], s, (2, 2, 4, 5), option, (1,)))
    check(Node(KIND.TILE, [x, i32([1, 2, 1, 3])], [s, None], s, (2, 6, 4, 15), (), (1,)))


@pytest.mark.parametrize("axis", [0, 3, -2])
def test_concatenation(axis: int) -> None:
    x, y = drawn((2, 3, 4, 5)), drawn((2, 3, 4, 5), seed=1)
    shape = list(x.shape)
    shape[axis] *= 2
    option = OPTIONS.ConcatenationOptions, options(axis & 0xFFFFFFFF if axis < 0 else axis, 0)
    option = (OPTIONS.ConcatenationOptions, options(axis, 0))
    check(Node(KIND.CONCATENATION, [x, y], [q(0.1), q(0.1)], q(0.1), tuple(shape), option))


@pytest.mark.parametrize("corners", [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize(("data", "size"), [((1, 5, 4, 3), (9, 7)), ((2, 7, 7, 19), (3, 4)), ((1, 2, 2, 8), (4, 4))])
@pytest.mark.parametrize("kind", [KIND.RESIZE_BILINEAR, KIND.RESIZE_NEAREST_NEIGHBOR])
def test_resizes(kind: int, data: Shape, size: tuple[int, int], corners: tuple[int, int]) -> None:
    table = "ResizeBilinearOptions" if kind == KIND.RESIZE_BILINEAR else "ResizeNearestNeighborOptions"

    def write(builder: Builder) -> int:
        getattr(tflite, f"{table}Start")(builder)
        getattr(tflite, f"{table}AddAlignCorners")(builder, bool(corners[0]))
        getattr(tflite, f"{table}AddHalfPixelCenters")(builder, bool(corners[1]))
        return getattr(tflite, f"{table}End")(builder)

    option, shape = (getattr(OPTIONS, table), write), (data[0], *size, data[3])
    check(Node(kind, [drawn(data), i32(size)], [q(0.01), None], q(0.01), shape, option, (1,)))


CONVERSIONS = [
    (np.int16, np.int8, Quantization((0.1,), (0,)), Quantization((7.3,), (-5,))),
    (np.int16, np.int16, Quantization((0.1,), (0,)), Quantization((0.037,), (0,))),
    (np.int8, np.int16, Quantization((0.1,), (-5,)), Quantization((0.0007,), (0,))),
    (np.uint8, np.int16, Quantization((0.1,), (131,)), Quantization((0.0007,), (0,))),
    (np.int32, np.int16, Quantization((1e-6,), (0,)), Quantization((0.03,), (0,))),
]


@pytest.mark.parametrize(("source", "target", "before", "after"), CONVERSIONS)
def test_requantization_between_types(source: Any, target: Any, before: Quantization, after: Quantization) -> None:
    check(Node(KIND.QUANTIZE, [drawn((40, 37), source)], [before], after, (40, 37), (), (), target))


def test_between_floats_and_16_bits() -> None:
    values = (np.random.default_rng(0).normal(size=(40, 37)) * 1e3).astype(np.float32)
    check(Node(KIND.QUANTIZE, [values], [None], q(0.037), values.shape))
    check(Node(KIND.DEQUANTIZE, [drawn((40, 37))], [q(0.037)], None, (40, 37), (), (), np.float32))


# ---- refusals


def test_zero_points_are_refused() -> None:
    odd = Quantization((0.1,), (3,))
    node = Node(KIND.MUL, [drawn((3,)), drawn((3,))], [odd, q(0.1)], q(0.1), (3,), (OPTIONS.MulOptions, options(0)))
    assert "input zero point must be 0, but got 3" in refusal(node)


def test_what_the_framework_lacks_is_refused() -> None:
    x, w = drawn((1, 4, 4, 3)), drawn((1, 3, 3, 3), np.int8)
    option = OPTIONS.DepthwiseConv2DOptions, options(SAME, 1, 1, 1, 0, 1, 1)
    arrays = [x, w, np.zeros(3, np.int32)]
    node = Node(KIND.DEPTHWISE_CONV_2D, arrays, [q(0.1), q(0.1, axis=3), q(0.01)], q(0.1), (1, 4, 4, 3), option, (1, 2))
    assert "bias must be i64, but got i32" in refusal(node)
    node = Node(KIND.LOGISTIC, [x], [q(0.1)], q(0.1), x.shape)
    assert "output scale must be 2^-15, but got 0.1" in refusal(node)
    node = Node(KIND.HARD_SWISH, [x], [q(0.1)], q(0.1), x.shape)
    assert "must be i8 or ui8, but got i16" in refusal(node)
