"""Scales of ONNX models that are infinite, no numbers, or far apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiled_ops import check_compiled
from onnx_graphs import (
    CONTRIB,
    Array,
    ModelBuilder,
    Quantization,
    agreed,
    check_node,
    drawn,
    f32_values,
    quantized_of,
    refused,
)

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

INFINITE, NAN = float("inf"), float("nan")
SHAPE = (2, 3, 20)
DTYPES = (np.uint8, np.int8)
EVERY = (0.0, -0.0, 1.0, -3e38, 3e38, INFINITE, -INFINITE, NAN)


@pytest.mark.parametrize("scale", [INFINITE, NAN])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_quantized_and_dequantized_as_floats_are(dtype: Any, scale: float) -> None:
    """A finite number becomes the zero point, what is not finite the smallest quantized value."""
    for point in (0, 5, 127):
        model = ModelBuilder()
        data = model.input("x", (3, len(EVERY)))
        found = agreed(
            model.finish(model.quantize(data, (scale, point), dtype), dtype=dtype),
            np.tile(np.array(EVERY, np.float32), (3, 1)),
        )
        smallest = int(np.iinfo(dtype).min)
        assert set(np.unique(found)) == ({point, smallest} if np.isinf(scale) else {smallest})
        model = ModelBuilder()
        data = model.input("x", SHAPE, dtype)
        agreed(model.finish(model.dequantize(data, (scale, point), dtype), dtype=np.float32), drawn(SHAPE, dtype))


@pytest.mark.parametrize("dtype", [*DTYPES, np.int16, np.uint16])
def test_values_are_quantized_by_parameters_of_run_time(dtype: Any) -> None:
    model = ModelBuilder()
    names = model.input("x", (len(EVERY),)), model.input("s", ()), model.input("z", (), dtype)
    content = model.finish(model.node("QuantizeLinear", *names), dtype=dtype, version=21)
    for scale, point in ((0.5, 5), (2.0**-20, 127), (NAN, 3)):
        agreed(content, np.array(EVERY, np.float32), np.array(scale, np.float32), np.array(point, dtype))


def _binary(
    kind: str, sides: Sequence[Quantization], dtype: Any, right: Array, shape: tuple[int, ...] = (2, 3, 8, 9)
) -> bytes:
    """A QLinear operator of an input of `shape` and a constant."""
    model = ModelBuilder()
    by, of_right, result = (model.parameters(one, dtype) for one in sides)
    names = model.input("x", shape, dtype), *by, model.constant(right), *of_right, *result
    return model.finish(model.node(f"{CONTRIB}.QLinear{kind}", *names), dtype=dtype)


def _sides(model: ModelBuilder, scales: tuple[float, float, float], dtype: Any) -> list[tuple[str, str]]:
    return [model.parameters((scale, point), dtype) for scale, point in zip(scales, (5, 7, 9), strict=True)]


SCALES = [(0.1, INFINITE, INFINITE), (0.1, INFINITE, 0.1), (INFINITE, 0.1, 0.1), (0.1, 0.2, INFINITE), (NAN, 0.1, NAN)]


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("kind", ["Add", "Mul"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_integer_operators_of_two_tensors(dtype: Any, kind: str, scales: tuple[float, float, float]) -> None:
    """Where the factor of an operand is no number, all elements are the smallest."""
    sides = ((scales[0], 5), (scales[1], 7), (scales[2], 9))
    found = agreed(_binary(kind, sides, dtype, drawn(SHAPE, dtype, 1), SHAPE), drawn(SHAPE, dtype))
    assert set(np.unique(found)) == {9 if np.isfinite(scales[:2]).all() else np.iinfo(dtype).min}


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("kind", ["Add", "Mul", "Sub", "Max", "Concat"])
def test_groups_of_two_tensors(kind: str, scales: tuple[float, float, float]) -> None:
    for dtype in DTYPES:
        model = ModelBuilder()
        left, right, result = _sides(model, scales, dtype)
        sides = [
            model.node("DequantizeLinear", model.input(name, SHAPE, dtype), *by)
            for name, by in (("x", left), ("y", right))
        ]
        value = model.node(kind, *sides, **({"axis": 1} if kind == "Concat" else {}))
        agreed(
            model.finish(model.node("QuantizeLinear", value, *result), dtype=dtype),
            drawn(SHAPE, dtype),
            drawn(SHAPE, dtype, 1),
        )


@pytest.mark.parametrize("result", [(1 / 256, -128), (0.37, 3), (1 / 256, 0)])
@pytest.mark.parametrize("scale", [INFINITE, NAN])
@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax(dtype: Any, scale: float, result: Quantization) -> None:
    """No row has a sum: ui8 shares are the zero point, i8 ones wrap around below the smallest 32-bit integer."""
    result = (result[0], max(result[1], int(np.iinfo(dtype).min)))
    for in_group in (True, False):
        model = ModelBuilder()
        data = model.input("x", SHAPE, dtype)
        if in_group:
            shares = model.node("Softmax", model.dequantize(data, (scale, 0), dtype), axis=-1)
            output = model.quantize(shares, result, dtype)
        else:
            names = (data, *model.parameters((scale, 0), dtype), *model.parameters(result, dtype))
            output = model.node(f"{CONTRIB}.QLinearSoftmax", *names, axis=-1, opset=13)
        found = agreed(model.finish(output, dtype=dtype), drawn(SHAPE, dtype))
        wrapped = 127 if result[1] < 0 else -128
        assert set(np.unique(found)) == {result[1] if dtype is np.uint8 else wrapped}


def _decoder(dtype: Any, tokens: int = 6, width: int = 8) -> bytes:
    """One head of masked attention, quantized as ONNX Runtime's quantizer does it where the mask holds -inf."""
    model, middle = ModelBuilder(), 128 if dtype is np.uint8 else 0
    narrow, smallest = (0.03, middle), int(np.iinfo(dtype).min)

    def quantized(value: str, to: Quantization = narrow) -> str:
        return model.dequantize(model.quantize(value, to, dtype), to, dtype)

    embedded = model.node(
        "Gather", model.weight(drawn((50, width), np.int8, 1), 0.01), model.input("x", (1, tokens), np.int64)
    )
    entered = quantized(embedded)
    heads = [
        quantized(model.node("MatMul", entered, model.weight(drawn((width, width), np.int8, seed), 0.02)))
        for seed in (2, 3, 4)
    ]
    key = quantized(model.node("Transpose", heads[1], perm=[0, 2, 1]))
    scores = quantized(model.node("MatMul", heads[0], key))
    mask = model.dequantize(model.constant(np.zeros((1, tokens, tokens), dtype)), (INFINITE, 0), dtype)
    masked = quantized(model.node("Add", scores, mask), (INFINITE, 0))
    shares = quantized(model.node("Softmax", masked, axis=-1), (1 / 256, smallest))
    mixed = quantized(model.node("MatMul", shares, heads[2]), (0.5, middle))
    return model.finish(quantized(model.node("Add", entered, mixed)), dtype=np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_attention(dtype: Any) -> None:
    agreed(_decoder(dtype), np.array([[3, 1, 4, 1, 5, 9]], np.int64))


@pytest.mark.parametrize("row", [[-INFINITE] * 17, [NAN] * 9, [INFINITE, 0.0, 1.0], [-INFINITE, 2.0, 1.0]])
def test_softmax_of_floats_that_are_not_finite(row: list[float]) -> None:
    """A row whose largest element is not finite has no shares."""
    found = check_node("Softmax", [np.array([row], np.float32)], "softmax", version=17, axis=-1)
    assert np.isnan(found).all() != np.isfinite(np.max(row))


@pytest.mark.parametrize("kind", ["Sigmoid", "LeakyRelu"])
@pytest.mark.parametrize("scales", [(INFINITE, INFINITE), (INFINITE, 0.1), (0.1, INFINITE), (2.0**100, 0.01)])
def test_integer_functions(kind: str, scales: tuple[float, float]) -> None:
    for dtype in DTYPES:
        model = ModelBuilder()
        before, after = (model.parameters((scale, 5), dtype) for scale in scales)
        output = model.node(f"{CONTRIB}.QLinear{kind}", model.input("x", SHAPE, dtype), *before, *after)
        agreed(model.finish(output, dtype=dtype), drawn(SHAPE, dtype))


# QLinear operators by scales beyond those of the dialect, as quantizers write for masks of attention.
#
# ONNX Runtime is the measure.

MASK = 1.3344405750530544e36
SHAPE_WIDE = (2, 3, 8, 9)
MASKS = drawn(SHAPE_WIDE[2:], np.uint8, seed=1)


def _sum(result: Quantization) -> bytes:
    return _binary("Add", ((MASK, 128), (MASK / 3, 255), result), np.uint8, MASKS)


def _mask(dtype: Any) -> Array:
    """Nothing above the diagonal counts: quantized, 0 is the largest number and -3.4e38 the smallest."""
    limits = np.iinfo(dtype)
    return np.where(np.tri(*SHAPE_WIDE[2:], dtype=np.bool_), limits.max, limits.min).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_mask_is_added(dtype: Any) -> None:
    top = int(np.iinfo(dtype).max)
    sides = ((0.0051, top - 129), (MASK, top), (MASK, top))
    found = agreed(_binary("Add", sides, dtype, _mask(dtype)), drawn(SHAPE_WIDE, dtype))
    assert set(np.unique(found)) == {np.iinfo(dtype).min, top}


@pytest.mark.parametrize("result", [(MASK, 255), (MASK * 2, 200)])
def test_sums_are_quantized_by_a_wide_scale(result: Quantization) -> None:
    agreed(_sum(result), drawn(SHAPE_WIDE, np.uint8))


@pytest.mark.parametrize("parameters", [(MASK, 255), (2.0**33, 7), (3.4e38, 0)])
def test_numbers_of_the_size_of_a_mask(parameters: Quantization) -> None:
    """Those of less than a quarter of the scale are zero before they are divided."""
    model = ModelBuilder()
    parts = np.array([0, -0.0, 1e-38, 0.2499999, 0.25, 0.2500001, 0.4999999, 0.5, 0.5000001, 0.75, 1, 1.5, 99, np.inf])
    with np.errstate(over="ignore"):
        special = np.concatenate([parts * parameters[0], [1e-40, 1, 17]]).astype(np.float32)
    values = np.concatenate([special, -special, [np.nan]]).reshape(5, 7).astype(np.float32)
    node = model.node(
        "QuantizeLinear", model.input("x", values.shape, np.float32), *model.parameters(parameters, np.uint8)
    )
    agreed(model.finish(node, dtype=np.uint8), values)


@pytest.mark.parametrize("result", [(2.0**31, 255), (0.5, 128)])
def test_quotients_that_no_i32_holds_saturate(result: Quantization) -> None:
    """As the standard says; ONNX Runtime gives the smallest quantized value for the largest sums."""
    x = drawn(SHAPE_WIDE, np.uint8)
    left, right = f32_values(x, (MASK, 128)), f32_values(MASKS, (MASK / 3, 255))
    module = import_onnx(_sum(result))
    with np.errstate(over="ignore"):
        wanted = quantized_of(left + right, result)
    assert {0, 255} <= set(np.unique(wanted))
    np.testing.assert_array_equal(interpreter.run(module, [x])[0], wanted, strict=True)
    check_compiled(module, "host", [[x]], [[wanted]])


@pytest.mark.parametrize(
    "sides",
    [
        ((0.02, 128), (MASK, 255), (MASK, 100)),
        ((0.02, 128), (2.0**33, 7), (2.0**34, 128)),
        ((0.02, 128), (2.0**33, 7), (2.0**29, 128)),
    ],
)
def test_products_are_quantized_by_any_scale(sides: tuple[Quantization, Quantization, Quantization]) -> None:
    agreed(_binary("Mul", sides, np.uint8, MASKS), drawn(SHAPE_WIDE, np.uint8))


@pytest.mark.parametrize("scale", [MASK, 2.0**31, 3.4e38, 2.0**-61])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_softmax_of_any_scale(scale: float, dtype: Any) -> None:
    """Beyond 2^30 what is not the largest of its row has no share, and several that are divide it."""
    model = ModelBuilder()
    data = model.input("x", SHAPE_WIDE, dtype)
    parameters = (*model.parameters((scale, 5), dtype), *model.parameters((1 / 256, int(np.iinfo(dtype).min)), dtype))
    content = model.finish(model.node(f"{CONTRIB}.QLinearSoftmax", data, *parameters, axis=-1, opset=13), dtype=dtype)
    values = drawn(SHAPE_WIDE, dtype)
    values[0, 0, :4, :5] = np.iinfo(dtype).max
    agreed(content, values)


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_softmax_of_a_mask_in_a_group(dtype: Any, version: int) -> None:
    """The group is one integer kernel for ONNX Runtime: the only element of a row has 254 of 255 parts."""
    model, limits = ModelBuilder(), np.iinfo(dtype)
    data = model.dequantize(model.input("x", (9, 9), dtype), (MASK, int(limits.max)), dtype)
    shares = model.node("Softmax", data, axis=1)
    content = model.finish(model.quantize(shares, (1 / 255, int(limits.min)), dtype), dtype=dtype, version=version)
    found = agreed(content, np.where(np.tri(9, dtype=np.bool_), limits.max, limits.min).astype(dtype))
    assert int(found[0, 0]) - limits.min == 254


def test_parts_are_joined_by_any_scale() -> None:
    model = ModelBuilder()
    mask = np.broadcast_to(_mask(np.uint8), SHAPE_WIDE)
    parts = [(model.input("x", SHAPE_WIDE, np.uint8), (0.02, 128)), (model.constant(mask), (MASK, 255))]
    values = [name for part, of in parts for name in (part, *model.parameters(of, np.uint8))]
    result = model.node(f"{CONTRIB}.QLinearConcat", *model.parameters((MASK, 255), np.uint8), *values, axis=1)
    agreed(model.finish(result), drawn(SHAPE_WIDE, np.uint8))


@pytest.mark.parametrize("scale", [0.0, -1.0, -np.inf])
def test_numbers_that_are_no_scales_are_refused(scale: float) -> None:
    sides = ((0.02, 128), (scale, 255), (MASK, 255))
    content = _binary("Add", sides, np.uint8, _mask(np.uint8))
    assert f"scale must be in [2^-60, 2^30], but got {scale}" in refused(content)
