"""ONNX operators in float32: functions, normalizations, windows and resizing, compared with ONNX Runtime."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
from onnx_graphs import (
    CONTRIB,
    Array,
    Known,
    ModelBuilder,
    Operand,
    agreed,
    assert_same,
    check_node,
    drawn,
    found_by,
    node,
    numbers,
    of_onnx_runtime,
    refused,
    run,
    run_both,
)
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx
from qdialect.runtime import compile_module

Attributes = dict[str, Any]


@variants_together
@pytest.mark.parametrize("exponent", [2, 3])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_powers_that_are_products(exponent: int, shape: tuple[int, ...]) -> None:
    """ONNX Runtime multiplies where the exponent is one number: negative ones and both zeros too."""
    x = numbers(3, 19) * np.float32(7)
    x[0, :3] = 0.0, -0.0, 1e-20
    found = check_node("Pow", [x, Known(np.full(shape, exponent, np.float32))], within="")
    assert np.array_equal(np.signbit(found), np.signbit(x) & (exponent == 3))


def test_softmax_of_older_operator_sets_runs_over_all_that_follows() -> None:
    check_node("Softmax", [(2, 5, 3)], "softmax", version=11)


# Shapes of data and weights, and attributes.
TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], Attributes]] = [
    ((2, 3, 5, 4), (3, 5, 3, 3), {}),
    ((1, 4, 5, 4), (4, 5, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 4, 5, 4), (4, 3, 2, 2), {"strides": [2, 2], "group": 2}),
    ((1, 3, 3, 4), (3, 2, 2, 3), {"strides": [3, 4], "output_padding": [1, 2]}),
    ((1, 3, 6, 5), (3, 2, 3, 2), {"strides": [2, 1], "dilations": [2, 3], "pads": [3, 1, 0, 2]}),
    ((1, 2, 9, 9), (2, 2, 3, 3), {"strides": [2, 2], "pads": [0, 0, 12, 12]}),
    ((2, 3, 7), (3, 4, 4), {"strides": [3], "pads": [2, 1]}),
    ((1, 2, 5, 5), (2, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
]


@variants_together
@pytest.mark.parametrize(("data", "weight", "attributes"), TRANSPOSED)
def test_a_transposed_convolution(data: tuple[int, ...], weight: tuple[int, ...], attributes: Attributes) -> None:
    bias = Known((weight[1] * attributes.get("group", 1),))
    check_node("ConvTranspose", [data, Known(weight), bias], version=11, **attributes)


@variants_together
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 1, 1, 1], "output_padding": [1, 1]}, {"dilations": [2, 3]}])
def test_a_transposed_convolution_to_few_channels(outputs: int, attributes: Attributes) -> None:
    """The sums of all taps are added as ONNX Runtime adds them."""
    weight = Known((17, outputs, 3, 3))
    check_node("ConvTranspose", [(2, 17, 5, 4), weight], within="", version=11, strides=[2, 2], **attributes)


@pytest.mark.parametrize("channels", [(3, 9), (16, 3)])
@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 2]}, {"strides": [3, 2], "dilations": [2, 3]}])
def test_a_transposed_convolution_spreads_infinity_no_further_than_its_taps(
    channels: tuple[int, int], attributes: Attributes
) -> None:
    data = numbers(1, channels[0], 4, 5)
    data[0, 1, 2, 2] = np.inf
    content, inputs = node("ConvTranspose", [data, Known((*channels, 3, 3))], version=11, **attributes)
    (found,), (wanted,) = found_by(content, *inputs), of_onnx_runtime(content, *inputs)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))


def test_a_transposed_convolution_with_f32_weights_of_quantized_data() -> None:
    model = ModelBuilder()
    data = model.dequantize(model.input("x0", (1, 4, 5, 5), np.uint8), (0.05, 7))
    layer = model.node("ConvTranspose", data, model.constant(numbers(4, 3, 2, 2)), strides=[2, 2])
    content = model.finish(model.node("Relu", layer), dtype=np.float32, version=19)
    agreed(content, drawn((1, 4, 5, 5), np.uint8), within="layer")


# Normalizations.

NORMALIZATIONS: list[tuple[str, list[tuple[int, ...]], int, Attributes]] = [
    ("LayerNormalization", [(2, 5, 19), (19,), (19,)], 17, {}),
    ("LayerNormalization", [(2, 5, 19), (19,)], 17, {"epsilon": 0.25}),
    ("LayerNormalization", [(2, 5, 4, 3), (5, 4, 3), (5, 4, 3)], 17, {"axis": 1}),
    ("RMSNormalization", [(2, 5, 19), (19,)], 23, {}),
    ("RMSNormalization", [(2, 5, 19), (5, 19)], 23, {"axis": -2}),
    ("InstanceNormalization", [(2, 6, 5, 7), (6,), (6,)], 17, {"epsilon": 0.1}),
    ("InstanceNormalization", [(2, 6, 35), (6,), (6,)], 17, {}),
    ("GroupNormalization", [(2, 6, 5, 7), (6,), (6,)], 21, {"num_groups": 3}),
    ("GroupNormalization", [(2, 6, 5, 7), (3,), (3,)], 18, {"num_groups": 3}),
    ("MeanVarianceNormalization", [(2, 6, 5, 7)], 13, {}),
    ("LpNormalization", [(2, 6, 5)], 17, {}),
    ("LpNormalization", [(2, 6, 5)], 17, {"axis": 1, "p": 1}),
    ("SimplifiedLayerNormalization", [(2, 5, 19), (19,)], 17, {"epsilon": 0.01}),
]


@variants_together
@pytest.mark.parametrize(("kind", "shapes", "version", "attributes"), NORMALIZATIONS)
def test_normalizations(kind: str, shapes: list[tuple[int, ...]], version: int, attributes: Attributes) -> None:
    operands: list[Operand] = [shapes[0], *map(Known, shapes[1:])]
    check_node(kind, operands, version=version, **attributes)
    if len(shapes) > 1 and kind != "SimplifiedLayerNormalization":
        check_node(kind, shapes, version=version, **attributes)


@variants_together
@pytest.mark.parametrize("kind", ["Max", "Mean", "Sum", "L1", "L2", "LogSumExp", "SumSquare"])
@pytest.mark.parametrize("has_axes", [False, True])
def test_reductions_over_no_axes(kind: str, has_axes: bool) -> None:
    axes = [Known(np.array([], np.int64))] if has_axes else []
    check_node(f"Reduce{kind}", [(2, 5, 19), *axes], noop_with_empty_axes=1)


@variants_together
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("outputs", [["y", "mean"], ["y", "", "inverse"], ["y", "mean", "inverse"]])
def test_means_and_deviations_of_layers(outputs: list[str], axis: int) -> None:
    shape = (2, 5, 19)[axis:]
    check_node("LayerNormalization", [(2, 5, 19), shape, shape], outputs=outputs, axis=axis, epsilon=0.25)


def test_batch_normalization_rounds_as_onnx_runtime() -> None:
    operands = [(2, 19, 5, 7), *[Known((19,))] * 3, Known(np.abs(numbers(19)) + np.float32(0.1))]
    check_node("BatchNormalization", operands, within="", epsilon=0.25)


@pytest.mark.parametrize("axes", [[-1], [0, 2, 3]])
def test_means_and_variances_along_other_dimensions(axes: list[int]) -> None:
    content, given = node("MeanVarianceNormalization", [(2, 6, 5, 7)], axes=axes)
    x = given[0].astype(np.float64)
    x = x - x.mean(tuple(axes), keepdims=True)
    wanted = x / np.sqrt((x * x).mean(tuple(axes), keepdims=True))
    assert_floats_within(run_both(content, *given), wanted, "formula")


@variants_together
@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("channels_last", [0, 1])
def test_group_norm_of_onnx_runtime(channels_last: int, activation: int) -> None:
    """By its formula: it has no kernel for CPUs."""
    x, scale, bias = numbers(2, 5, 7, 6), numbers(6, seed=1), numbers(6, seed=2)
    order = (0, 1, 2, 3) if channels_last else (0, 3, 1, 2)
    how = {"groups": 2, "activation": activation, "channels_last": channels_last}
    given = np.ascontiguousarray(x.transpose(order))
    content, _ = node(f"{CONTRIB}.GroupNorm", [given, Known(scale), Known(bias)], **how)
    parts = x.astype(np.float64).reshape(2, -1, 2, 3)
    parts = parts - parts.mean((1, 3), keepdims=True)
    wanted = (parts / np.sqrt((parts**2).mean((1, 3), keepdims=True) + 1e-5)).reshape(x.shape) * scale + bias
    wanted = wanted / (1 + np.exp(-wanted)) if activation else wanted
    assert_floats_within(run_both(content, given), wanted.transpose(order), "formula")


@variants_together
@pytest.mark.parametrize("bias", [None, Known((19,))])
@pytest.mark.parametrize("is_centred", [False, True])
def test_skip_layer_normalization_gives_the_sum_too(is_centred: bool, bias: Operand) -> None:
    operands: list[Operand] = [(2, 5, 19), (2, 5, 19), Known((19,)), *([Known((19,))] if is_centred else []), bias]
    kind = f"{CONTRIB}.Skip{'' if is_centred else 'Simplified'}LayerNormalization"
    check_node(kind, operands if bias else operands[:-1], outputs=["normal", "", "", "sum"], epsilon=0.01)


@pytest.mark.parametrize("order", [1, 2])
def test_zeros_have_no_direction(order: int) -> None:
    check_node("LpNormalization", [np.zeros((2, 3), np.float32)], within="", p=order)


# Sums of long rows lose no more than those of vectors do.


def compiled_rows(kind: str, x: Array, **attributes: Any) -> Array:
    operands: list[Operand] = [x, *([Known(np.ones(x.shape[-1:], np.float32))] if kind == "LayerNormalization" else [])]
    content, _ = node(kind, operands, version=20, **attributes)
    compiled = np.asarray(compile_module(import_onnx(content))(x))
    np.testing.assert_array_equal(compiled, run(content, x))
    return compiled.astype(np.float64)


def error_of(found: Array, exact: Array) -> float:
    return float(np.sqrt(((found - exact) ** 2).mean()))


# Added one after another, the rows of 768 numbers have an error of 1.8e-7.
@pytest.mark.parametrize("columns", [768, 770, 97])
def test_rows_are_normalized_to_the_rounding_of_the_result(columns: int) -> None:
    x = np.random.default_rng(2).normal(0.3, 1.5, (24, columns)).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    exact = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + float(np.float32(1e-5)))
    assert error_of(compiled_rows("LayerNormalization", x), exact) < (7e-8 if columns != 97 else 1.2e-7)


def test_axes_that_do_not_follow_each_other_are_summed_run_by_run() -> None:
    x = np.random.default_rng(3).normal(0.3, 1.5, (6, 8, 6, 8)).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean((0, 2, 3), keepdims=True)
    exact = centred / np.sqrt((centred**2).mean((0, 2, 3), keepdims=True))
    assert error_of(compiled_rows("MeanVarianceNormalization", x), exact) < 6e-8


def test_shares_of_long_rows_are_exact() -> None:
    x = np.random.default_rng(4).normal(size=(24, 512)).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    exact = powers / powers.sum(-1, keepdims=True)
    assert error_of(compiled_rows("Softmax", x, axis=-1) / exact, np.ones_like(exact)) < 2e-7


# Pools.

WINDOWS: list[tuple[tuple[int, ...], Attributes]] = [
    ((1, 3, 8, 9), {"kernel_shape": [2, 3]}),
    ((2, 19, 9, 7), {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 0, 1, 2]}),
    ((1, 5, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ((2, 6, 17), {"kernel_shape": [4], "strides": [3], "pads": [2, 1]}),
    ((1, 3, 8, 9), {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 9, 9), {"kernel_shape": [3, 3], "dilations": [2, 1], "pads": [2, 1, 0, 0]}),
    ((1, 1, 6), {"kernel_shape": [3], "strides": [3], "pads": [1, 1], "ceil_mode": 1}),
    ((2, 19, 11, 33), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 5, 20, 18), {"kernel_shape": [3, 2], "strides": [3, 2], "dilations": [2, 1], "pads": [1, 0, 2, 1]}),
]


@variants_together
@pytest.mark.parametrize(("shape", "attributes"), WINDOWS)
def test_windows(shape: tuple[int, ...], attributes: Attributes) -> None:
    check_node("MaxPool", [shape], "", version=19, **attributes)
    for counted in (0, 1):
        check_node("AveragePool", [shape], "formula", version=19, count_include_pad=counted, **attributes)


@variants_together
@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize("window", [([2, 2], 2, 0), ([3, 3], 1, 1), ([3, 3], 2, 1), ([5, 4], 3, 2), ([2, 3], 4, 0)])
@pytest.mark.parametrize("channels", [5, 32])
@pytest.mark.parametrize("version", [17, 19])
def test_terms_are_added_in_the_order_of_onnx_runtime(
    version: int, channels: int, window: tuple[list[int], int, int], count_include_pad: int
) -> None:
    """Along the rows, where channels lie in blocks or the stride is large; else the columns' sums come first."""
    kernel, stride, pad = window
    how = {"kernel_shape": kernel, "strides": [stride] * 2, "pads": [pad] * 4, "count_include_pad": count_include_pad}
    check_node("AveragePool", [(1, channels, 12, 13)], within="", version=version, **how)


ZEROS = np.tile(np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3, -3], np.float32), 5)


@variants_together
@pytest.mark.parametrize(
    ("kind", "bounds", "options"),
    [
        ("Relu", (), {}),
        ("Clip", (0.0, 6.0), {}),
        ("Clip", (0.0, -0.0), {}),
        ("Clip", (-6.0, -0.0), {}),
        ("Clip", (None, -0.0), {}),
        ("HardSigmoid", (), {"alpha": -0.5, "beta": 0.0}),
        ("LeakyRelu", (), {"alpha": -0.5}),
        ("ThresholdedRelu", (), {"alpha": 0.0}),
    ],
)
def test_bounds_keep_the_sign_of_a_zero(kind: str, bounds: Sequence[float | None], options: Attributes) -> None:
    """A bound replaces what is beyond it alone: ``maxps(bound, x)`` is x where both are zero, and where x is NaN."""
    known = [None if bound is None else Known(np.array(bound, np.float32)) for bound in bounds]
    check_node(kind, [ZEROS, *known], within="", **options)


def test_zeros_and_nan_are_chosen_as_by_onnx_runtime() -> None:
    """What nothing is greater than stays where it is first; of two updates the later one stays."""
    x = np.random.default_rng(5).choice(ZEROS, (6, 7)).astype(np.float32)
    for which in (x[:1] > 0, x > 0, np.array(True), np.array(False)):
        check_node("Where", [which, x, x[::-1].copy()], within="")
        check_node("Where", [which, Known(x[:1]), x], within="")
    for index in range(8):
        how = {"axis": index % 2, "select_last_index": index // 2 % 2}
        check_node(("ArgMax", "ArgMin")[index // 4], [x], within="", **how)
    rows = np.random.default_rng(6).integers(0, 6, (9, 7))
    for reduction in ("min", "max"):
        updates = np.random.default_rng(7).choice(ZEROS, (9, 7)).astype(np.float32)
        check_node("ScatterElements", [x, rows, updates], within="", axis=0, reduction=reduction)
        check_node("ScatterND", [x, rows[:, :1], updates], within="", reduction=reduction)
    for kind in ("Selu", "Celu"):
        content, given = node(kind, [x[(x == 0) | np.isnan(x)]])
        agreed(content, *given)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_bounds_before_a_quantization_keep_nan(dtype: type[np.generic]) -> None:
    """A bound is behind the quantization alone where what is quantized is a number."""
    model = ModelBuilder()
    x = model.input("x", (5, 9), np.float32)
    ends = model.constant(-2.0), model.constant(1.0)
    clipped = model.node("Clip", model.node("Transpose", x, perm=[1, 0]), *ends)
    log = model.node("Log", model.dequantize(model.quantize(x, (0.5, 31), dtype), (0.5, 31), dtype))
    joined = model.node("Relu", model.node("Concat", x, x, axis=0))
    parts = model.node("Relu", x), clipped, joined, model.node("Clip", log, *ends)
    results = [model.quantize(one, (0.25, 31), dtype) for one in parts]
    content = model.finish(*results, dtype=dtype, version=21)
    assert_same(found_by(content, ZEROS.reshape(5, 9)), of_onnx_runtime(content, ZEROS.reshape(5, 9)))


def test_sums_before_an_element_begin_with_zero() -> None:
    rows = np.array([[-0.0, -0.0, 1, -0.0, np.inf, 3]], np.float32)
    for reverse in (0, 1):
        check_node("CumSum", [rows, Known(np.array(1))], within="", exclusive=1, reverse=reverse)


def test_the_largest_number_is_nan_where_there_is_one() -> None:
    content, x = node(
        "MaxPool", [np.array([[[1, np.nan, 2, 3, -0.0, 0.0]]], np.float32)], kernel_shape=[2], strides=[2]
    )
    found = run_both(content, *x)
    np.testing.assert_array_equal(found, np.array([[[np.nan, 3, 0]]], np.float32))
    assert not np.signbit(found[0, 0, 2])


def test_zeros_stay_whatever_the_slope_of_a_prelu_is() -> None:
    x, slope = np.meshgrid(np.array([0.0, -0.0, np.nan, -1, 2], np.float32), [np.inf, -np.inf, np.nan, 0, -3.0])
    content, given = node("PRelu", [x, slope.astype(np.float32)])
    found = agreed(content, *given)
    np.testing.assert_array_equal(np.signbit(found[x == 0]), np.signbit(x[x == 0]))


# Operators that become several ops.

EINSUMS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("bhid,bhjd->bhij", [(2, 3, 5, 4), (2, 3, 7, 4)]),
    ("bhij,bhjd->bhid", [(2, 3, 5, 7), (2, 3, 7, 4)]),
    ("bij,jk->bik", [(2, 5, 7), (7, 4)]),
    ("ij,jk", [(5, 7), (7, 4)]),
    ("...ij,...jk->...ik", [(2, 3, 5, 7), (2, 3, 7, 4)]),
    ("bi,bj->bij", [(2, 5), (2, 4)]),
    ("i,i->", [(5,), (5,)]),
    ("bqnd,bknd->bnqk", [(2, 5, 3, 4), (2, 7, 3, 4)]),
    ("bnqk,bknd->bqnd", [(2, 3, 5, 7), (2, 7, 3, 4)]),
    ("ijk,ik->j", [(3, 4, 5), (3, 5)]),
    *((equation, [(2, 3, 5)]) for equation in ("ijk->kij", "ijk->ik", "...k->k...", "ijk->")),
]


@variants_together
@pytest.mark.parametrize(("equation", "shapes"), EINSUMS)
def test_sums_of_products_by_their_labels(equation: str, shapes: list[tuple[int, ...]]) -> None:
    """Of small whole numbers, whose sums are exact in every order."""
    check_node(
        "Einsum", [np.rint(numbers(*shape, seed=i) * 3) for i, shape in enumerate(shapes)], "", equation=equation
    )


NORMS = ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "ReduceProd"]


@variants_together
@pytest.mark.parametrize("kind", NORMS)
def test_norms(kind: str) -> None:
    x = np.abs(np.rint(numbers(3, 5, 19) * 3)) / 2 + 1
    check_node(kind, [x, Known(np.array([-1]))], keepdims=0)


def test_sums_of_powers_of_infinite_numbers() -> None:
    x = np.array([[-np.inf, -np.inf], [-np.inf, 3], [np.inf, 1], [200, 200]], np.float32)
    content, _ = node("ReduceLogSumExp", [x, Known(np.array([1]))], keepdims=0)
    assert run_both(content, x).tolist() == [-np.inf, 3, np.inf, np.float32(200 + np.log(2))]


# Resizing by filters.

X = np.random.default_rng(0).normal(size=(1, 2, 9, 10)).astype(np.float32)
COORDINATES = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]


def resized(scales: Sequence[float], x: Array = X, **how: Any) -> bytes:
    return node("Resize", [x, None, Known(np.array(scales, np.float32))], version=19, **how)[0]


def check_resized(scales: Sequence[float], x: Array = X, within: str = "layer", **how: Any) -> None:
    content = resized(scales, x, **how)
    assert_same([run(content, x)], of_onnx_runtime(content, x), within)


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_filters(coordinates: str) -> None:
    """Of rows, volumes, channels and scales that extents are rounded down from, too."""
    for scales in ([1, 1, 1.5, 2], [1, 1, 0.4, 0.7], [1, 1, 1, 3]):
        for outside in (0, 1):
            how: Attributes = {"coordinate_transformation_mode": coordinates, "exclude_outside": outside}
            check_resized(scales, within="" if not outside else "layer", mode="cubic", cubic_coeff_a=-0.5, **how)
    for mode in ("linear", "cubic"):
        for scales in ([1, 1, 0.5, 0.7], [1, 1, 0.34, 2]):
            check_resized(scales, mode=mode, antialias=1, coordinate_transformation_mode=coordinates)
    for shape, scales in (((1, 2, 9), [1, 1, 2]), ((1, 2, 3, 4, 5), [1, 1, 2, 1, 0.5]), ((2, 7, 9, 2), [1, 2, 1.5, 1])):
        check_resized(scales, numbers(*shape), mode="linear", coordinate_transformation_mode=coordinates)
    check_resized([1, 1, 1.7, 0.65], mode="linear", coordinate_transformation_mode=coordinates)


@pytest.mark.parametrize("how", [{"mode": "linear"}, {"mode": "cubic"}, {"antialias": 1}])
def test_symmetric_centers(how: Attributes) -> None:
    given: Attributes = {"mode": "linear", **how, "coordinate_transformation_mode": "half_pixel_symmetric"}
    for scales in ([1, 1, 2, 1.5], [1, 1, 1, 0.5]):
        check_resized(scales, **given)


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (np.inf, {"mode": "linear"}),
        (np.nan, {"mode": "cubic"}),
        (np.inf, {"mode": "cubic"}),
        (np.nan, {"mode": "linear", "antialias": 1}),
    ],
)
def test_filters_reach_no_further_than_their_taps(number: float, how: Attributes) -> None:
    image = X.copy()
    image[0, 0, 4, 5] = number
    check_resized([1, 1, 0.5, 0.7], image, **how)


def test_compiled_filters_are_the_reference() -> None:
    found_by(resized([1, 1, 1.5, 0.5], mode="cubic", antialias=1), X)


def test_nearest_elements_need_no_filter() -> None:
    found = run(resized([1, 1, 2, 2], mode="nearest", antialias=1), X)
    np.testing.assert_array_equal(found, run(resized([1, 1, 2, 2], mode="nearest"), X))


REFUSED: list[tuple[str, str, Sequence[Operand], Attributes]] = [
    (
        "a filter must reach at most 32 elements, but got 40",
        "Resize",
        [(1, 1, 4, 200), None, Known(np.array([1, 1, 1, 0.025], np.float32))],
        {"mode": "linear", "antialias": 1},
    ),
    ("operands must be matrices", "MatMul", [(3,), (4,)], {}),
    ("axis must be in [-2, 2), but got 2", "LogSoftmax", [(2, 3)], {"axis": 2}),
    ("axes must be in [-2, 2), but got [5]", "ReduceMean", [(2, 3)], {"axes": [5], "version": 17}),
    ("weight must have 4 inputs, but got 3", "ConvTranspose", [(1, 4, 5, 5), Known((3, 2, 3, 3))], {}),
    ("group must divide 4 channels, but got 3", "ConvTranspose", [(1, 4, 5, 5), Known((4, 2, 3, 3))], {"group": 3}),
    ("weight must have 4 dimensions, but got 3", "ConvTranspose", [(1, 4, 5, 5), Known((4, 2, 3))], {}),
    (
        "bias must have the shape [3], but got [2]",
        "ConvTranspose",
        [(1, 4, 5, 5), Known((4, 3, 3, 3)), Known((2,))],
        {},
    ),
    ("weight must have 4 dimensions, but got 3", "Conv", [(1, 4, 5, 5), Known((2, 4, 3))], {}),
    (
        "every window must have an element of [2]",
        "MaxPool",
        [(1, 1, 2)],
        {"kernel_shape": [2], "dilations": [4], "pads": [2, 1]},
    ),
    ("groups must divide 6 channels, but got 4", "GroupNormalization", [(2, 6, 5), (6,), (6,)], {"num_groups": 4}),
    ("groups must divide 6 channels, but got 0", "GroupNormalization", [(2, 6, 5), (6,), (6,)], {"num_groups": 0}),
    (
        "input 1 must have the shape [6], but got [3]",
        "GroupNormalization",
        [(2, 6, 5), (3,), (6,)],
        {"num_groups": 3, "version": 21},
    ),
    ("input must have at least 3 dimensions, but got 2", "InstanceNormalization", [(2, 6), (6,), (6,)], {}),
    ("operand shapes must broadcast, but got [4] and [2, 5]", "LayerNormalization", [(2, 5), (4,)], {}),
    ("input 1 must broadcast to [2, 5], but got [3, 2, 5]", "RMSNormalization", [(2, 5), (3, 2, 5)], {"version": 23}),
    ("p must be 1 or 2, but got 3", "LpNormalization", [(2, 5)], {"p": 3}),
    ("axes must be in [-2, 2), but got [0, 2, 3]", "MeanVarianceNormalization", [(2, 5)], {}),
    ("activation must be 0 or 1, but got 2", f"{CONTRIB}.GroupNorm", [(2, 5, 4), (4,), (4,)], {"activation": 2}),
    *(
        ("mean and deviation, must be omitted", f"{CONTRIB}.SkipLayerNormalization", [(2, 5)] * 2 + [(5,)], given)
        for given in ({"outputs": 2}, {"outputs": ["y", "", "deviation"]})
    ),
    ("labels of a term must differ", "Einsum", [(3, 3)], {"equation": "ii->i"}),
    ("must name labels of its operands", "Einsum", [(3, 3)], {"equation": "ij->k"}),
    ("a label for", "Einsum", [(3, 3)], {"equation": "i->i"}),
    (
        "scales of half_pixel_symmetric must be the ratios of the extents",
        "Resize",
        [X, None, Known(np.array([1, 1, 1.5, 2], np.float32))],
        {"mode": "cubic", "coordinate_transformation_mode": "half_pixel_symmetric"},
    ),
]


@pytest.mark.parametrize(("message", "kind", "operands", "options"), REFUSED)
def test_operators_without_a_meaning_are_refused(
    message: str, kind: str, operands: Sequence[Operand], options: Any
) -> None:
    assert message in refused(node(kind, operands, **options)[0])
