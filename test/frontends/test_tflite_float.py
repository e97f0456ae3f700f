"""Operators between float32 tensors, and halves and ends of others: what LiteRT's kernels give, and gave (recorded)."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
import recordings
import tflite
from compiled_ops import check_compiled, variants_together
from tflite_graphs import Array, Given, Option, Result, check_operator, one_operator, options_of, refused
from tolerances import assert_bits, assert_floats_within

import qdialect
from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.frontends.tflite.flatbuffer.writer import options as named_options
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

CASES = recordings.read_family("f32_tflite")
# Units of the last place of the larger term: a C library's functions are not always rounded correctly.
DISTANCES = {"network": 0, "softmax": 0, "arithmetic": 0, "functions": 32}


@pytest.mark.parametrize("name", DISTANCES)
def test_recorded_results(name: str) -> None:
    recorded = CASES[name]
    module = import_tflite(recorded.model)
    (data,), (wanted,) = recorded.inputs, recorded.outputs
    (found,) = interpreter.run(module, [data])
    distance = np.abs(found.view(np.int32).astype(np.int64) - wanted.view(np.int32))
    assert distance.max() <= DISTANCES[name]
    for target in ("host", "generic"):
        np.testing.assert_array_equal(compile_module(module, target=target)(data), found)


KIND = tflite.BuiltinOperator
SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
RELU, RELU6, RELU_N1_TO_1 = (getattr(tflite.ActivationFunctionType, name) for name in ("RELU", "RELU6", "RELU_N1_TO_1"))
Node = tuple[int, list[Given], tuple[int, ...], Option | None]


def f32(*shape: int, seed: int = 0) -> Given:
    return Given(np.random.default_rng(seed).normal(size=shape).astype(np.float32) * np.float32(3))


def known(given: Given) -> Given:
    return Given(given.data, is_constant=True)


def extents(*entries: int) -> Given:
    return Given(np.array(entries, np.int32), is_constant=True)


def windows(padding: int, strides: Any, dilation: Any = (1, 1, 1), activation: int = 0) -> Option:
    """Options: padding, strides D, W and H, activation, dilation D, W and H."""
    numbers, apart = ((n[0], n[2], n[1]) for n in (strides, dilation))
    return options_of("Conv3D", padding, *numbers, activation, *apart)


def zeros_and_small(*shape: int) -> Given:
    """One row is zero, one nearly."""
    data = f32(*shape).data
    data[0], data[1] = 0, data[1] * 1e-9
    return Given(data)


Matrices = tuple[Any, Any, tuple[bool, bool], tuple[int, ...]]
MATRICES: list[Matrices] = [
    ((5, 7), (7, 3), (False, False), (5, 3)),
    ((2, 5, 7), (2, 7, 3), (False, False), (2, 5, 3)),
    ((2, 7, 5), (2, 3, 7), (True, True), (2, 5, 3)),
    ((2, 1, 5, 7), (4, 3, 7), (False, True), (2, 4, 5, 3)),
    ((2, 5, 7), (7, 3), (False, False), (2, 5, 3)),
    ((5, 7), (2, 7, 3), (False, False), (2, 5, 3)),
]


def products(matrices: Sequence[Matrices]) -> list[Node]:
    """By a constant matrix, and by one that is given."""
    return [
        (
            KIND.BATCH_MATMUL,
            [f32(*lhs), known(f32(*rhs, seed=1)) if is_known else f32(*rhs, seed=1)],
            shape,
            options_of("BatchMatMul", *adjoints),
        )
        for lhs, rhs, adjoints, shape in matrices
        for is_known in (True, False)
    ]


CONVOLUTIONS: list[tuple[Any, Any, int, Any, Any, tuple[int, ...]]] = [
    ((1, 5, 7, 6, 3), (3, 3, 3, 3, 4), SAME, (1, 1, 1), (1, 1, 1), (1, 5, 7, 6, 4)),
    ((2, 6, 7, 9, 2), (2, 3, 4, 2, 5), VALID, (2, 1, 3), (1, 1, 1), (2, 3, 5, 2, 5)),
    ((1, 7, 9, 8, 1), (2, 3, 2, 1, 3), VALID, (1, 2, 1), (2, 1, 3), (1, 5, 4, 5, 3)),
    ((1, 5, 5, 7, 2), (3, 2, 3, 2, 1), SAME, (2, 3, 2), (1, 1, 1), (1, 3, 2, 4, 1)),
]
TRANSPOSED: list[tuple[Any, Any, int, Any, tuple[int, ...]]] = [
    ((1, 3, 4, 2, 3), (2, 2, 2, 5, 3), VALID, (2, 2, 2), (1, 6, 8, 4, 5)),
    ((2, 3, 3, 4, 2), (3, 3, 2, 4, 2), SAME, (2, 1, 3), (2, 6, 3, 12, 4)),
    ((1, 2, 3, 3, 4), (3, 2, 4, 1, 4), VALID, (1, 3, 2), (1, 4, 9, 8, 1)),
]
POOLS: list[tuple[int, Any, Any, tuple[int, ...], int]] = [
    (VALID, (2, 3), (2, 1), (2, 3, 5, 5), 0),
    (SAME, (3, 3), (2, 2), (2, 4, 4, 5), RELU6),
    (SAME, (7, 7), (1, 1), (2, 7, 7, 5), RELU_N1_TO_1),
    (SAME, (1, 1), (3, 2), (2, 3, 4, 5), 0),
]
# Outputs larger than the full extent too.
IMAGES: list[tuple[int, Any, Any, tuple[int, ...], int]] = [
    (SAME, (3, 3), (2, 2), (2, 8, 10, 3), 0),
    (VALID, (3, 2), (1, 1), (2, 6, 6, 3), RELU),
    (VALID, (2, 2), (3, 3), (2, 11, 14, 3), 0),
    (VALID, (2, 4), (3, 2), (2, 13, 13, 3), RELU6),
    (SAME, (1, 5), (2, 3), (2, 7, 13, 3), 0),
    (VALID, (5, 5), (2, 2), (2, 12, 14, 3), 0),
]
NODES: list[Node] = [
    *((KIND.PRELU, [f32(3, 19), known(f32(*shape, seed=1))], (3, 19), None) for shape in ((19,), (3, 1), (3, 19))),
    *(
        (kind, [f32(3, 19), f32(*shape, seed=2)], (3, 19), None)
        for kind in (KIND.SQUARED_DIFFERENCE, KIND.FLOOR_DIV, KIND.FLOOR_MOD)
        for shape in ((19,), (3, 1), (3, 19))
    ),
    # Sums of long rows are taken in order.
    *((kind, [f32(5, 100), extents(1)], (5,), options_of("Reducer", False)) for kind in (KIND.SUM, KIND.MEAN)),
    *products(MATRICES),
    *(
        (
            KIND.CONV_3D,
            [f32(*data), known(f32(*weight)), *([known(f32(weight[4]))] if has_bias else [])],
            shape,
            windows(padding, strides, dilation, int(has_bias)),
        )
        for data, weight, padding, strides, dilation, shape in CONVOLUTIONS
        for has_bias in (False, True)
    ),
    *(
        (
            KIND.CONV_3D_TRANSPOSE,
            [extents(*shape), known(f32(*weight)), f32(*data), *([known(f32(weight[3]))] if has_bias else [])],
            shape,
            windows(padding, strides),
        )
        for data, weight, padding, strides, shape in TRANSPOSED
        for has_bias in (False, True)
    ),
    *(
        (KIND.L2_NORMALIZATION, [given], given.data.shape, options_of("L2Norm"))
        for given in (f32(7), zeros_and_small(3, 5), zeros_and_small(2, 3, 4, 33))
    ),
    (KIND.L2_POOL_2D, [f32(1, 7, 7, 5)], (1, 4, 4, 5), options_of("Pool2D", SAME, 2, 2, 3, 3)),
    (KIND.L2_POOL_2D, [f32(1, 7, 7, 5)], (1, 3, 3, 5), options_of("Pool2D", VALID, 2, 2, 2, 2)),
    *(
        (kind, [f32(2, 7, 7, 5)], shape, options_of("Pool2D", padding, *strides[::-1], *kernel[::-1], activation))
        for padding, kernel, strides, shape, activation in POOLS
        for kind in (KIND.MAX_POOL_2D, KIND.AVERAGE_POOL_2D)
    ),
    *(
        (
            KIND.TRANSPOSE_CONV,
            [extents(*shape), known(f32(3, *kernel, 4)), f32(2, 4, 5, 4), *([known(f32(3))] if has_bias else [])],
            shape,
            options_of("TransposeConv", padding, *strides[::-1], activation),
        )
        for padding, kernel, strides, shape, activation in IMAGES
        for has_bias in (False, True)
    ),
]


@variants_together
@pytest.mark.parametrize("number", range(len(NODES)))
def test_operators(number: int) -> None:
    kind, inputs, shape, option = NODES[number]
    check_operator(kind, inputs, [Result(shape, np.float32)], option)


# Sums by the delegate: (data, weight, strides, dilation, shape) of convolutions, without dilation of transposed ones.
DELEGATED_IMAGES: list[tuple[Any, Any, Any, Any, Any]] = [
    ((2, 9, 8, 5), (7, 3, 2, 5), (2, 1), (1, 1), (2, 5, 8, 7)),
    ((1, 9, 8, 5), (17, 3, 3, 5), (1, 1), (2, 3), (1, 9, 8, 17)),
    ((1, 7, 6, 1), (3, 3, 3, 1), (1, 1), (1, 1), (1, 7, 6, 3)),
    ((1, 7, 6, 70), (33, 1, 1, 70), (1, 1), (1, 1), (1, 7, 6, 33)),
]
DELEGATED_TRANSPOSED: list[tuple[Any, Any, Any, Any]] = [
    ((1, 5, 4, 3), (7, 2, 2, 3), (2, 2), (1, 10, 8, 7)),
    ((2, 5, 4, 3), (7, 3, 3, 3), (2, 2), (2, 10, 8, 7)),
    ((1, 5, 4, 3), (7, 2, 3, 3), (2, 1), (1, 10, 4, 7)),
    ((1, 5, 4, 3), (7, 5, 4, 3), (3, 2), (1, 15, 8, 7)),
    ((1, 5, 4, 1), (1, 3, 3, 1), (1, 1), (1, 5, 4, 1)),
]
DELEGATED: list[Node] = [
    *(
        (
            KIND.CONV_2D,
            [f32(*data), known(f32(*weight, seed=1)), known(f32(weight[0], seed=2))],
            shape,
            options_of("Conv2D", SAME, *strides[::-1], activation, *dilation[::-1]),
        )
        for data, weight, strides, dilation, shape in DELEGATED_IMAGES
        for activation in (0, RELU6)
    ),
    *(
        (
            KIND.TRANSPOSE_CONV,
            [extents(*shape), known(f32(*weight, seed=1)), f32(*data), *([known(f32(weight[0], seed=2))] * has_bias)],
            shape,
            options_of("TransposeConv", SAME, *strides[::-1], 0),
        )
        for data, weight, strides, shape in DELEGATED_TRANSPOSED
        for has_bias in (False, True)
    ),
    *(
        (
            KIND.FULLY_CONNECTED,
            [f32(rows, 300), known(f32(33, 300, seed=1)), *([known(f32(33, seed=2))] * has_bias)],
            (rows, 33),
            options_of("FullyConnected", RELU),
        )
        for rows in (1, 5)
        for has_bias in (False, True)
    ),
    *products([one for one in MATRICES if not one[2][0] and len(one[0]) >= len(one[1])]),
    *(
        (kind, [f32(2, 9, 5, 33), extents(*axes)], shape, options_of("Reducer", False))
        for kind in (KIND.SUM, KIND.MEAN)
        for axes, shape in (((1, 2), (2, 33)), ((1,), (2, 5, 33)))
    ),
]


@variants_together
@pytest.mark.parametrize("number", range(len(DELEGATED)))
def test_sums_of_the_delegate(number: int) -> None:
    """Products are not rounded before they are added, from the bias on; means are multiplied by a reciprocal."""
    kind, inputs, shape, option = DELEGATED[number]
    content = one_operator(kind, inputs, [Result(shape, np.float32)], option)
    arrays = [one.data for one in inputs if not one.is_constant]
    (wanted,) = frameworks.load_litert(content, 1, is_reference=False, needs_delegate=True)(arrays)
    module = import_tflite(content, profile="tflite-xnnpack")
    np.testing.assert_array_equal(interpreter.run(module, arrays)[0], wanted)
    check_compiled(module, "host", [arrays], [[wanted]])


@variants_together
@pytest.mark.parametrize("shape", [(50, 10), (50, 100), (3, 7, 129), (1, 1000)], ids=str)
@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_softmax(shape: tuple[int, ...], beta: float) -> None:
    """The exponentials of the C library, added in order."""
    result = Result(shape, np.float32)
    check_operator(KIND.SOFTMAX, [f32(*shape)], [result], options_of("Softmax", beta))


@variants_together
@pytest.mark.parametrize(
    ("radius", "channels", "bias", "alpha", "beta"),
    [(1, 1, 2.0, 0.3, 0.75), (2, 7, 1.0, 1.0, 0.5), (5, 40, 2.0, 0.3, 0.75), (40, 9, 2.0, 0.3, 0.75)],
)
def test_local_response_normalization(radius: int, channels: int, bias: float, alpha: float, beta: float) -> None:
    """As LiteRT's default kernel has it; the reference kernel leaves out the last of the neighbours."""
    option = options_of("LocalResponseNormalization", radius, bias, alpha, beta)
    data = np.random.default_rng(0).normal(size=(2, 3, 2, channels)).astype(np.float32)
    content = one_operator(KIND.LOCAL_RESPONSE_NORMALIZATION, [Given(data)], [Result(data.shape, np.float32)], option)
    module, (wanted,) = import_tflite(content), frameworks.load_litert(content, 1, is_reference=False)([data])
    assert_floats_within(interpreter.run(module, [data])[0], wanted, "formula")
    assert_floats_within(np.asarray(qdialect.compile(module)(data)), wanted, "formula")


@pytest.mark.parametrize("kind", [KIND.LOGISTIC, KIND.GELU])
def test_functions_keep_their_digits_far_below_zero(kind: int) -> None:
    """Of results that are subnormal few are left."""
    data = np.concatenate([np.linspace(-105, 20, 997), np.linspace(-14, 1, 997)]).astype(np.float32)
    content = one_operator(kind, [Given(data)], [Result(data.shape, np.float32)])
    module, (wanted,) = import_tflite(content), frameworks.load_litert(content, 1, is_reference=True)([data])
    found = interpreter.run(module, [data])[0]
    np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=1e-44)
    check_compiled(module, "host", [[data]], [[found]])


@pytest.mark.parametrize("kind", [KIND.CONV_2D, KIND.DEPTHWISE_CONV_2D])
def test_weights_that_are_not_finite_are_refused(kind: int) -> None:
    """LiteRT leaves out what lies outside of an image."""
    weight = Given(np.full((1, 3, 3, 1), np.inf, np.float32), is_constant=True)
    option = options_of("Conv2D" if kind == KIND.CONV_2D else "DepthwiseConv2D", SAME, 1, 1)
    assert "weight must be finite" in refused(
        one_operator(kind, [f32(1, 3, 3, 1), weight], [Result((1, 3, 3, 1), np.float32)], option)
    )


@pytest.mark.parametrize("kind", [KIND.MAX_POOL_2D, KIND.AVERAGE_POOL_2D])
def test_pools_larger_than_memory_are_refused(kind: int) -> None:
    option = options_of("Pool2D", SAME, 1, 1, 2**30, 2**30)
    refused(one_operator(kind, [f32(1, 3, 3, 2)], [Result((1, 3, 3, 2), np.float32)], option))


# Halves, ends and infinities: each kernel of LiteRT rounds them in its own way.

BYTES = np.arange(-128, 128).astype(np.int8)
WORDS = np.arange(-32768, 32768, 5).astype(np.int16)
Step = tuple[float, int]
NAN, INFINITE = float("nan"), float("inf")


def check_both(
    kind: str, inputs: list[Given], output: Result, option: Any = None, refused: str = "", *, is_one_sided: bool = False
) -> None:
    """An operator has LiteRT's numbers of both profiles, where nothing of XNNPACK's is `refused`."""
    content = one_operator(getattr(KIND, kind), inputs, [output], option)
    arrays = [one.data for one in inputs if not one.is_constant]

    def check(profile: str, fallback: Literal["framework", "none"]) -> None:
        (wanted,) = frameworks.load_litert(content, 1, is_reference=profile == "tflite")(arrays)
        found = np.asarray(qdialect.compile(content, profile=profile, fallback=fallback, cache=False)(*arrays))
        assert_bits(found, wanted)

    if not is_one_sided:
        check("tflite", "none")
    check("tflite-xnnpack", "framework" if refused else "none")
    if refused:
        with pytest.raises(qdialect.ImportModelError, match=refused):
            qdialect.compile(content, profile="tflite-xnnpack", fallback="none", cache=False)


def check_reference(
    kind: str, inputs: list[Given], output: Result, option: Any, fallback: Literal["framework", "none"] = "none"
) -> None:
    """An operator has the numbers of LiteRT's reference kernel."""
    content = one_operator(getattr(KIND, kind), inputs, [output], option)
    arrays = [one.data for one in inputs if not one.is_constant]
    (wanted,) = frameworks.load_litert(content, 1, is_reference=True)(arrays)
    found = qdialect.compile(content, profile="tflite", fallback=fallback, cache=False)(*arrays)
    np.testing.assert_array_equal(np.asarray(found), wanted)


def by(*scales: float, point: int = 0) -> Quantization:
    return Quantization(scales, (point,) * len(scales))


def _bytes_of(dtype: type[np.generic]) -> Array:
    return WORDS if dtype is np.int16 else BYTES.view(dtype)


@pytest.mark.parametrize(
    ("kind", "dtype", "step", "result", "target", "option", "refused"),
    [
        # LiteRT has no reference kernel for it.
        ("ELU", np.int8, (0.25, 3), (0.5, -4), np.int8, None, ""),
        ("QUANTIZE", np.int8, (0.125, 127), (2.0, 128), np.uint8, None, "become one below zero and a half"),
        ("QUANTIZE", np.uint8, (0.5, 255), (1.5, 9), np.int8, None, "become one below zero and a half"),
        ("QUANTIZE", np.uint8, (0.5, 128), (0.5, 0), np.int8, None, ""),
        ("LEAKY_RELU", np.int16, (0.001, 0), (0.002, 0), np.int16, -0.5, "must not be negative"),
        ("LEAKY_RELU", np.int16, (0.001, 0), (0.002, 0), np.int16, 0.5, ""),
        ("TANH", np.int16, (2.0**-11, 0), (2.0**-15, 0), np.int16, None, "must be none of 2\\^-12, 2\\^-11"),
        ("LOGISTIC", np.int16, (2.0**-12, 0), (2.0**-15, 0), np.int16, None, "must be none of 2\\^-12"),
        ("LOGISTIC", np.int16, (2.0**-11, 0), (2.0**-15, 0), np.int16, None, ""),
    ],
)
def test_ties_of_one_input(
    kind: str, dtype: type[np.generic], step: Step, result: Step, target: Any, option: float | None, refused: str
) -> None:
    """The reference kernels, XNNPACK and LiteRT's other kernels round halves each in their own way."""
    x = _bytes_of(dtype)
    given, output = (by(scale, point=point) for scale, point in (step, result))
    how = None if option is None else options_of("LeakyRelu", option)
    inputs, outcome = [Given(x, False, given)], Result(x.shape, target, output)
    check_both(kind, inputs, outcome, how, refused, is_one_sided=kind == "ELU")


ENDS = np.array([[NAN, 1, 2e37, INFINITE], [2, NAN, 2e37, 1], [-INFINITE, 2, 1, 0], [1, 2e37, -2, 3]], np.float32)
WINDOW = {"Padding": 1, "StrideH": 1, "StrideW": 1}
ZEROS = np.resize(np.array([0.0, -0.0, NAN, INFINITE, -INFINITE, 3, -3], np.float32), 35)
LARGE = np.array([3e38, -3e38, 1e38, -2.7, 1.3, -0.0, INFINITE, NAN], np.float32)
PAIR = [ENDS, np.ascontiguousarray(ENDS[::-1])]


@pytest.mark.parametrize(
    ("kind", "data", "option"),
    [
        # The reference kernels bound infinities, and extremes are the right operand where either is NaN.
        *((kind, PAIR, named_options(f"{kind.capitalize()}Options")) for kind in ("ADD", "SUB", "MUL", "DIV")),
        *((kind, PAIR, None) for kind in ("MAXIMUM", "MINIMUM")),
        # It does not overflow in XNNPACK.
        ("HARD_SWISH", [LARGE], None),
        # Zeros keep the sign that the kernel gives.
        ("RELU", [ZEROS], None),
        ("RELU6", [ZEROS], None),
        ("NEG", [ZEROS], named_options("NegOptions")),
        ("LEAKY_RELU", [ZEROS], options_of("LeakyRelu", -0.5)),
        ("MUL", [ZEROS, np.sort(ZEROS)], named_options("MulOptions", FusedActivationFunction=1)),
    ],
)
def test_ends_of_floats(kind: str, data: list[Array], option: Any) -> None:
    check_both(kind, [Given(one) for one in data], Result(data[0].shape, np.float32), option)


@pytest.mark.parametrize("kind", ["MAXIMUM", "MINIMUM"])
@pytest.mark.parametrize(
    ("left", "right", "constant"),
    [((3, 40), (40,), None), ((3, 1), (3, 40), None), ((40,), (1,), None), ((40,), (1,), 1), ((1,), (40,), 0)],
)
def test_the_other_operand_of_nan(
    kind: str, left: tuple[int, ...], right: tuple[int, ...], constant: int | None
) -> None:
    """XNNPACK exchanges operands where the second is a constant number, or the first one broadcasts along rows."""
    data = [np.ones(left, np.float32), np.full(right, NAN, np.float32)]
    inputs = [Given(one, index == constant) for index, one in enumerate(data)]
    check_both(kind, inputs, Result(np.broadcast_shapes(left, right), np.float32))


@pytest.mark.parametrize("kind", ["REDUCE_MAX", "REDUCE_MIN"])
def test_extremes_of_rows_pass_over_nan(kind: str) -> None:
    """The reference kernels begin with the farthest finite number, too; XNNPACK passes over NaN by its place."""
    data = np.concatenate([ENDS, np.full((3, 4), [[NAN], [INFINITE], [-INFINITE]], np.float32)])
    how = named_options("ReducerOptions")
    check_reference(kind, [Given(data), extents(1)], Result(data.shape[:1], np.float32), how)


NUMBERS = (np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_casts_to_all_types(dtype: type[np.generic]) -> None:
    """Floats saturate, integers wrap around, and every number but 0 is true."""
    floats = [NAN, INFINITE, -INFINITE, 3e9, -3e9, 1e19, -1e19, 2.0**31, -(2.0**31), 2.7, -128.9, -0.0, 1e-40, 255.5]
    numbers = np.array([0, 1, -1, 127, -129, 255, 300, 32768, -40000, 2**31, -(2**40) - 7])
    data = np.array(floats, np.float32) if dtype is np.float32 else numbers.astype(dtype)
    for target in NUMBERS:
        if target is not dtype:
            check_both("CAST", [Given(data)], Result(data.shape, target), named_options("CastOptions"))


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
    data = ENDS if kind[0] == "F" else ENDS.reshape(1, 1, 4, 4)
    shape = (*data.shape[:-1], 1) if weight else (1, 1, 3, 4)
    constants = [known(Given(np.ones(weight, np.float32))), known(Given(np.zeros(1, np.float32)))] if weight else []
    check_reference(kind, [Given(data), *constants], Result(shape, np.float32), option)


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
    sides = [np.ascontiguousarray(one) for one in np.meshgrid(_bytes_of(dtype), _bytes_of(dtype)[::15])]
    *steps, last = (by(scale, point=point) for scale, point in zip(scales, points, strict=True))
    inputs = [Given(one, False, step) for one, step in zip(sides, steps, strict=True)]
    how = options_of(kind.capitalize(), activation)
    check_both(kind, inputs, Result(sides[0].shape, dtype, last), how, refused)


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
    point, of_words = 128 if dtype is np.uint8 else 0, dtype is np.int16
    weights = (np.arange(3000).reshape(-1, 1) % 3 - 1 + point).astype(np.int8 if of_words else dtype)
    bias = np.arange(-1500, 1500).astype(np.int64 if of_words else np.int32)
    data = np.array([[-24 if of_words else point + 2]]).astype(dtype)
    inputs = [Given(data, False, by(1.0, point=point)), Given(weights, True, by(1.0, point=point))]
    inputs += [Given(bias, True, by(1.0))] * has_bias
    output = Result((1, 3000), dtype, by(scale, point=point))
    check_both("FULLY_CONNECTED", inputs, output, options_of("FullyConnected", 0, 0, 0), refused)


@pytest.mark.parametrize(("point", "refused"), [(0, ""), (5, "constant right operand must have zero point 0")])
def test_ties_of_products_by_a_constant(point: int, refused: str) -> None:
    drawn = np.random.default_rng(0)
    right = Given(drawn.integers(-128, 128, (2, 3, 50)).astype(np.int8), True, by(1.0, point=point))
    left = Given(drawn.integers(-128, 128, (2, 40, 3)).astype(np.int8), False, by(1.0, point=7))
    output = Result((2, 40, 50), np.int8, by(1024.0, point=3))
    check_both("BATCH_MATMUL", [left, right], output, options_of("BatchMatMul", 0, 0), refused)


@pytest.mark.parametrize(("wide", "refused"), [(np.int64, ""), (np.int32, "bias of i16 input must be i64")])
def test_ties_of_convolved_words(wide: type[np.generic], refused: str) -> None:
    drawn = np.random.default_rng(0)
    weight = Given(drawn.integers(-2, 3, (21, 2, 2, 3)).astype(np.int8), True, by(1.0))
    bias = Given(drawn.integers(-9999, 9999, 21).astype(wide), True, by(1.0))
    data = Given(drawn.integers(-32768, 32768, (1, 6, 6, 3)).astype(np.int16), False, by(1.0))
    named = {"QuantizedBiasType": tflite.TensorType.INT32 if wide is np.int32 else tflite.TensorType.INT64}
    option = named_options("Conv2DOptions", StrideW=1, StrideH=1, **named)
    check_both("CONV_2D", [data, weight, bias], Result((1, 6, 6, 21), np.int16, by(16.0)), option, refused)


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_indices_among_nan(kind: str) -> None:
    """No comparison with NaN holds: it is passed over, and stays where it is the first."""
    data = np.random.default_rng(0).integers(-3, 4, (40, 9)).astype(np.float32)
    data.ravel()[::5], data.ravel()[::7] = np.nan, np.inf if kind == "ArgMin" else -np.inf
    axis = Given(np.array(1, np.int32), is_constant=True)
    name, how = f"ARG_{kind[3:].upper()}", options_of(kind, tflite.TensorType.INT32)
    check_both(name, [Given(data), axis], Result(data.shape[:1], np.int32), how)


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (1, 3, 5, 4)])
def test_scales_of_other_rows(shape: tuple[int, ...]) -> None:
    """The reference kernel of hybrid products takes them where two leading dimensions count."""
    drawn = np.random.default_rng(0)
    data = Given(drawn.normal(size=shape).astype(np.float32))
    weights = Given(drawn.integers(-127, 128, (*shape[:2], 4, 6)).astype(np.int8), True, by(0.01))
    output, option = Result((*shape[:3], 6), np.float32), options_of("BatchMatMul", 0, 0)
    check_reference("BATCH_MATMUL", [data, weights], output, option, "framework")
    content = one_operator(KIND.BATCH_MATMUL, [data, weights], [output], option)
    if shape[0] > 1:
        assert "at most one leading dimension of more than 1" in refused(content, profile="tflite")
