"""Quantized operators of ONNX models other than contractions: ONNX Runtime's numbers, and those that it gave before."""

import re
from typing import Any

import numpy as np
import pytest
import recordings
from compiled_ops import variants_together
from onnx_graphs import (
    CONTRIB,
    Array,
    Known,
    ModelBuilder,
    Quantization,
    agreed,
    check_node,
    drawn,
    f32_values,
    found_by,
    node,
    numbers,
    of_onnx_runtime,
    quantized_of,
    run,
)
from recordings import Recording
from tolerances import EXACT, Tolerance, assert_floats_within, assert_within, tolerance_of

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

X, Y, Z = (0.043, 117), (0.031, 5), (0.057, 90)
ALL = np.arange(256, dtype=np.uint8).reshape(16, 16)


def between(
    kind: str, data: Array, *operands: Any, by: Quantization = X, to: Quantization = Y, version: int = 17, **how: Any
) -> bytes:
    """A node between a DequantizeLinear of `data` and a QuantizeLinear; the other operands are constants."""
    b, dtype = ModelBuilder(), data.dtype.type
    values = b.dequantize(b.input("x", data.shape, dtype), by, dtype)
    result = b.node(kind, values, *(b.constant(one) for one in operands), **how)
    return b.finish(b.quantize(result, to, dtype), dtype=dtype, version=version)


def qlinear(kind: str, data: Array, by: Quantization = X, to: Quantization = Y, **how: Any) -> bytes:
    """An operator of ONNX Runtime's own domain; `opset` is its version where it has several."""
    b, dtype = ModelBuilder(), data.dtype.type
    names = b.input("x", data.shape, dtype), *b.parameters(by, dtype), *b.parameters(to, dtype)
    return b.finish(b.node(f"{CONTRIB}.QLinear{kind}", *names, **how), dtype=dtype)


@pytest.mark.parametrize(("kind", "attributes"), [("Sigmoid", {}), ("LeakyRelu", {"alpha": 0.1})])
def test_functions_with_omitted_zero_points(kind: str, attributes: dict[str, Any]) -> None:
    """They are zeros. For ONNX Runtime, which ends the process without them, they are given."""
    values, scales, zero = (
        ALL.view(np.int8),
        [Known(np.array(one, np.float32)) for one in (0.05, 0.013)],
        Known(np.array(0, np.int8)),
    )
    wanted = check_node(f"{CONTRIB}.QLinear{kind}", [values, scales[0], zero, scales[1], zero], **attributes)
    content, _ = node(f"{CONTRIB}.QLinear{kind}", [values, scales[0], None, scales[1]], **attributes)
    assert np.array_equal(run(content, values), wanted)


def test_clip_takes_bounds_either_way() -> None:
    agreed(between("Clip", ALL, min=-1.0, max=3.0, version=10), ALL)
    agreed(between("Clip", ALL, -1.0, 3.0), ALL)


@pytest.mark.parametrize("bounds", [(-3, 70), (None, 5), (9, 2)])
def test_clip_of_integers(bounds: tuple[int | None, int]) -> None:
    """Where the bounds are the wrong way round the upper one wins."""
    held = [None if bound is None else Known(np.array(bound, np.int8)) for bound in bounds]
    check_node("Clip", [ALL.view(np.int8), *held])


@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_sum_and_product_on_every_pair_of_values(kind: str) -> None:
    lhs, rhs = ALL.reshape(256, 1), ALL.reshape(1, 256)
    b = ModelBuilder()
    data = b.dequantize(b.input("x", lhs.shape, np.uint8), X)
    other = b.node("DequantizeLinear", b.constant(rhs), *b.parameters(Y, np.uint8))
    agreed(b.finish(b.quantize(b.node(kind, data, other), Z)), lhs)
    b = ModelBuilder()
    left = (b.input("x", lhs.shape, np.uint8), *b.parameters(X, np.uint8))
    right = (b.constant(rhs), *b.parameters(Y, np.uint8))
    agreed(b.finish(b.node(f"{CONTRIB}.QLinear{kind}", *left, *right, *b.parameters(Z, np.uint8))), lhs)


def test_dequantize_and_quantize_alone_are_a_table() -> None:
    b = ModelBuilder()
    values = b.dequantize(b.input("x", ALL.shape, np.uint8), X)
    agreed(b.finish(b.quantize(values, (0.02, -9), np.int8), dtype=np.int8), ALL)


@pytest.mark.parametrize("is_qlinear", [True, False])
@pytest.mark.parametrize("count", [16, 17, 40])
def test_concat_takes_any_number_of_parts(count: int, is_qlinear: bool) -> None:
    images = [drawn((1, 3, 2, 2), np.uint8, seed) for seed in range(count)]
    by = [(0.01 + 0.001 * i, i) for i in range(count)]
    b = ModelBuilder()
    names = [b.input(f"x{i}", one.shape, np.uint8) for i, one in enumerate(images)]
    if is_qlinear:
        parts = [one for name, own in zip(names, by, strict=True) for one in (name, *b.parameters(own, np.uint8))]
        out = b.node(f"{CONTRIB}.QLinearConcat", *b.parameters(Z, np.uint8), *parts, axis=1)
    else:
        values = [b.dequantize(name, own) for name, own in zip(names, by, strict=True)]
        out = b.quantize(b.node("Concat", *values, axis=1), Z)
    agreed(b.finish(out), *images)


MOVEMENTS: list[tuple[str, list[Array], dict[str, Any]]] = [
    ("Transpose", [], {"perm": [2, 0, 1]}),
    ("Transpose", [], {}),
    ("Reshape", [np.array([0, -1])], {}),
    ("Flatten", [], {"axis": 2}),
    ("Unsqueeze", [np.array([0, -1])], {}),
    ("Pad", [np.array([0, 1, 0, 2, 0, 0]), np.array(0, np.float32)], {}),
]


@variants_together
@pytest.mark.parametrize(("kind", "operands", "attributes"), MOVEMENTS)
@pytest.mark.parametrize("before", [True, False])
def test_movement_on_either_side_of_a_quantization(
    kind: str, operands: list[Array], attributes: dict[str, Any], before: bool
) -> None:
    """Before: of f32 values that are quantized afterwards. After: of quantized values that are dequantized first."""
    b, x = ModelBuilder(), numbers(2, 3, 4) if before else drawn((2, 3, 4), np.uint8)
    data = b.input("x", x.shape, x.dtype.type)
    moved = b.node(kind, data if before else b.dequantize(data, X), *map(b.constant, operands), **attributes)
    agreed(b.finish(b.quantize(moved, X) if before else moved, dtype=None), x)


@pytest.mark.parametrize("fill", [0.3, -np.inf])
def test_a_pad_between_two_values_is_rounded_by_the_quantization_after_it(fill: float) -> None:
    x, (before, after) = drawn((2, 3), np.uint8), ((0.25, 7), (0.013, 90))
    content = between("Pad", x, np.array([0, 1, 0, 0]), fill, by=before, to=after)
    wanted = np.pad(f32_values(x, before), ((0, 0), (1, 0)), constant_values=np.float32(fill))
    with np.errstate(invalid="ignore"):
        assert np.array_equal(run(content, x), quantized_of(wanted, after))


def test_parameters_by_channel_of_computed_values() -> None:
    b = ModelBuilder()
    held = np.array([0.01, 0.02, 0.03], np.float32), np.array([100, 128, 150], np.uint8)
    parameters = [b.constant(one) for one in held]
    values = b.node("QuantizeLinear", b.input("x", (2, 3, 4)), *parameters, axis=1)
    turned = b.node("Transpose", b.node("DequantizeLinear", values, *parameters, axis=-2), perm=[1, 0, 2])
    agreed(b.finish(turned, dtype=np.float32), numbers(2, 3, 4))


def test_weights_that_the_model_quantizes_itself_are_constants() -> None:
    x, w = drawn((3, 5), np.uint8), numbers(5, 4, seed=1)
    b = ModelBuilder()
    weight = b.dequantize(b.quantize(b.constant(w), (0.02, 0), np.int8), (0.02, 0), np.int8)
    product = b.node("MatMul", b.dequantize(b.input("x", x.shape, np.uint8), (0.5, 7)), weight)
    acc = (x.astype(int) - 7) @ quantized_of(w, (0.02, 0), np.int8).astype(int)
    found = run(b.finish(product, dtype=np.float32), x)
    assert np.array_equal(found, acc.astype(np.float32) * (np.float32(0.5) * np.float32(0.02)))


@variants_together
@pytest.mark.parametrize(("version", "axis"), [(13, None), (13, 1), (11, None), (11, 2)])
def test_softmax(version: int, axis: int | None) -> None:
    """Before operator set 13 rows run along all dimensions from the axis on."""
    x = drawn((2, 3, 5, 4), np.uint8)
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    agreed(between("Softmax", x, to=(1 / 256, 0), version=version, **attributes), x)
    agreed(qlinear("Softmax", x, to=(1 / 256, 0), opset=version, **attributes), x)


def test_integers_are_f32_values_once_they_are_cast() -> None:
    """A picture of bytes that the model casts, scales and quantizes is a table of them."""
    b = ModelBuilder()
    picture = b.input("x", ALL.shape, np.uint8)
    scaled = b.node("Mul", b.node("CastLike", picture, b.constant(1.0)), b.constant(float(np.float32(1 / 255))))
    content = b.finish(b.quantize(scaled, (0.02, 3)))
    assert re.findall(r"qnn\.\w+(?=\")", str(import_onnx(content))) == ["qnn.lut"]
    agreed(content, ALL)


@variants_together
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_choices_of_quantized_values(dtype: type[np.generic]) -> None:
    condition, shape = drawn((3, 1, 5), np.uint8) > 128, (3, 4, 5)
    scales = [Known(np.array(scale, np.float32)) for scale in (0.05, 0.02, 0.04)]
    points = [Known(np.array(point, dtype)) for point in (3, 4, 5)]
    sides = [one for i in range(2) for one in (drawn(shape, dtype, i), scales[i], points[i])]
    check_node(f"{CONTRIB}.QLinearWhere", [condition, *sides, scales[2], points[2]])


# Normalizations: with parameters as a quantizer leaves them, scales of 8 bits and biases of 32.


def of_channels(b: ModelBuilder, count: int) -> list[str]:
    scales = drawn((count,), np.int8, 1), drawn((count,), np.int8, 2).astype(np.int32)
    return [b.weight(one, 0.011) for one in scales]


@variants_together
@pytest.mark.parametrize("shape", [(2, 19, 5, 7), (1, 64, 9, 9), (4, 19), (2, 19, 33)])
def test_batch_normalization(shape: tuple[int, ...]) -> None:
    b, rng = ModelBuilder(), np.random.default_rng(3)
    mean, variance = rng.normal(size=shape[1]), rng.uniform(0.1, 3, shape[1])
    names = [*of_channels(b, shape[1]), *(b.constant(one.astype(np.float32)) for one in (mean, variance))]
    data = b.dequantize(b.input("x", shape, np.uint8), X)
    agreed(b.finish(b.quantize(b.node("BatchNormalization", data, *names), (0.031, 90))), drawn(shape, np.uint8))


@variants_together
@pytest.mark.parametrize("kind", ["GroupNormalization", "InstanceNormalization", "LayerNormalization"])
def test_normalizations(kind: str) -> None:
    b, x = ModelBuilder(), drawn((2, 6, 5, 8), np.uint8)
    names = of_channels(b, 8 if kind == "LayerNormalization" else 6)
    data = b.dequantize(b.input("x", x.shape, np.uint8), X)
    result = b.node(kind, data, *names, **({"num_groups": 2} if kind == "GroupNormalization" else {}))
    content = b.finish(b.quantize(result, (0.031, 90)), version=21)
    assert_within(found_by(content, x)[0], of_onnx_runtime(content, x)[0], tolerance_of(".onnx", kind))


# Pools.

WINDOWS: list[dict[str, Any]] = [
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [0, 1, 2, 0]},
    {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "strides": [3, 2], "pads": [2, 0, 2, 1], "ceil_mode": 1},
    # A third row would start in the padding after the image.
    {"kernel_shape": [2, 2], "strides": [5, 2], "pads": [1, 0, 1, 0], "ceil_mode": 1},
    {"kernel_shape": [2, 3], "auto_pad": "VALID"},
]
DILATED: list[dict[str, Any]] = [
    {"kernel_shape": [3, 2], "dilations": [2, 3], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [2, 2], "dilations": [3, 2], "strides": [2, 2], "ceil_mode": 1},
]


@variants_together
@pytest.mark.parametrize("window", [*WINDOWS, *DILATED])
def test_max_pool(window: dict[str, Any]) -> None:
    for dtype in (np.uint8, np.int8):
        x = drawn((2, 3, 9, 7), dtype)
        agreed(between("MaxPool", x, by=(0.1, 3), to=(0.1, 3), **window), x)


@variants_together
@pytest.mark.parametrize("counts_padding", [0, 1])
@pytest.mark.parametrize("window", WINDOWS)
def test_average_pool(window: dict[str, Any], counts_padding: int) -> None:
    """Padding counts as zeros or not at all."""
    x = drawn((2, 3, 9, 7), np.uint8)
    how: dict[str, Any] = {**window, "count_include_pad": counts_padding}
    agreed(between("AveragePool", x, **how), x)
    agreed(qlinear("AveragePool", x, **how), x)


@pytest.mark.parametrize("zero_point", [4, 5])
def test_ties_of_windows_that_count_differently(zero_point: int) -> None:
    """Quantized values 0 and 1 average to one half, which goes to even after the zero point is added."""
    x = np.arange(2, dtype=np.uint8).reshape(1, 1, 1, 2)
    how: dict[str, Any] = {"kernel_shape": [1, 2], "pads": [0, 1, 0, 1]}
    found = agreed(between("AveragePool", x, by=(0.5, 0), to=(0.5, zero_point), **how), x)
    assert found[0, 0].tolist() == ([[4, 4, 5]] if zero_point == 4 else [[5, 6, 6]])


def test_global_pools() -> None:
    x = drawn((2, 3, 7, 7), np.uint8)
    agreed(between("GlobalAveragePool", x), x)
    agreed(qlinear("GlobalAveragePool", x), x)
    for shape in ((2, 3, 7), (2, 3, 4, 5), (1, 3, 2, 3, 4)):
        agreed(between("GlobalMaxPool", drawn(shape, np.int8), by=(0.1, 3), to=(0.1, 3)), drawn(shape, np.int8))


def test_max_pool_of_values_and_of_floats_that_are_quantized_later() -> None:
    x, weight = drawn((1, 3, 6, 6), np.uint8), drawn((4, 3, 1, 1), np.int8)
    check_node("MaxPool", [x], kernel_shape=[6, 6])
    outputs: list[Array] = []
    for first in ("quantize", "pool"):
        b = ModelBuilder()
        conv = b.node("Conv", b.dequantize(b.input("x", x.shape, np.uint8), X), b.weight(weight, 0.02))
        held = b.dequantize(b.quantize(conv, (0.1, 90)), (0.1, 90)) if first == "quantize" else conv
        pooled = b.node("MaxPool", held, kernel_shape=[2, 2], strides=[2, 2])
        outputs.append(run(b.finish(b.quantize(pooled, (0.1, 90))), x))
    assert np.array_equal(outputs[0], outputs[1])


def test_the_multiplier_of_a_global_average_is_a_float32_product_and_quotient() -> None:
    """Sums of one image each; among the scales there are such as neither way to form a multiplier gives."""
    x, rng = np.arange(90, dtype=np.uint8).reshape(90, 1, 1, 1).repeat(7, axis=3), np.random.default_rng(0)
    for _ in range(40):
        before, after = (float(np.float32(value)) for value in rng.uniform(0.002, 0.1, 2))
        content = between("GlobalAveragePool", x, by=(before, 0), to=(after, 0))
        np.testing.assert_array_equal(run(content, x), of_onnx_runtime(content, x)[0])


@pytest.mark.parametrize("kind", ["AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"])
def test_a_pool_of_floats_that_are_quantized_after_it(kind: str) -> None:
    """With two readers in between: one of the numbers, one of the quantized values."""
    b, x = ModelBuilder(), drawn((1, 8, 6, 6), np.uint8)
    attributes = {} if kind.startswith("Global") else {"kernel_shape": [2, 2], "strides": [2, 2]}
    data = b.node("Exp", b.dequantize(b.input("x", x.shape, np.uint8), (0.02, 100)))
    pooled = b.node(kind, data, **attributes)
    content = b.finish(pooled, b.quantize(pooled, (0.05, 100)), dtype=None)
    found, wanted = found_by(content, x), of_onnx_runtime(content, x)
    assert_floats_within(found[0], wanted[0], "formula")
    assert_within(found[1], wanted[1], tolerance_of(".onnx", kind))


# Numbers that ONNX Runtime gave: `tools/record/README.md` says which version and options gave them.
# Of the f32 sums it computes those results that its order of adding decides.

FAMILIES = ("contractions", "elementwise", "movement", "resize", "softmax", "qdq_groups")
CASES = {
    f"{family}.{name}": case for family in FAMILIES for name, case in recordings.read_family(f"onnx_{family}").items()
}
LAYERS = recordings.read_family("onnx_layers")
SUMS = recordings.read_family("onnx_float_sums")


def check_recorded(case: Recording, tolerance: Tolerance) -> int:
    """How many elements of all outputs are away."""
    outputs = interpreter.run(import_onnx(case.model), list(case.inputs))
    for pair in zip(outputs, case.outputs, strict=True):
        assert_within(*pair, tolerance)
    return sum(int((found != wanted).sum()) for found, wanted in zip(outputs, case.outputs, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_equals_the_recorded_output(case: str) -> None:
    assert check_recorded(CASES[case], EXACT) == 0


@pytest.mark.parametrize("case", LAYERS)
def test_layers_are_as_close_as_their_tolerance_says(case: str) -> None:
    check_recorded(LAYERS[case], tolerance_of(".onnx", case.rpartition("_")[0]))


@pytest.mark.parametrize("kind", sorted({case.partition("_")[0] for case in SUMS}))
def test_sums_of_floats_are_as_close_as_their_tolerance_says(kind: str) -> None:
    """And not closer: an operator whose cases are all equal would need none."""
    cases = [case for name, case in SUMS.items() if name.startswith(f"{kind}_")]
    tolerance = tolerance_of(".onnx", kind)
    assert (sum(check_recorded(case, tolerance) for case in cases) > 0) == (tolerance != EXACT)
