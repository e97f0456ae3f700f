"""Normalizations and pools of ONNX models: against formulas, quantized and in float32."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from compiled_ops import variants_together
from numpy.typing import NDArray
from onnx_evaluated import run_both
from onnx_graphs import CONTRIB, ModelBuilder, drawn, evaluated, f32_values, quantized_of, run
from tolerances import assert_floats_within, assert_within, tolerance_of

from qdialect.arithmetic import Multiplier, real_multiplier
from qdialect.dialect import MeanOp
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
X, Y = (0.043, 117), (0.031, 90)


def dequantized_constant(b: ModelBuilder, dtype: type[np.generic], count: int, seed: int) -> tuple[str, Array]:
    """The name and the f32 values of a constant that goes through a DequantizeLinear."""
    quantized, scale = drawn((count,), np.int8, seed).astype(dtype), np.float32(0.011)
    name = b.node("DequantizeLinear", b.constant(quantized), b.constant(float(scale)), b.constant(np.zeros((), dtype)))
    return name, quantized.astype(np.float32) * scale


def batch_normalized(x: Array, parameters: list[Array], epsilon: float) -> Array:
    """In the order of ONNX Runtime's kernel, every operation in float32; channels are dimension 1."""
    scale, bias, mean, variance = parameters
    factor = (np.float32(1) / np.sqrt(variance + np.float32(epsilon))) * scale
    offset = bias - mean * factor
    shape = (-1, *(1 for _ in x.shape[2:]))
    return x * factor.reshape(shape) + offset.reshape(shape)


def batch_parameters(b: ModelBuilder, channels: int) -> tuple[list[str], list[Array]]:
    """As a quantizer leaves them: scale and bias go through a DequantizeLinear, mean and variance are floats."""
    scale, bias = dequantized_constant(b, np.int8, channels, 1), dequantized_constant(b, np.int32, channels, 2)
    rng = np.random.default_rng(3)
    mean, variance = rng.normal(size=channels).astype(np.float32), rng.uniform(0.1, 3, channels).astype(np.float32)
    names = [scale[0], bias[0], b.constant(mean), b.constant(variance)]
    return names, [scale[1], bias[1], mean, variance]


@variants_together
@pytest.mark.parametrize("shape", [(2, 19, 5, 7), (1, 64, 9, 9), (4, 19), (2, 19, 33)])
def test_batch_normalization_between_quantizations(shape: tuple[int, ...]) -> None:
    b = ModelBuilder()
    names, arrays = batch_parameters(b, shape[1])
    data = b.dequantize(b.input("x", shape, np.uint8), X)
    content = b.finish(b.quantize(b.node("BatchNormalization", data, *names), Y))
    x = drawn(shape, np.uint8)
    np.testing.assert_array_equal(
        run_both(content, x), quantized_of(batch_normalized(f32_values(x, X), arrays, 1e-5), Y)
    )


def test_batch_normalization_of_floats_rounds_as_onnx_runtime() -> None:
    b, shape = ModelBuilder(), (2, 19, 5, 7)
    names, arrays = batch_parameters(b, 19)
    content = b.finish(b.node("BatchNormalization", b.input("x", shape), *names, epsilon=0.25), dtype=np.float32)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(run_both(content, x), batch_normalized(x, arrays, 0.25))


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def model_of(kind: str, inputs: list[Array], constants: int, version: int, attributes: dict[str, Any]) -> bytes:
    """The last `constants` inputs are known."""
    b, free = ModelBuilder(), len(inputs) - constants
    names = [b.input(f"x{i}", array.shape) for i, array in enumerate(inputs[:free])]
    names += [b.constant(array) for array in inputs[free:]]
    return b.finish(b.node(kind, *names, **attributes), dtype=np.float32, version=version)


STANDARD: dict[str, tuple[str, list[tuple[int, ...]], int, dict[str, Any]]] = {
    "layer": ("LayerNormalization", [(2, 5, 19), (19,), (19,)], 17, {}),
    "layer without bias": ("LayerNormalization", [(2, 5, 19), (19,)], 17, {"epsilon": 0.25}),
    "layer of several dimensions": ("LayerNormalization", [(2, 5, 4, 3), (5, 4, 3), (5, 4, 3)], 17, {"axis": 1}),
    "root mean square": ("RMSNormalization", [(2, 5, 19), (19,)], 23, {}),
    "root mean square of several dimensions": ("RMSNormalization", [(2, 5, 19), (5, 19)], 23, {"axis": -2}),
    "instance": ("InstanceNormalization", [(2, 6, 5, 7), (6,), (6,)], 17, {"epsilon": 0.1}),
    "instance of one dimension": ("InstanceNormalization", [(2, 6, 35), (6,), (6,)], 17, {}),
    "group by channel": ("GroupNormalization", [(2, 6, 5, 7), (6,), (6,)], 21, {"num_groups": 3}),
    "mean and variance": ("MeanVarianceNormalization", [(2, 6, 5, 7)], 13, {}),
    "mean and variance of rows": ("MeanVarianceNormalization", [(2, 6, 5)], 13, {"axes": [-1]}),
    "sum of squares": ("LpNormalization", [(2, 6, 5)], 17, {}),
}


@variants_together
@pytest.mark.parametrize("constants", [0, 2])
@pytest.mark.parametrize("name", STANDARD)
def test_normalizations_of_the_standard(name: str, constants: int) -> None:
    kind, shapes, version, attributes = STANDARD[name]
    inputs = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    known = min(constants, len(inputs) - 1)
    content = model_of(kind, inputs, known, version, attributes)
    free = inputs[: len(inputs) - known]
    assert_floats_within(run_both(content, *free), evaluated(content, *free), "formula")


def rows_normalized(x: Array, epsilon: float, is_centred: bool = True) -> Array:
    x = x.astype(np.float64)
    x = x - x.mean(-1, keepdims=True) if is_centred else x
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)


def grouped(x: Array, groups: int, scale: Array, bias: Array, epsilon: float = 1e-5) -> Array:
    """Channels are last; scale and bias are those of channels."""
    parts = x.astype(np.float64).reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    parts = parts - parts.mean((1, 3), keepdims=True)
    return (parts / np.sqrt((parts**2).mean((1, 3), keepdims=True) + epsilon)).reshape(x.shape) * scale + bias


def test_group_normalization_by_group_as_set_18_has_it() -> None:
    x, scale, bias = numbers(2, 6, 5, 7), numbers(3, seed=1), numbers(3, seed=2)
    content = model_of("GroupNormalization", [x, scale, bias], 2, 18, {"num_groups": 3})
    wanted = grouped(x.transpose(0, 2, 3, 1), 3, scale.repeat(2), bias.repeat(2)).transpose(0, 3, 1, 2)
    assert_floats_within(run_both(content, x), wanted, "formula")


@variants_together
@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("channels_last", [0, 1])
def test_group_norm_of_onnx_runtime(channels_last: int, activation: int) -> None:
    x, scale, bias = numbers(2, 5, 7, 6), numbers(6, seed=1), numbers(6, seed=2)
    order = (0, 1, 2, 3) if channels_last else (0, 3, 1, 2)
    attributes = {"groups": 2, "activation": activation, "channels_last": channels_last}
    content = model_of(f"{CONTRIB}.GroupNorm", [x.transpose(order), scale, bias], 2, 17, attributes)
    wanted = grouped(x, 2, scale, bias)
    wanted = wanted / (1 + np.exp(-wanted)) if activation else wanted
    assert_floats_within(
        run_both(content, np.ascontiguousarray(x.transpose(order))), wanted.transpose(order), "formula"
    )


def test_simplified_layer_normalization() -> None:
    x, scale = numbers(2, 5, 19), numbers(19, seed=1)
    content = model_of("SimplifiedLayerNormalization", [x, scale], 1, 17, {"epsilon": 0.01})
    assert_floats_within(run_both(content, x), rows_normalized(x, 0.01, is_centred=False) * scale, "formula")


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("is_centred", [False, True])
def test_skip_layer_normalization_gives_the_sum_too(is_centred: bool, has_bias: bool) -> None:
    x, skip = numbers(2, 5, 19), numbers(2, 5, 19, seed=1)
    scale, beta, bias = (numbers(19, seed=i) for i in (2, 3, 4))
    b = ModelBuilder()
    names = [b.input("x", x.shape), b.input("skip", skip.shape), b.constant(scale)]
    names += [b.constant(beta)] if is_centred else []
    names += [b.constant(bias)] if has_bias else []
    kind = f"{CONTRIB}.Skip{'' if is_centred else 'Simplified'}LayerNormalization"
    b.node_of_many(kind, names, ["normal", "", "", "sum"], epsilon=0.01)
    module = import_onnx(b.finish("normal", "sum", dtype=np.float32))
    normal, total = interpreter.run(module, [x, skip])
    for found, wanted in zip(compile_module(module)(x, skip), (normal, total), strict=True):
        np.testing.assert_array_equal(found, wanted)
    wanted_sum = x + skip + (bias if has_bias else 0)
    assert_floats_within(total, wanted_sum, "pair")
    wanted = rows_normalized(wanted_sum, 0.01, is_centred) * scale + (beta if is_centred else 0)
    assert_floats_within(normal, wanted, "formula")


def test_division_by_the_sum_of_magnitudes() -> None:
    x = numbers(2, 6, 5)
    found = run_both(model_of("LpNormalization", [x], 0, 17, {"axis": 1, "p": 1}), x)
    assert_floats_within(found, x / np.abs(x.astype(np.float64)).sum(1, keepdims=True), "formula")


def test_zeros_have_no_direction() -> None:
    x = np.zeros((2, 3), np.float32)
    for order in (1, 2):
        np.testing.assert_array_equal(run_both(model_of("LpNormalization", [x], 0, 17, {"p": order}), x), x)


@variants_together
@pytest.mark.parametrize("kind", ["GroupNormalization", "InstanceNormalization", "LayerNormalization"])
def test_normalizations_between_quantizations(kind: str) -> None:
    """With parameters as a quantizer leaves them: scales of 8 bits, biases of 32."""
    b, shape = ModelBuilder(), (2, 6, 5, 8)
    count = 8 if kind == "LayerNormalization" else 6
    scale, bias = dequantized_constant(b, np.int8, count, 1), dequantized_constant(b, np.int32, count, 2)
    data = b.dequantize(b.input("x", shape, np.uint8), X)
    attributes = {"num_groups": 2} if kind == "GroupNormalization" else {}
    result = b.node(kind, data, scale[0], bias[0], **attributes)
    content = b.finish(b.quantize(result, Y), version=21)
    x = drawn(shape, np.uint8)
    values = f32_values(x, X)
    if kind == "LayerNormalization":
        wanted = rows_normalized(values, 1e-5) * scale[1] + bias[1]
    else:
        groups = 2 if kind == "GroupNormalization" else 6
        wanted = grouped(values.transpose(0, 2, 3, 1), groups, scale[1], bias[1]).transpose(0, 3, 1, 2)
    assert_within(run_both(content, x), quantized_of(wanted, Y), tolerance_of(".onnx", kind))


REFUSED: dict[str, tuple[str, list[tuple[int, ...]], dict[str, Any]]] = {
    "groups must divide 6 channels, but got 4": ("GroupNormalization", [(2, 6, 5), (6,), (6,)], {"num_groups": 4}),
    "groups must divide 6 channels, but got 0": ("GroupNormalization", [(2, 6, 5), (6,), (6,)], {"num_groups": 0}),
    "input 1 must have the shape [6], but got [3]": ("GroupNormalization", [(2, 6, 5), (3,), (6,)], {"num_groups": 3}),
    "input must have at least 3 dimensions, but got 2": ("InstanceNormalization", [(2, 6), (6,), (6,)], {}),
    "operand shapes must broadcast, but got [4] and [2, 5]": ("LayerNormalization", [(2, 5), (4,)], {}),
    "input 1 must broadcast to [2, 5], but got [3, 2, 5]": ("RMSNormalization", [(2, 5), (3, 2, 5)], {}),
    "p must be 1 or 2, but got 3": ("LpNormalization", [(2, 5)], {"p": 3}),
    "axes must be in [-2, 2), but got [0, 2, 3]": ("MeanVarianceNormalization", [(2, 5)], {}),
    "activation must be 0 or 1, but got 2": (f"{CONTRIB}.GroupNorm", [(2, 5, 4), (4,), (4,)], {"activation": 2}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_no_normalization_means_is_refused(message: str) -> None:
    kind, shapes, attributes = REFUSED[message]
    with pytest.raises(ImportModelError) as caught:
        import_onnx(model_of(kind, [numbers(*shape) for shape in shapes], 0, 21, attributes))
    assert message in caught.value.render()


# Pools of ONNX models, from the definition: the cells of each window, one by one.

X_POOLS, Y_POOLS = (0.043, 117), (0.031, 5)


def cells(x: Array, window: Mapping[str, Any], output: tuple[int, int]) -> Iterator[tuple[int, int, Array]]:
    """Row, column and cells inside the image, [N, C, k], of each window; parameters as in the node's attributes."""
    kernel, strides = window["kernel_shape"], window.get("strides", [1, 1])
    steps, pads = window.get("dilations", [1, 1]), window.get("pads", [0, 0, 0, 0])
    for i, j in np.ndindex(*output):
        starts = (i * strides[0] - pads[0], j * strides[1] - pads[1])
        positions = [(starts[0] + a * steps[0], starts[1] + b * steps[1]) for a, b in np.ndindex(*kernel)]
        inside = [(row, column) for row, column in positions if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]]
        rows, columns = zip(*inside, strict=True)
        yield i, j, x[:, :, rows, columns]


WINDOWS: list[tuple[dict[str, Any], tuple[int, int]]] = [
    ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, (5, 4)),
    ({"kernel_shape": [3, 2], "strides": [2, 3], "pads": [0, 1, 2, 0]}, (5, 3)),
    ({"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, (5, 4)),
    ({"kernel_shape": [3, 3], "strides": [3, 2], "pads": [2, 0, 2, 1], "ceil_mode": 1}, (4, 4)),
    # A third row would start in the padding after the image.
    ({"kernel_shape": [2, 2], "strides": [5, 2], "pads": [1, 0, 1, 0], "ceil_mode": 1}, (2, 4)),
    ({"kernel_shape": [2, 3], "auto_pad": "VALID"}, (8, 5)),
]
DILATED: list[tuple[dict[str, Any], tuple[int, int]]] = [
    ({"kernel_shape": [3, 2], "dilations": [2, 3], "pads": [1, 0, 1, 1]}, (7, 5)),
    ({"kernel_shape": [2, 2], "dilations": [3, 2], "strides": [2, 2], "ceil_mode": 1}, (4, 3)),
]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(("window", "output"), [*WINDOWS, *DILATED])
def test_max_pool(window: dict[str, Any], output: tuple[int, int], dtype: type[np.generic]) -> None:
    x = drawn((2, 3, 9, 7), dtype)
    b = ModelBuilder()
    pooled = b.node("MaxPool", b.dequantize(b.input("x", x.shape, dtype), (0.1, 3), dtype), **window)
    found = run(b.finish(b.quantize(pooled, (0.1, 3), dtype), dtype=dtype), x)
    assert found.shape == (2, 3, *output)
    for i, j, inside in cells(x, window, output):
        assert np.array_equal(found[:, :, i, j], inside.max(axis=2))


@pytest.mark.parametrize("is_qlinear", [True, False])
@pytest.mark.parametrize("counts_padding", [True, False])
@pytest.mark.parametrize(("window", "output"), WINDOWS)
def test_average_pool(window: dict[str, Any], output: tuple[int, int], counts_padding: bool, is_qlinear: bool) -> None:
    """Padding counts as zeros or not at all; ONNX Runtime's sums of floats come within a step of the exact mean."""
    x, attributes = drawn((2, 3, 9, 7), np.uint8), window | {"count_include_pad": int(counts_padding)}
    b = ModelBuilder()
    data = b.input("x", x.shape, np.uint8)
    if is_qlinear:
        parameters = (*b.parameters(X_POOLS, np.uint8), *b.parameters(Y_POOLS, np.uint8))
        out = b.node(f"{CONTRIB}.QLinearAveragePool", data, *parameters, **attributes)
    else:
        out = b.quantize(b.node("AveragePool", b.dequantize(data, X_POOLS), **attributes), Y_POOLS)
    found = run(b.finish(out), x)
    assert found.shape == (2, 3, *output)
    for i, j, inside in cells(x, window, output):
        count = math.prod(window["kernel_shape"]) if counts_padding else inside.shape[2]
        mean = (inside.astype(float) - X_POOLS[1]).sum(axis=2) * X_POOLS[0] / count
        assert np.all(np.abs(found[:, :, i, j] - np.clip(mean / Y_POOLS[0] + Y_POOLS[1], 0, 255)) <= 0.5 + 1e-4)


def test_ties_of_windows_that_count_differently() -> None:
    """Quantized values 0 and 1 average to one half, which goes to even after the zero point is added."""
    x = np.arange(2, dtype=np.uint8).reshape(1, 1, 1, 2)
    for zero_point, wanted in ((4, [[4, 4, 5]]), (5, [[5, 6, 6]])):
        b = ModelBuilder()
        data = b.dequantize(b.input("x", x.shape, np.uint8), (0.5, 0))
        pooled = b.node("AveragePool", data, kernel_shape=[1, 2], pads=[0, 1, 0, 1])
        assert run(b.finish(b.quantize(pooled, (0.5, zero_point))), x)[0, 0].tolist() == wanted


@pytest.mark.parametrize("is_qlinear", [True, False])
def test_global_average_pool(is_qlinear: bool) -> None:
    x = drawn((2, 3, 7, 7), np.uint8)
    b = ModelBuilder()
    data = b.input("x", x.shape, np.uint8)
    if is_qlinear:
        parameters = (*b.parameters(X_POOLS, np.uint8), *b.parameters(Y_POOLS, np.uint8))
        out = b.node(f"{CONTRIB}.QLinearGlobalAveragePool", data, *parameters)
    else:
        out = b.quantize(b.node("GlobalAveragePool", b.dequantize(data, X_POOLS)), Y_POOLS)
    factor = np.float32(X_POOLS[0]) / (np.float32(Y_POOLS[0]) * np.float32(49))
    sums = (x.astype(int) - X_POOLS[1]).sum(axis=(2, 3), keepdims=True)
    wanted = np.clip(np.rint(sums.astype(np.float32) * factor) + Y_POOLS[1], 0, 255)
    assert np.array_equal(run(b.finish(out), x), wanted)


@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 3, 4, 5), (1, 3, 2, 3, 4)])
def test_global_max_pool(shape: tuple[int, ...]) -> None:
    x = drawn(shape, np.int8)
    b = ModelBuilder()
    pooled = b.node("GlobalMaxPool", b.dequantize(b.input("x", shape, np.int8), (0.1, 3), np.int8))
    found = run(b.finish(b.quantize(pooled, (0.1, 3), np.int8), dtype=np.int8), x)
    assert np.array_equal(found, x.max(axis=tuple(range(2, len(shape))), keepdims=True))


def test_max_pool_of_values_and_of_what_is_quantized_later() -> None:
    x, weight = drawn((1, 3, 6, 6), np.uint8), drawn((4, 3, 1, 1), np.int8)
    b = ModelBuilder()
    content = b.finish(b.node("MaxPool", b.input("x", x.shape, np.uint8), kernel_shape=[6, 6]))
    assert np.array_equal(run(content, x), x.max(axis=(2, 3), keepdims=True))
    outputs: list[Array] = []
    for first in ("quantize", "pool"):
        b = ModelBuilder()
        conv = b.node("Conv", b.dequantize(b.input("x", x.shape, np.uint8), X_POOLS), b.weight(weight, 0.02))
        held = b.dequantize(b.quantize(conv, (0.1, 90)), (0.1, 90)) if first == "quantize" else conv
        pooled = b.node("MaxPool", held, kernel_shape=[2, 2], strides=[2, 2])
        outputs.append(run(b.finish(b.quantize(pooled, (0.1, 90))), x))
    assert np.array_equal(outputs[0], outputs[1])


def test_multiplier_of_a_global_average_has_the_bits_of_a_float32_product_and_quotient() -> None:
    """Sums of one image each; among the scales there are such as neither way to form a multiplier gives."""
    x, rng = np.arange(90, dtype=np.uint8).reshape(90, 1, 1, 1).repeat(7, axis=3), np.random.default_rng(0)
    for _ in range(40):
        before, after = (float(np.float32(value)) for value in rng.uniform(0.002, 0.1, 2))
        b = ModelBuilder()
        pooled = b.node("GlobalAveragePool", b.dequantize(b.input("x", x.shape, np.uint8), (before, 0)))
        module = import_onnx(b.finish(b.quantize(pooled, (after, 0))))
        op = next(op for op in module.body.operations[0].regions[0].blocks[0].operations if isinstance(op, MeanOp))
        found = np.float32(real_multiplier(op.input_scale, [1.0], op.output_scale, Multiplier(op.multiplier))[0] / 7)
        assert found == np.float32(before) / (np.float32(after) * np.float32(7))


# Sums of long rows lose no more than those of vectors do.


def compiled_rows(kind: str, x: NDArray[Any], **attributes: Any) -> NDArray[Any]:
    model = ModelBuilder()
    source = model.input("x", list(x.shape))
    parameters = [model.constant(np.ones(x.shape[-1:], np.float32))] if kind == "LayerNormalization" else []
    content = model.finish(model.node(kind, source, *parameters, **attributes), dtype=np.float32, version=20)
    compiled = np.asarray(compile_module(import_onnx(content))(x))
    np.testing.assert_array_equal(compiled, run(content, x))
    return compiled.astype(np.float64)


def error_of(found: NDArray[Any], exact: NDArray[Any]) -> float:
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
