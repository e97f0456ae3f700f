"""Functions, convolutions, pools and resizing of ONNX models in float32, against formulas in float64."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
from numpy.typing import NDArray
from onnx_evaluated import found_by, numbers, run_both
from onnx_graphs import ModelBuilder, agreed, drawn, evaluated, f32_values, quantized_of, run
from tolerances import assert_floats_within, assert_within, tolerance_of

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]


def run_node(kind: str, inputs: list[Array], constants: int = 0, **attributes: Any) -> Array:
    """The last `constants` inputs are known."""
    model = ModelBuilder()
    free = len(inputs) - constants
    names = [model.input(f"x{i}", array.shape) for i, array in enumerate(inputs[:free])]
    names += [model.constant(array) for array in inputs[free:]]
    return run_both(model.finish(model.node(kind, *names, **attributes), dtype=np.float32), *inputs[:free])


@variants_together
@pytest.mark.parametrize("exponent", [2, 3])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_powers_that_are_products(exponent: int, shape: tuple[int, ...]) -> None:
    """ONNX Runtime multiplies where the exponent is one number: negative ones and both zeros too."""
    x = numbers(3, 19) * np.float32(7)
    x[0, :3] = 0.0, -0.0, 1e-20
    found = run_node("Pow", [x, np.full(shape, exponent, np.float32)], constants=1)
    wanted = x * x if exponent == 2 else x * x * x
    np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))


def softmax(x: Array, axis: int | tuple[int, ...]) -> Array:
    raised = np.exp(x - x.max(axis=axis, keepdims=True))
    return raised / raised.sum(axis=axis, keepdims=True)


def test_softmax_of_older_operator_sets_runs_over_all_that_follows() -> None:
    model = ModelBuilder()
    x = numbers(2, 5, 3)
    found = run_both(model.finish(model.node("Softmax", model.input("x", x.shape)), dtype=np.float32, version=11), x)
    assert_floats_within(found, softmax(x.astype(np.float64), (1, 2)), "softmax")


def test_a_sum_takes_its_axes_as_an_input() -> None:
    model = ModelBuilder()
    x = numbers(2, 5, 19)
    total = model.node("ReduceSum", model.input("x", x.shape), model.constant(np.array([1])), keepdims=0)
    assert_floats_within(run_both(model.finish(total, dtype=np.float32), x), x.sum(axis=1), "sum")


REFUSED: dict[str, tuple[str, list[Array], dict[str, Any]]] = {
    "operands must be matrices": ("MatMul", [numbers(3), numbers(4)], {}),
    "axis must be in [-2, 2), but got 2": ("LogSoftmax", [numbers(2, 3)], {"axis": 2}),
    "axes must be in [-2, 2), but got [5]": ("ReduceMean", [numbers(2, 3)], {"axes": [5]}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_not_expressed_is_refused(message: str) -> None:
    kind, inputs, attributes = REFUSED[message]
    model = ModelBuilder()
    names = [model.input(f"x{i}", array.shape) for i, array in enumerate(inputs)]
    with pytest.raises(ImportModelError) as caught:
        import_onnx(model.finish(model.node(kind, *names, **attributes), dtype=np.float32))
    assert message in caught.value.render()


# Convolutions of ONNX in float32: against formulas in float64, interpreted and compiled.

# Shapes of data and weights, and attributes.
TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 5, 4), (3, 5, 3, 3), {}),
    ((1, 4, 5, 4), (4, 5, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 4, 5, 4), (4, 3, 2, 2), {"strides": [2, 2], "group": 2}),
    ((1, 3, 3, 4), (3, 2, 2, 3), {"strides": [3, 4], "output_padding": [1, 2]}),
    ((1, 3, 6, 5), (3, 2, 3, 2), {"strides": [2, 1], "dilations": [2, 3], "pads": [3, 1, 0, 2]}),
    ((1, 2, 9, 9), (2, 2, 3, 3), {"strides": [2, 2], "pads": [0, 0, 12, 12]}),
    ((2, 3, 7), (3, 4, 4), {"strides": [3], "pads": [2, 1]}),
    ((1, 2, 5, 5), (2, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
]


def weights_of(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def layer(kind: str, data: Array, weight: Array, bias: Array, attributes: dict[str, Any]) -> bytes:
    model = ModelBuilder()
    constants = model.constant(weight), model.constant(bias)
    node = model.node(kind, model.input("x0", data.shape), *constants, **attributes)
    return model.finish(node, dtype=np.float32, version=11)


@variants_together
@pytest.mark.parametrize(("shape", "kernel", "attributes"), TRANSPOSED)
def test_a_transposed_convolution(shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    data, weight = weights_of(shape, 0), weights_of(kernel, 1)
    groups = attributes.get("group", 1)
    bias = weights_of((kernel[1] * groups,), 2)
    (found,) = found_by(layer("ConvTranspose", data, weight, bias, attributes), data)
    # onnx's reference knows one group.
    parts = zip(np.split(data, groups, 1), np.split(weight, groups), np.split(bias, groups), strict=True)
    alone = {**attributes, "group": 1}
    wanted = [evaluated(layer("ConvTranspose", x, w, b, alone), x) for x, w, b in parts]
    wanted = np.concatenate(wanted, 1)
    assert found.shape == wanted.shape
    assert_floats_within(found, wanted, "formula")


def test_a_transposed_convolution_with_f32_weights_of_quantized_data() -> None:
    model = ModelBuilder()
    data = model.dequantize(model.input("x0", (1, 4, 5, 5), np.uint8), (0.05, 7))
    layer = model.node("ConvTranspose", data, model.constant(weights_of((4, 3, 2, 2), 1)), strides=[2, 2])
    content = model.finish(model.node("Relu", layer), dtype=np.float32, version=19)
    quantized = drawn((1, 4, 5, 5), np.uint8)
    (found,) = found_by(content, quantized)
    assert_floats_within(found, evaluated(content, quantized), "formula")


@pytest.mark.parametrize(
    ("kind", "kernel", "attributes", "message"),
    [
        ("ConvTranspose", (3, 2, 3, 3), {}, "weight must have 4 inputs, but got 3"),
        ("ConvTranspose", (4, 2, 3, 3), {"group": 3}, "group must divide 4 channels, but got 3"),
        ("ConvTranspose", (4, 2, 3), {}, "weight must have 4 dimensions, but got 3"),
        ("ConvTranspose", (4, 3, 3, 3), {}, r"bias must have the shape \[3\], but got \[2\]"),
        ("Conv", (2, 4, 3), {}, "weight must have 4 dimensions, but got 3"),
    ],
)
def test_what_does_not_fit_is_told(
    kind: str, kernel: tuple[int, ...], attributes: dict[str, Any], message: str
) -> None:
    data = weights_of((1, 4, 5, 5), 0)
    with pytest.raises(ImportModelError, match=message):
        import_onnx(layer(kind, data, weights_of(kernel, 1), weights_of((2,), 2), attributes))


# Pools of f32 values, between floats and between quantizations: against onnx's reference.

Attributes = dict[str, Any]

WINDOWS: list[tuple[tuple[int, ...], Attributes]] = [
    ((1, 3, 8, 9), {"kernel_shape": [2, 3]}),
    ((2, 19, 9, 7), {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 0, 1, 2]}),
    ((1, 5, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ((2, 6, 17), {"kernel_shape": [4], "strides": [3], "pads": [2, 1]}),
    ((1, 3, 8, 9), {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}),
    ((1, 3, 9, 9), {"kernel_shape": [3, 3], "dilations": [2, 1], "pads": [2, 1, 0, 0]}),
]
MORE: dict[str, list[Attributes]] = {"MaxPool": [{}], "AveragePool": [{}, {"count_include_pad": 1}]}
CASES = [
    (kind, shape, {**window, **more}) for kind, options in MORE.items() for more in options for shape, window in WINDOWS
]


def pool_model(kind: str, shape: tuple[int, ...], attributes: Attributes, version: int = 19) -> bytes:
    b = ModelBuilder()
    return b.finish(b.node(kind, b.input("x0", shape), **attributes), dtype=np.float32, version=version)


@variants_together
@pytest.mark.parametrize(("kind", "shape", "attributes"), CASES)
def test_windows_of_floats(kind: str, shape: tuple[int, ...], attributes: Attributes) -> None:
    content = pool_model(kind, shape, attributes)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    assert_floats_within(run_both(content, x), evaluated(content, x), "formula")


def test_windows_rounded_up_do_not_count_what_lies_behind_the_padding() -> None:
    attributes = {"kernel_shape": [3], "strides": [3], "pads": [1, 1], "ceil_mode": 1, "count_include_pad": 1}
    x = np.array([[[5, 7, 1, 2, 3, 8]]], np.float32)
    wanted = np.array([[[4, 2, 4]]], np.float32)
    np.testing.assert_array_equal(run_both(pool_model("AveragePool", x.shape, attributes), x), wanted)


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
    attributes = {"kernel_shape": kernel, "strides": [stride, stride], "pads": [pad] * 4}
    shape = (1, channels, 12, 13)
    content = pool_model("AveragePool", shape, {**attributes, "count_include_pad": count_include_pad}, version)
    agreed(content, np.random.default_rng(1).normal(size=shape).astype(np.float32))


def test_the_largest_number_is_nan_where_there_is_one() -> None:
    x = np.array([[[1, np.nan, 2, 3, -0.0, 0.0]]], np.float32)
    found = run_both(pool_model("MaxPool", x.shape, {"kernel_shape": [2], "strides": [2]}), x)
    np.testing.assert_array_equal(found, np.array([[[np.nan, 3, 0]]], np.float32))
    assert not np.signbit(found[0, 0, 2])


@pytest.mark.parametrize("kind", ["AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"])
def test_a_pool_of_floats_that_are_quantized_after_it(kind: str) -> None:
    """With two readers in between: one of the numbers, one of the quantized values."""
    b, shape, to = ModelBuilder(), (1, 8, 6, 6), (0.05, 100)
    attributes = {} if kind.startswith("Global") else {"kernel_shape": [2, 2], "strides": [2, 2]}
    data = b.node("Exp", b.dequantize(b.input("x", shape, np.uint8), (0.02, 100)))
    pooled = b.node(kind, data, **attributes)
    module = import_onnx(b.finish(pooled, b.node("Cast", b.quantize(pooled, to), to=1), dtype=np.float32))
    x = drawn(shape, np.uint8)
    results = interpreter.run(module, [x])
    for found, wanted in zip(compile_module(module)(x), results, strict=True):
        np.testing.assert_array_equal(found, wanted)
    exact = np.exp(f32_values(x, (0.02, 100)).astype(np.float64))
    windows = exact.reshape(1, 8, 1, 6, 1, 6) if kind.startswith("Global") else exact.reshape(1, 8, 3, 2, 3, 2)
    wanted = windows.max((3, 5)) if "Max" in kind else windows.mean((3, 5))
    assert_floats_within(results[0], wanted, "formula")
    assert_within(results[1].astype(np.uint8), quantized_of(wanted, to), tolerance_of(".onnx", kind))


def test_a_window_outside_of_the_image_is_refused() -> None:
    attributes = {"kernel_shape": [2], "dilations": [4], "pads": [2, 1]}
    with pytest.raises(ImportModelError) as caught:
        import_onnx(pool_model("MaxPool", (1, 1, 2), attributes))
    assert "every window must have an element of [2]" in caught.value.render()


# frontends/onnx/operators/filtered_resize.py: filters as products with matrices, compared with ONNX Runtime.

ORT: Any = import_module("onnxruntime")
X = np.random.default_rng(0).normal(size=(1, 2, 9, 10)).astype(np.float32)
COORDINATES = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]


def _content(scales: Sequence[float], x: Any = X, **attributes: Any) -> bytes:
    model = ModelBuilder()
    given = model.input("x", x.shape), "", model.constant(np.array(scales, np.float32))
    return model.finish(model.node("Resize", *given, **attributes), dtype=np.float32, version=19)


def _check(content: bytes, x: Any = X) -> None:
    options = ORT.SessionOptions()
    options.log_severity_level = 3
    session = ORT.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": x})
    assert_floats_within(run(content, x), wanted, "layer")


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("exclude_outside", [0, 1])
def test_cubic(coordinates: str, exclude_outside: int) -> None:
    for scales in ([1, 1, 1.5, 2], [1, 1, 0.4, 0.7], [1, 1, 1, 3]):
        how = {"coordinate_transformation_mode": coordinates, "exclude_outside": exclude_outside}
        _check(_content(scales, mode="cubic", cubic_coeff_a=-0.5, **how))


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_filters_against_aliasing(coordinates: str, mode: str) -> None:
    for scales in ([1, 1, 0.5, 0.7], [1, 1, 0.34, 2]):
        _check(_content(scales, mode=mode, antialias=1, coordinate_transformation_mode=coordinates))


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_linear_of_any_rank_and_scale(coordinates: str) -> None:
    """Rows, volumes, channels and scales that extents are rounded down from."""
    random = np.random.default_rng(1)
    for shape, scales in (((1, 2, 9), [1, 1, 2]), ((1, 2, 3, 4, 5), [1, 1, 2, 1, 0.5]), ((2, 7, 9, 2), [1, 2, 1.5, 1])):
        x = random.normal(size=shape).astype(np.float32)
        _check(_content(scales, x, mode="linear", coordinate_transformation_mode=coordinates), x)
    _check(_content([1, 1, 1.7, 0.65], mode="linear", coordinate_transformation_mode=coordinates))


@pytest.mark.parametrize("how", [{"mode": "linear"}, {"mode": "cubic"}, {"antialias": 1}])
def test_symmetric_centers(how: dict[str, Any]) -> None:
    for scales in ([1, 1, 2, 1.5], [1, 1, 1, 0.5]):
        _check(_content(scales, **{"mode": "linear", **how}, coordinate_transformation_mode="half_pixel_symmetric"))


def test_symmetric_centers_of_extents_that_are_rounded_down_are_refused() -> None:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(_content([1, 1, 1.5, 2], mode="cubic", coordinate_transformation_mode="half_pixel_symmetric"))
    assert "scales of half_pixel_symmetric must be the ratios of the extents" in caught.value.render()


def test_compiled_it_is_the_reference() -> None:
    content = _content([1, 1, 1.5, 0.5], mode="cubic", antialias=1)
    np.testing.assert_array_equal(qdialect.compile(import_onnx(content))(X), run(content, X))


def test_nearest_elements_need_no_filter() -> None:
    found = run(_content([1, 1, 2, 2], mode="nearest", antialias=1), X)
    np.testing.assert_array_equal(found, run(_content([1, 1, 2, 2], mode="nearest"), X))
