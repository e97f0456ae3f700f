"""Float32 data and i8 weights as LiteRT computes them, and the delegate XNNPACK."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recordings
import tflite
from compiled_ops import check_compiled, variants_together
from recurrent_models import Lstm, Svdf
from tflite_graphs import Array, Given, Option, Result, one_operator, options_of, reference, refused
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends import frameworks
from qdialect.frontends.model_files import ImportOptions, read_model
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.frontends.tflite.xnnpack import use_xnnpack
from qdialect.ir.context import parse
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

KIND = tflite.BuiltinOperator
RELU = tflite.ActivationFunctionType.RELU


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(1, 3, shape).astype(np.float32)


def known(data: Array, quantization: Quantization | None = None) -> Given:
    return Given(data, True, quantization)


def floats(*shape: int) -> Given:
    return Given(np.zeros(shape, np.float32))


def quantized_weight(shape: Sequence[int], axis: int, scales: int) -> Given:
    """With `scales` different scales, or as many equal ones where that is negative."""
    random = np.random.default_rng(7)
    data = random.integers(-127, 128, shape).astype(np.int8)
    count = abs(scales)
    found = random.uniform(0.01, 0.05, count) if scales > 0 else np.full(count, 0.02)
    return known(data, Quantization(tuple(found.tolist()), (0,) * count, axis))


def check(content: bytes, *inputs: Array) -> None:
    module = import_tflite(content)
    (wanted,) = reference(content, inputs)
    np.testing.assert_array_equal(interpreter.run(module, inputs)[0], wanted)
    check_compiled(module, "host", [inputs], [[wanted]])


def dense(rows: int, is_asymmetric: bool, scales: int = 5, has_bias: bool = True, activation: int = 0) -> bytes:
    inputs = [floats(rows, 37), quantized_weight((5, 37), 0, scales), *[known(drawn(1, 5))] * has_bias]
    option = options_of("FullyConnected", activation, 0, 0, is_asymmetric)
    return one_operator(KIND.FULLY_CONNECTED, inputs, [Result((rows, 5), np.float32)], option)


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("scales", [1, 5])
def test_fully_connected(is_asymmetric: bool, rows: int, scales: int) -> None:
    check(dense(rows, is_asymmetric, scales), drawn(2, rows, 37))


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_rows_whose_ranges_are_special(is_asymmetric: bool) -> None:
    """Nothing but zero; of one sign; as far to either side, where the zero point is a tie; tiny; far apart."""
    x = drawn(4, 6, 37)
    x[0], x[1], x[2] = 0, np.abs(x[1]) + 1, -np.abs(x[2]) - 1
    x[3] = np.clip(x[3], -2.5, 2.5)
    x[3, :2], x[4], x[5, 0] = (-2.5, 2.5), x[4] * np.float32(1e-30), 1e6
    check(dense(6, is_asymmetric), x)


_WEIGHT_ONLY = {
    KIND.FULLY_CONNECTED: ((5, 37), 0, 5, options_of("FullyConnected", RELU)),
    KIND.BATCH_MATMUL: ((1, 37, 5), 2, 1, options_of("BatchMatMul")),
}


def behind_a_node(kind: int, weight: Given, option: Option, *, has_bias: bool = False) -> bytes:
    """A product with the floats that a node makes of a constant."""
    writer, shape = ModelWriter("weight-only"), weight.data.shape
    x, held = writer.tensor("x", (3, 37), np.float32), writer.constant("weight", weight.data, weight.quantization)
    numbers, y = writer.tensor("numbers", shape, np.float32), writer.tensor("y", (*shape[:-2], 3, 5), np.float32)
    writer.operator(KIND.DEQUANTIZE, [held], numbers)
    bias = [writer.constant("bias", drawn(1, 5)) if has_bias else -1] if kind == KIND.FULLY_CONNECTED else []
    writer.operator(kind, [x, numbers, *bias], y, *option)
    return writer.finish([x], [y])


@pytest.mark.parametrize("kind", _WEIGHT_ONLY)
def test_weights_that_a_node_dequantizes_stay_packed(kind: int) -> None:
    shape, axis, scales, option = _WEIGHT_ONLY[kind]
    has_bias = kind == KIND.FULLY_CONNECTED
    content = behind_a_node(kind, quantized_weight(shape, axis, scales), option, has_bias=has_bias)
    assert "qnn.block_dense" in str(import_tflite(content))
    check(content, drawn(2, 3, 37))


@pytest.mark.parametrize("scales", [1, 9])
@pytest.mark.parametrize("row", [(7,), (2, 3)])
def test_rows_of_a_table_that_stays_packed(row: tuple[int, ...], scales: int) -> None:
    random, at = np.random.default_rng(8), np.array([8, 0, 3, 8], np.int32)
    steps = Quantization(tuple(random.uniform(0.01, 0.05, scales).tolist()), (0,) * scales, 0)
    table = known(random.integers(-8, 8, (9, *row)).astype(np.int8), steps)
    content = one_operator(KIND.EMBEDDING_LOOKUP, [Given(at), table], [Result((4, *row), np.float32)])
    assert "{bits = 4 : i64" in str(import_tflite(content))
    check(content, at)


def test_zero_points_of_many_ties() -> None:
    sides = np.random.default_rng(5).uniform(0.1, 9, 500).astype(np.float32)
    x = np.zeros((500, 37), np.float32)
    x[:, 0], x[:, 1], x[:, 2] = sides, -sides, sides / 3
    check(dense(500, True), x)


def near_ties(shape: Sequence[int], axes: tuple[int, ...], steps: int) -> Array:
    """Numbers within a few last places of halves of quantization steps, which are `steps` in a range, and its ends."""
    random = np.random.default_rng(8)
    kept = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    low, high = random.uniform(-3, -0.1, kept), random.uniform(0.1, 3, kept)
    low = low if steps == 255 else -high
    step = (high - low) / steps if steps == 255 else high / steps
    x = ((random.integers(-30, 30, shape) + 0.5) * step).astype(np.float32)
    x = np.clip((x.view(np.int32) + random.integers(-2, 3, shape).astype(np.int32)).view(np.float32), low, high)
    flat = np.moveaxis(x, axes, range(-len(axes), 0))
    rows = np.ascontiguousarray(flat).reshape(*flat.shape[: -len(axes)], -1)
    rows[..., 0], rows[..., 1] = np.squeeze(low, axes), np.squeeze(high, axes)
    return np.moveaxis(rows.reshape(flat.shape), range(-len(axes), 0), axes).astype(np.float32)


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_rows_of_near_ties(is_asymmetric: bool) -> None:
    """LiteRT rounds eight numbers at once, and what is left of a row one by one."""
    check(dense(200, is_asymmetric), near_ties((200, 37), (1,), 255 if is_asymmetric else 127))


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_nan_and_infinity(is_asymmetric: bool) -> None:
    """It is passed over where the range is found, and goes to an end of the range."""
    x = drawn(9, 4, 37)
    x[0, 3], x[1, 9], x[2, 5], x[3, 7] = np.nan, np.nan, np.inf, -np.inf
    x[1] -= 6
    check(dense(4, is_asymmetric), x)


def convolution(
    kind: int, batch: int, stride: int, padding: int, scales: int = 6, channels: int = 6, depth: int = 6, width: int = 3
) -> bytes:
    is_depthwise = kind == KIND.DEPTHWISE_CONV_2D
    shape = (1, width, width, 6) if is_depthwise else (channels, width, width, depth)
    weight = quantized_weight(shape, 3 if is_depthwise else 0, scales)
    size = [-(-(extent if padding == 0 else extent - width + 1) // stride) for extent in (9, 7)]
    fields = padding, stride, stride, *[1] * is_depthwise, 0, 1, 1
    option = options_of("DepthwiseConv2D" if is_depthwise else "Conv2D", *fields)
    inputs = [floats(batch, 9, 7, 6), weight, known(drawn(1, channels))]
    return one_operator(kind, inputs, [Result((batch, *size, channels), np.float32)], option)


@variants_together
@pytest.mark.parametrize("kind", [KIND.CONV_2D, KIND.DEPTHWISE_CONV_2D])
@pytest.mark.parametrize(("batch", "stride", "padding"), [(1, 1, 0), (1, 2, 1), (3, 2, 0)])
def test_convolutions(kind: int, batch: int, stride: int, padding: int) -> None:
    check(convolution(kind, batch, stride, padding), drawn(6, batch, 9, 7, 6))


@variants_together
@pytest.mark.parametrize("kind", [KIND.CONV_2D, KIND.DEPTHWISE_CONV_2D])
def test_convolutions_of_infinity(kind: int) -> None:
    """The results are the farthest finite numbers."""
    x = drawn(1, 1, 9, 7, 6)
    x[0, 3, 2, 1] = np.inf
    check(convolution(kind, 1, 1, 0), x)


@variants_together
@pytest.mark.parametrize("kind", [KIND.CONV_2D, KIND.DEPTHWISE_CONV_2D])
def test_convolutions_of_near_ties(kind: int) -> None:
    check(convolution(kind, 2, 1, 0), near_ties((2, 9, 7, 6), (1, 2, 3), 255))


@variants_together
@pytest.mark.parametrize("kind", [KIND.CONV_2D, KIND.DEPTHWISE_CONV_2D])
def test_scales_by_channel_that_are_all_the_same(kind: int) -> None:
    """A convolution of LiteRT compares them, and quantizes without a zero point then."""
    check(convolution(kind, 1, 1, 0, -6), drawn(6, 1, 9, 7, 6))


def test_a_depthwise_convolution_of_one_scale_is_refused() -> None:
    message = refused(convolution(KIND.DEPTHWISE_CONV_2D, 1, 1, 0, scales=1))
    assert "weight must have a scale for each of 6 channels, but got 1" in message


def transposed_convolution(batch: int, stride: int, padding: int, scales: int, activation: int) -> bytes:
    full = [(extent - 1) * stride + 3 if padding else extent * stride for extent in (9, 7)]
    shape = (batch, *full, 5)
    inputs = [known(np.array(shape, np.int32)), quantized_weight((5, 3, 3, 6), 0, scales), floats(batch, 9, 7, 6)]
    option = options_of("TransposeConv", padding, stride, stride, activation)
    return one_operator(KIND.TRANSPOSE_CONV, [*inputs, known(drawn(1, 5))], [Result(shape, np.float32)], option)


@variants_together
@pytest.mark.parametrize(
    ("batch", "stride", "padding", "scales", "activation"),
    [(1, 2, 1, 5, 0), (2, 1, 0, 1, RELU), (3, 2, 0, 5, RELU), (1, 3, 0, -5, 0)],
)
def test_transposed_convolutions(batch: int, stride: int, padding: int, scales: int, activation: int) -> None:
    """LiteRT rounds every product and every sum."""
    content, x = transposed_convolution(batch, stride, padding, scales, activation), drawn(6, batch, 9, 7, 6)
    module = import_tflite(content)
    (wanted,), (found,) = reference(content, [x]), interpreter.run(module, [x])
    largest = np.abs(wanted).max()
    assert_floats_within(found / largest, wanted / largest, "formula")
    check_compiled(module, "host", [[x]], [[found]])


def product(shape: tuple[int, ...], is_transposed: bool, is_asymmetric: bool, scales: int = 1) -> bytes:
    inputs = [floats(2, 4, 16), quantized_weight(shape, len(shape) - (2 if is_transposed else 1), scales)]
    option = options_of("BatchMatMul", 0, is_transposed, is_asymmetric)
    return one_operator(KIND.BATCH_MATMUL, inputs, [Result((2, 4, 5), np.float32)], option)


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
@pytest.mark.parametrize(("shape", "scales"), [((16, 5), 5), ((2, 16, 5), 1), ((2, 16, 5), 5), ((1, 16, 5), 1)])
def test_matrix_products(shape: tuple[int, ...], scales: int, is_asymmetric: bool) -> None:
    check(product(shape, is_transposed=False, is_asymmetric=is_asymmetric, scales=scales), drawn(7, 2, 4, 16))


@variants_together
@pytest.mark.parametrize("index", range(13))
def test_the_delegate(index: int) -> None:
    """It has one way to quantize; a last place may differ, as its multiply-adds are fused where the CPU has them."""
    content, shape = [
        (dense(5, is_asymmetric=False), (5, 37)),
        (dense(5, is_asymmetric=True, scales=1, has_bias=False, activation=RELU), (5, 37)),
        (convolution(KIND.CONV_2D, 2, 1, 0), (2, 9, 7, 6)),
        (convolution(KIND.CONV_2D, 1, 2, 1, scales=1), (1, 9, 7, 6)),
        (convolution(KIND.CONV_2D, 2, 1, 0, width=1), (2, 9, 7, 6)),
        (convolution(KIND.CONV_2D, 1, 2, 0, width=1), (1, 9, 7, 6)),
        (convolution(KIND.CONV_2D, 1, 1, 0, depth=3, width=1), (1, 9, 7, 6)),
        (convolution(KIND.DEPTHWISE_CONV_2D, 1, 1, 0), (1, 9, 7, 6)),
        (product((2, 5, 16), is_transposed=True, is_asymmetric=False, scales=5), (2, 4, 16)),
        (transposed_convolution(1, 2, 1, 5, 0), (1, 9, 7, 6)),
        (transposed_convolution(2, 1, 0, 1, RELU), (2, 9, 7, 6)),
        (transposed_convolution(1, 4, 1, 5, 0), (1, 9, 7, 6)),
        (transposed_convolution(1, 4, 0, 5, 0), (1, 9, 7, 6)),
    ][index]
    x = near_ties(shape, (len(shape) - 1,), 255)
    (wanted,) = frameworks.load_litert(content, 1, is_reference=False)([x])
    found = interpreter.run(import_tflite(content, profile="tflite-xnnpack"), [x])[0]
    largest = np.abs(wanted).max()
    assert_floats_within(found / largest, wanted / largest, "network")


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_weights_alone(axis: int | None, dtype: Any) -> None:
    """Float products with constants that a node makes of 8-bit ones, with a scale or one along an axis."""
    random, count = np.random.default_rng(7), 1 if axis is None else (5, 37)[axis]
    low, zero_points = (-127, (0,) * count) if dtype is np.int8 else (0, (128,) * count)
    scales = tuple(random.uniform(0.01, 0.05, count).tolist())
    held = random.integers(low, low + 255, (5, 37)).astype(dtype)
    weight = known(held, Quantization(scales, zero_points, axis or 0))
    check(behind_a_node(KIND.FULLY_CONNECTED, weight, options_of("FullyConnected", 0)), drawn(8, 3, 37))


@pytest.mark.parametrize("kind", [KIND.FULLY_CONNECTED, KIND.BATCH_MATMUL])
def test_weights_of_16_bits_are_floats(kind: int) -> None:
    """What a converter makes of a network whose constants it rounds to float16."""
    shape, _, _, option = _WEIGHT_ONLY[kind]
    check(behind_a_node(kind, known(drawn(3, *shape).astype(np.float16)), option), drawn(2, 3, 37))


# The arithmetic of TFLite's XNNPACK delegate against numbers that LiteRT gave with it.
#
# `tools/record/xnnpack.py` draws the cases: many results lie close to half-way between two quantized values, where the
# delegate differs from the reference kernels.

CASES = recordings.read_family("xnnpack")


@pytest.mark.parametrize("case", CASES)
def test_equals_the_delegate(case: str) -> None:
    recorded = CASES[case]
    (output,) = interpreter.run(import_tflite(recorded.model, profile="tflite-xnnpack"), list(recorded.inputs))
    assert np.count_nonzero(output != recorded.outputs[0]) == 0


def test_the_delegate_is_not_the_reference() -> None:
    different: set[str] = set()
    for name, case in CASES.items():
        (output,) = interpreter.run(import_tflite(case.model), list(case.inputs))
        if np.any(output != case.outputs[0]):
            different.add(name.split("_")[0])
    assert different >= {"ADD", "SUB", "MUL", "RESIZE", "MEAN", "QUANTIZE", "LEAKY"}


RESCALE = """
func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {{
  %0 = "qnn.requantize"(%x) {{input_scale = {scale} : f64, weight_scales = array<f64: 1.0>, axis = 0 : i64,
    input_zero_points = array<i64: 3>, output_scale = 1.0 : f64, output_zero_point = 5 : i64,
    rounding = "fixed32_double", multiplier = "{multiplier}"}} : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}}
"""


@pytest.mark.parametrize(
    ("scale", "multiplier", "is_taken"),
    [
        ("3.90625e-3", "f64", True),
        ("3.90624e-3", "f64", False),
        ("127.9", "f64", True),
        ("128.0", "f64", False),
        # A clamp's rescale.
        ("0.5", "f32", False),
    ],
)
def test_rescales_that_the_delegate_does_not_take_stay(scale: str, multiplier: str, is_taken: bool) -> None:
    module = parse(RESCALE.format(scale=scale, multiplier=multiplier))
    use_xnnpack(module)
    assert ("qnn.lut" in str(module)) == is_taken


def test_unknown_profiles_are_refused(tmp_path: Path) -> None:
    content = CASES["ADD_i8_0"].model
    assert "profile must be tflite or tflite-xnnpack, but got 'ort'" in refused(content, profile="ort")
    path = tmp_path / "x.tflite"
    path.write_bytes(content)
    with pytest.raises(ImportModelError, match=r"profile of a \.tflite file must be .*, but got 'ort'"):
        qdialect.compile(path, profile="ort")
    text = tmp_path / "x.mlir"
    text.write_text("module {}")
    with pytest.raises(ImportModelError, match=r"profile of a \.mlir file must be tosa, but got 'ort'"):
        read_model(text, ImportOptions(profile="ort"))


def test_a_rescale_of_16_bits_is_left() -> None:
    """The delegate's tables are of bytes."""
    given = np.arange(-5, 5, dtype=np.int16).reshape(2, 5)
    output = Result((2, 5), np.int16, Quantization((1.0,), (0,)))
    content = one_operator(KIND.QUANTIZE, [Given(given, False, Quantization((0.5,), (0,)))], [output])
    differences(content, [[given]])


# What LiteRT's default delegate takes of an operator and what it leaves alone, against LiteRT itself.

ROWS, DEPTH, COLUMNS = 40, 16, 40


def run_time_product(
    shape: tuple[int, ...], *, is_constant: bool, is_transposed: bool = False, zero_point: int = -7
) -> bytes:
    lhs = Given(np.zeros((2, ROWS, DEPTH), np.int8), False, Quantization((0.021,), (3,)))
    values = np.random.default_rng(5).integers(-128, 128, shape).astype(np.int8)
    rhs = Given(values, is_constant, Quantization((0.017,), (0 if is_constant else zero_point,)))
    result = Result((2, ROWS, COLUMNS), np.int8, Quantization((0.1862,), (5,)))
    return one_operator(KIND.BATCH_MATMUL, [lhs, rhs], [result], options_of("BatchMatMul", 0, is_transposed))


def samples_of(content: bytes, count: int) -> list[list[Array]]:
    random = np.random.default_rng(1)
    shapes = [tensor.shape for tensor in read_graph(content).inputs]
    return [[random.integers(-128, 128, shape).astype(np.int8) for shape in shapes] for _ in range(count)]


def differences(content: bytes, samples: list[list[Array]]) -> int:
    """How many elements of the reference kernels differ from the delegate's, which the profile must equal."""
    delegate, kernels = (frameworks.load_litert(content, 1, is_reference=flag) for flag in (False, True))
    module, different = import_tflite(content, profile="tflite-xnnpack"), 0
    for inputs in samples:
        (wanted,) = delegate(inputs)
        np.testing.assert_array_equal(interpreter.run(module, inputs)[0], wanted)
        different += int(np.count_nonzero(kernels(inputs)[0] != wanted))
    return different


@pytest.mark.parametrize(("shape", "is_transposed"), [((2, DEPTH, COLUMNS), False), ((2, COLUMNS, DEPTH), True)])
def test_products_of_run_time_matrices_are_the_reference_kernels(shape: tuple[int, ...], is_transposed: bool) -> None:
    content = run_time_product(shape, is_constant=False, is_transposed=is_transposed)
    assert differences(content, samples_of(content, 8)) == 0


def test_products_of_run_time_matrices_without_a_zero_point_are_the_delegates() -> None:
    content = run_time_product((2, DEPTH, COLUMNS), is_constant=False, zero_point=0)
    assert differences(content, samples_of(content, 8)) > 0


@pytest.mark.parametrize("shape", [(DEPTH, COLUMNS), (2, DEPTH, COLUMNS)])
def test_products_with_constant_matrices_are_the_delegates(shape: tuple[int, ...]) -> None:
    content = run_time_product(shape, is_constant=True)
    assert differences(content, samples_of(content, 8)) > 0


@pytest.mark.parametrize("model", [Lstm(cells=24), Lstm(has_peepholes=True, width=13), Svdf()])
def test_recurrent_operators_are_the_reference_kernels(model: Lstm | Svdf) -> None:
    content = model.content()
    assert differences(content, samples_of(content, 8)) == 0


def mean(dtype: type[np.generic], scales: tuple[float, float], points: tuple[int, int]) -> bytes:
    before, after = (Quantization((scale,), (point,)) for scale, point in zip(scales, points, strict=True))
    inputs = [Given(np.zeros((1, 7, 7, 576), dtype), False, before), known(np.array([1, 2], np.int32))]
    return one_operator(KIND.MEAN, inputs, [Result((1, 1, 1, 576), dtype, after)], options_of("Reducer", 1))


def of_sums(sums: Array, count: int) -> Array:
    """Columns of `count` elements that add up to the sums."""
    whole, rest = np.divmod(sums, count)
    return whole + (np.arange(count)[:, None] < rest)


@pytest.mark.parametrize(
    "scales",
    [
        (0.0031957149039953947, 0.003083461197093129),
        (0.0031957156024873257, 0.00308346189558506),
        (0.0031957163009792566, 0.0030834549106657505),
        (0.0031957176979631186, 0.0030834556091576815),
    ],
)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_means_that_are_near_ties(scales: tuple[float, float], dtype: type[np.generic]) -> None:
    """Of all sums those whose means are the nearest to half-way between two quantized values."""
    low, high, points = (0, 255, (83, 83)) if dtype is np.uint8 else (-128, 127, (-45, -45))
    sums = np.arange(low * 49, high * 49 + 1)
    exact = (sums - 49 * points[0]) / 49 * scales[0] / scales[1]
    sums = sums[np.argsort(np.abs(exact - np.floor(exact) - 0.5))[:576]]
    content = mean(dtype, scales, points)
    values = of_sums(sums, 49).astype(dtype).reshape(1, 7, 7, 576)
    differences(content, [[values]])
    module = import_tflite(content, profile="tflite-xnnpack")
    np.testing.assert_array_equal(compile_module(module)(values), interpreter.run(module, [values])[0])


def delegated(kind: int, inputs: list[Given], output: Result, option: Option) -> None:
    """The operator with the delegate's arithmetic has the bits of LiteRT as desktops run it."""
    content = one_operator(kind, inputs, [output], option)
    arrays = [one.data for one in inputs if not one.is_constant]
    wanted = frameworks.load_litert(content, 1, is_reference=False)(arrays)
    module = import_tflite(content, profile="tflite-xnnpack")
    np.testing.assert_array_equal(interpreter.run(module, arrays)[0], wanted[0])
    check_compiled(module, "host", [arrays], [wanted])


def drawn_bytes(dtype: Any, *shape: int) -> Array:
    ends = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(ends.min, ends.max + 1, shape).astype(dtype)


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("scales", [(0.01, 0.1), (0.01, 0.31), (0.03, 0.077), (0.01, 0.01)])
def test_sums_over_axes(scales: tuple[float, float], dtype: type[np.generic]) -> None:
    points = (3, -5) if dtype is np.int8 else (130, 7)
    before, after = (Quantization((scale,), (point,)) for scale, point in zip(scales, points, strict=True))
    inputs = [Given(drawn_bytes(dtype, 700, 7), False, before), known(np.array([1], np.int32))]
    delegated(KIND.SUM, inputs, Result((700,), dtype, after), options_of("Reducer"))


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("weight_point", [0, 5])
@pytest.mark.parametrize("scale", [0.05, 0.137, 1e-4])
def test_dense_products_of_run_time_weights(scale: float, weight_point: int, dtype: type[np.generic]) -> None:
    """The delegate leaves them to a kernel that rounds twice, ties up; factors of more than one, and of bytes alone."""
    data = Given(drawn_bytes(dtype, 90, 37), quantization=Quantization((0.02,), (3,)))
    weight = Given(drawn_bytes(dtype, 19, 37), quantization=Quantization((0.01,), (weight_point,)))
    output = Result((90, 19), dtype, Quantization((scale,), (7,)))
    delegated(KIND.FULLY_CONNECTED, [data, weight], output, options_of("FullyConnected"))
