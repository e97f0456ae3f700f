"""Pools of f32 values, between floats and between quantizations: against onnx's reference."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_agreement import agreed
from onnx_graphs import ModelBuilder, drawn, evaluated, f32_values, quantized_of
from together import check_compiled, variants_together
from tolerances import assert_floats_within, assert_within, tolerance_of

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
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


def run_both(content: bytes, *inputs: Array) -> Array:
    module = import_onnx(content)
    (wanted,) = interpreter.run(module, inputs)
    check_compiled(module, "host", [inputs], [[wanted]])
    return wanted


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
