"""Halves and ends of TFLite operators: each kernel of LiteRT rounds them in its own way."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
import tflite
from tflite_graphs import Array, options_of
from tolerances import assert_bits

import qdialect
from qdialect.frontends import frameworks
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.frontends.tflite.flatbuffer.writer import options as named_options

BYTES = np.arange(-128, 128).astype(np.int8)
WORDS = np.arange(-32768, 32768, 5).astype(np.int16)
NONE = (tflite.BuiltinOptions.NONE, None)
DENSE = options_of("FullyConnected", 0, 0, 0)
Step = tuple[float, int]


def _bytes_of(dtype: type[np.generic]) -> Array:
    return WORDS if dtype is np.int16 else BYTES.view(dtype)


@pytest.mark.parametrize(
    ("kind", "dtype", "given", "result", "target", "option", "refused"),
    [
        ("ELU", np.int8, (0.25, 3), (0.5, -4), np.int8, NONE, ""),
        ("QUANTIZE", np.int8, (0.125, 127), (2.0, 128), np.uint8, NONE, "become one below zero and a half"),
        ("QUANTIZE", np.uint8, (0.5, 255), (1.5, 9), np.int8, NONE, "become one below zero and a half"),
        ("QUANTIZE", np.uint8, (0.5, 128), (0.5, 0), np.int8, NONE, ""),
        (
            "LEAKY_RELU",
            np.int16,
            (0.001, 0),
            (0.002, 0),
            np.int16,
            options_of("LeakyRelu", -0.5),
            "must not be negative",
        ),
        ("LEAKY_RELU", np.int16, (0.001, 0), (0.002, 0), np.int16, options_of("LeakyRelu", 0.5), ""),
        ("TANH", np.int16, (2.0**-11, 0), (2.0**-15, 0), np.int16, NONE, "must be none of 2\\^-12, 2\\^-11"),
        ("LOGISTIC", np.int16, (2.0**-12, 0), (2.0**-15, 0), np.int16, NONE, "must be none of 2\\^-12"),
        ("LOGISTIC", np.int16, (2.0**-11, 0), (2.0**-15, 0), np.int16, NONE, ""),
    ],
)
def test_ties_of_one_input(
    kind: str, dtype: type[np.generic], given: Step, result: Step, target: Any, option: Any, refused: str
) -> None:
    """The reference kernels, XNNPACK and LiteRT's other kernels round halves each in their own way."""
    x, ends = _bytes_of(dtype), [Quantization((scale,), (point,)) for scale, point in (given, result)]
    b = ModelWriter("ties")
    data, output = b.tensor("x", x.shape, dtype, ends[0]), b.tensor("y", x.shape, target, ends[1])
    b.operator(getattr(tflite.BuiltinOperator, kind), [data], output, *option)
    # LiteRT has no reference kernel for ELU.
    check_both(b.finish([data], [output]), [x], refused, knows_reference=kind != "ELU")


NAN, INFINITE = float("nan"), float("inf")
ENDS = np.array([[NAN, 1, 2e37, INFINITE], [2, NAN, 2e37, 1], [-INFINITE, 2, 1, 0], [1, 2e37, -2, 3]], np.float32)
WINDOW = {"Padding": 1, "StrideH": 1, "StrideW": 1}


@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"])
def test_ends_of_two_floats(kind: str) -> None:
    """The reference kernels bound infinities, and extremes are the right operand where either is NaN."""
    b = ModelWriter("ends")
    inputs = [b.tensor(name, ENDS.shape, np.float32) for name in "xy"]
    output = b.tensor("z", ENDS.shape, np.float32)
    option: Any = NONE if kind[1] in "AI" else named_options(f"{kind.capitalize()}Options")
    b.operator(getattr(tflite.BuiltinOperator, kind), inputs, output, *option)
    check_both(b.finish(inputs, [output]), [ENDS, np.ascontiguousarray(ENDS[::-1])], "")


@pytest.mark.parametrize("kind", ["MAXIMUM", "MINIMUM"])
@pytest.mark.parametrize(
    ("left", "right", "constant"),
    [((3, 40), (40,), None), ((3, 1), (3, 40), None), ((40,), (1,), None), ((40,), (1,), 1), ((1,), (40,), 0)],
)
def test_the_other_operand_of_nan(
    kind: str, left: tuple[int, ...], right: tuple[int, ...], constant: int | None
) -> None:
    """XNNPACK exchanges operands where the second is a constant number, or the first one broadcasts along rows."""
    b, data = ModelWriter("ends"), [np.ones(left, np.float32), np.full(right, NAN, np.float32)]
    names = [
        b.constant(name, one) if index == constant else b.tensor(name, one.shape, np.float32)
        for index, (name, one) in enumerate(zip("xy", data, strict=True))
    ]
    output = b.tensor("z", np.broadcast_shapes(left, right), np.float32)
    b.operator(getattr(tflite.BuiltinOperator, kind), names, output, *NONE)
    free = [index for index in (0, 1) if index != constant]
    check_both(b.finish([names[index] for index in free], [output]), [data[index] for index in free], "")


def test_hard_swish_does_not_overflow_in_xnnpack() -> None:
    b, data = ModelWriter("ends"), np.array([3e38, -3e38, 1e38, -2.7, 1.3, -0.0, INFINITE, NAN], np.float32)
    x, y = (b.tensor(name, data.shape, np.float32) for name in "xy")
    b.operator(tflite.BuiltinOperator.HARD_SWISH, [x], y, *NONE)
    check_both(b.finish([x], [y]), [data], "")


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("RELU", NONE),
        ("RELU6", NONE),
        ("NEG", named_options("NegOptions")),
        ("LEAKY_RELU", options_of("LeakyRelu", -0.5)),
        ("MUL", named_options("MulOptions", FusedActivationFunction=1)),
    ],
)
def test_zeros_keep_the_sign_that_the_kernel_gives(kind: str, option: Any) -> None:
    b, data = ModelWriter("zeros"), np.resize(np.array([0.0, -0.0, NAN, INFINITE, -INFINITE, 3, -3], np.float32), 35)
    inputs = [b.tensor(name, data.shape, np.float32) for name in ("xy" if kind == "MUL" else "x")]
    output = b.tensor("z", data.shape, np.float32)
    b.operator(getattr(tflite.BuiltinOperator, kind), inputs, output, *option)
    check_both(b.finish(inputs, [output]), [data, np.sort(data)][: len(inputs)], "")


@pytest.mark.parametrize("kind", ["REDUCE_MAX", "REDUCE_MIN"])
def test_extremes_of_rows_pass_over_nan(kind: str) -> None:
    """The reference kernels begin with the farthest finite number, too; XNNPACK passes over NaN by its place."""
    b, data = ModelWriter("ends"), np.concatenate([ENDS, np.full((3, 4), [[NAN], [INFINITE], [-INFINITE]], np.float32)])
    x, y = b.tensor("x", data.shape, np.float32), b.tensor("y", data.shape[:1], np.float32)
    axes = b.constant("axes", np.array([1], np.int32))
    b.operator(getattr(tflite.BuiltinOperator, kind), [x, axes], y, *named_options("ReducerOptions"))
    content = b.finish([x], [y])
    (wanted,) = frameworks.load_litert(content, 1, is_reference=True)([data])
    found = qdialect.compile(content, profile="tflite", fallback="none", cache=False)(data)
    np.testing.assert_array_equal(np.asarray(found), wanted)


NUMBERS = (np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_casts_to_all_types(dtype: type[np.generic]) -> None:
    """Floats saturate, integers wrap around, and every number but 0 is true."""
    floats = [NAN, INFINITE, -INFINITE, 3e9, -3e9, 1e19, -1e19, 2.0**31, -(2.0**31), 2.7, -128.9, -0.0, 1e-40, 255.5]
    numbers = np.array([0, 1, -1, 127, -129, 255, 300, 32768, -40000, 2**31, -(2**40) - 7])
    b, data = ModelWriter("cast"), np.array(floats, np.float32) if dtype is np.float32 else numbers.astype(dtype)
    x, targets = b.tensor("x", data.shape, dtype), [target for target in NUMBERS if target is not dtype]
    results = [b.tensor(f"y{index}", data.shape, target) for index, target in enumerate(targets)]
    for result in results:
        b.operator(tflite.BuiltinOperator.CAST, [x], result, *named_options("CastOptions"))
    check_both(b.finish([x], results), [data], "")


@pytest.mark.parametrize(
    ("kind", "weight", "option"),
    [
        ("FULLY_CONNECTED", (1, 4), named_options("FullyConnectedOptions")),
        ("CONV_2D", (1, 1, 1, 4), named_options("Conv2DOptions", DilationHFactor=1, DilationWFactor=1, **WINDOW)),
        ("MAX_POOL_2D", (), named_options("Pool2DOptions", FilterHeight=1, FilterWidth=2, **WINDOW)),
        ("AVERAGE_POOL_2D", (), named_options("Pool2DOptions", FilterHeight=1, FilterWidth=2, **WINDOW)),
    ],
)
def test_ends_of_sums_of_floats(kind: str, weight: Sequence[int], option: Any) -> None:
    """Of the reference kernels: XNNPACK makes of NaN what its lanes make of it."""
    b, data = ModelWriter("ends"), ENDS if kind[0] == "F" else ENDS.reshape(1, 1, 4, 4)
    x = b.tensor("x", data.shape, np.float32)
    shape = (*data.shape[:-1], 1) if weight else (1, 1, 3, 4)
    output = b.tensor("y", shape, np.float32)
    constants = (
        [b.constant("w", np.ones(weight, np.float32)), b.constant("b", np.zeros(1, np.float32))] if weight else []
    )
    b.operator(getattr(tflite.BuiltinOperator, kind), [x, *constants], output, *option)
    content = b.finish([x], [output])
    (wanted,) = frameworks.load_litert(content, 1, is_reference=True)([data])
    found = qdialect.compile(content, profile="tflite", fallback="none", cache=False)(data)
    np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize(
    ("kind", "dtype", "scales", "points", "activation", "refused"),
    [
        ("ADD", np.int8, (2.56, 0.01, 0.01), (1, -3, 7), 0, "rescale factor must be below 2\\^8"),
        ("MUL", np.uint8, (2.56, 1.0, 0.01), (100, 120, 130), 0, "rescale factor must be below 2\\^8"),
        ("ADD", np.int8, (2.0, 4.0, 4.0), (0, 0, 7), 3, "no bound of a fused activation may lie halfway"),
        ("MUL", np.uint8, (2.0, 1.0, 2.0), (128, 128, 130), 2, "no bound of a fused activation may lie halfway"),
        ("SUB", np.int8, (2.0, 2.0, 2.0), (0, 0, 7), 2, ""),
    ],
)
def test_ties_and_ends_of_two_inputs(
    kind: str, dtype: type[np.generic], scales: Sequence[float], points: Sequence[int], activation: int, refused: str
) -> None:
    x, y = (np.ascontiguousarray(one) for one in np.meshgrid(_bytes_of(dtype), _bytes_of(dtype)[::15]))
    steps = [Quantization((scale,), (point,)) for scale, point in zip(scales, points, strict=True)]
    b = ModelWriter("ties")
    *inputs, output = (b.tensor(name, x.shape, dtype, step) for name, step in zip("xyz", steps, strict=True))
    option = options_of(kind.capitalize(), activation)
    b.operator(getattr(tflite.BuiltinOperator, kind), inputs, output, *option)
    check_both(b.finish(inputs, [output]), [x, y], refused)


@pytest.mark.parametrize(
    ("dtype", "scale", "has_bias", "refused"),
    [
        (np.int8, 12.0, True, ""),
        (np.int8, 16.0, True, ""),
        (np.uint8, 12.0, True, ""),
        (np.int16, 16.0, True, ""),
        (np.int16, 16.0, False, "bias of i16 input must be i64"),
    ],
)
def test_ties_of_dense_layers(dtype: type[np.generic], scale: float, has_bias: bool, refused: str) -> None:
    """The reference kernel multiplies in float64: a factor 1/12 of 31 bits would not find all halves."""
    point = 128 if dtype is np.uint8 else 0
    of_words = dtype is np.int16
    one, wide = Quantization((1.0,), (point,)), np.int64 if of_words else np.int32
    weights = (np.arange(3000).reshape(-1, 1) % 3 - 1 + point).astype(np.int8 if of_words else dtype)
    b = ModelWriter("dense")
    x, y = b.tensor("x", (1, 1), dtype, one), b.tensor("y", (1, 3000), dtype, Quantization((scale,), (point,)))
    constants = [b.constant("w", weights, one)]
    bias = np.arange(-1500, 1500).astype(wide)
    constants += [b.constant("b", bias, Quantization((1.0,), (0,)))] if has_bias else []
    b.operator(tflite.BuiltinOperator.FULLY_CONNECTED, [x, *constants], y, *DENSE)
    data = np.array([[-24 if of_words else point + 2]]).astype(dtype)
    check_both(b.finish([x], [y]), [data], refused)


@pytest.mark.parametrize(("point", "refused"), [(0, ""), (5, "constant right operand must have zero point 0")])
def test_ties_of_products_by_a_constant(point: int, refused: str) -> None:
    drawn, b = np.random.default_rng(0), ModelWriter("product")
    right = b.constant("w", drawn.integers(-128, 128, (2, 3, 50)).astype(np.int8), Quantization((1.0,), (point,)))
    x = b.tensor("x", (2, 40, 3), np.int8, Quantization((1.0,), (7,)))
    y = b.tensor("y", (2, 40, 50), np.int8, Quantization((1024.0,), (3,)))
    b.operator(tflite.BuiltinOperator.BATCH_MATMUL, [x, right], y, *options_of("BatchMatMul", 0, 0))
    check_both(b.finish([x], [y]), [drawn.integers(-128, 128, (2, 40, 3)).astype(np.int8)], refused)


@pytest.mark.parametrize(("wide", "refused"), [(np.int64, ""), (np.int32, "bias of i16 input must be i64")])
def test_ties_of_convolved_words(wide: type[np.generic], refused: str) -> None:
    drawn, b, one = np.random.default_rng(0), ModelWriter("words"), Quantization((1.0,), (0,))
    x = b.tensor("x", (1, 6, 6, 3), np.int16, one)
    weight = b.constant("w", drawn.integers(-2, 3, (21, 2, 2, 3)).astype(np.int8), one)
    bias = b.constant("b", drawn.integers(-9999, 9999, 21).astype(wide), one)
    y = b.tensor("y", (1, 6, 6, 21), np.int16, Quantization((16.0,), (0,)))
    named = {"QuantizedBiasType": tflite.TensorType.INT32 if wide is np.int32 else tflite.TensorType.INT64}
    option = named_options("Conv2DOptions", StrideW=1, StrideH=1, **named)
    b.operator(tflite.BuiltinOperator.CONV_2D, [x, weight, bias], y, *option)
    check_both(b.finish([x], [y]), [drawn.integers(-32768, 32768, (1, 6, 6, 3)).astype(np.int16)], refused)


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_indices_among_nan(kind: str) -> None:
    """No comparison with NaN holds: it is passed over, and stays where it is the first."""
    data, b = np.random.default_rng(0).integers(-3, 4, (40, 9)).astype(np.float32), ModelWriter("index")
    data.ravel()[::5], data.ravel()[::7] = np.nan, np.inf if kind == "ArgMin" else -np.inf
    x, y = b.tensor("x", data.shape, np.float32), b.tensor("y", data.shape[:1], np.int32)
    code = tflite.BuiltinOperator.ARG_MAX if kind == "ArgMax" else tflite.BuiltinOperator.ARG_MIN
    b.operator(code, [x, b.constant("axis", np.array(1, np.int32))], y, *options_of(kind, tflite.TensorType.INT32))
    check_both(b.finish([x], [y]), [data], "")


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (1, 3, 5, 4)])
def test_scales_of_other_rows(shape: tuple[int, ...]) -> None:
    """The reference kernel of hybrid products takes them where two leading dimensions count."""
    drawn, b = np.random.default_rng(0), ModelWriter("product")
    data = drawn.normal(size=shape).astype(np.float32)
    weights = drawn.integers(-127, 128, (*shape[:2], 4, 6)).astype(np.int8)
    x, y = b.tensor("x", shape, np.float32), b.tensor("y", (*shape[:3], 6), np.float32)
    right = b.constant("w", weights, Quantization((0.01,), (0,)))
    b.operator(tflite.BuiltinOperator.BATCH_MATMUL, [x, right], y, *options_of("BatchMatMul", 0, 0))
    content = b.finish([x], [y])
    (wanted,) = frameworks.load_litert(content, 1, is_reference=True)([data])
    found = qdialect.compile(content, profile="tflite", fallback="framework", cache=False)(data)
    np.testing.assert_array_equal(np.asarray(found), wanted)
    if shape[0] > 1:
        with pytest.raises(qdialect.ImportModelError, match="at most one leading dimension of more than 1"):
            qdialect.compile(content, profile="tflite", fallback="none", cache=False)


def check_both(content: bytes, inputs: Sequence[Array], refused: str, *, knows_reference: bool = True) -> None:
    """A model has LiteRT's numbers of both profiles, where nothing of XNNPACK's is `refused`."""

    def check(profile: str, fallback: Literal["framework", "none"]) -> None:
        wanted = frameworks.load_litert(content, 1, is_reference=profile == "tflite")(inputs)
        found = qdialect.compile(content, profile=profile, fallback=fallback, cache=False)(*inputs)
        for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            assert_bits(np.asarray(one), other)

    if knows_reference:
        check("tflite", "none")
    check("tflite-xnnpack", "framework" if refused else "none")
    if refused:
        with pytest.raises(qdialect.ImportModelError, match=refused):
            qdialect.compile(content, profile="tflite-xnnpack", fallback="none", cache=False)
