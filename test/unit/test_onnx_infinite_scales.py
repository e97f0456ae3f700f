"""Scales that are infinite or not numbers, as quantizers write for masks that hold -inf.

ONNX Runtime is the measure.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_agreement import ORT, agreed
from onnx_graphs import CONTRIB, ModelBuilder, Quantization, drawn
from together import check_compiled
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

Array = NDArray[Any]
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


def _sides(model: ModelBuilder, scales: tuple[float, float, float], dtype: Any) -> list[tuple[str, str]]:
    return [model.parameters((scale, point), dtype) for scale, point in zip(scales, (5, 7, 9), strict=True)]


SCALES = [
    (0.1, INFINITE, INFINITE),
    (0.1, INFINITE, 0.1),
    (INFINITE, 0.1, 0.1),
    (0.1, 0.2, INFINITE),
    (NAN, 0.1, NAN),
]


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("kind", ["Add", "Mul"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_integer_operators_of_two_tensors(dtype: Any, kind: str, scales: tuple[float, float, float]) -> None:
    """Where the factor of an operand is no number, all elements are the smallest."""
    model = ModelBuilder()
    left, right, result = _sides(model, scales, dtype)
    names = (model.input("x", SHAPE, dtype), *left, model.constant(drawn(SHAPE, dtype, 1)), *right, *result)
    found = agreed(model.finish(model.node(f"{CONTRIB}.QLinear{kind}", *names), dtype=dtype), drawn(SHAPE, dtype))
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
    model = ModelBuilder()
    content = model.finish(model.node("Softmax", model.input("x", (1, len(row))), axis=-1), dtype=np.float32)
    values = np.array([row], np.float32)
    module = import_onnx(content)
    (wanted,) = ORT.InferenceSession(content).run(None, {"x": values})
    (found,) = interpreter.run(module, [values])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert_floats_within(found, wanted, "softmax")
    check_compiled(module, "host", [[values]], [[found]])


@pytest.mark.parametrize("kind", ["Sigmoid", "LeakyRelu"])
@pytest.mark.parametrize("scales", [(INFINITE, INFINITE), (INFINITE, 0.1), (0.1, INFINITE), (2.0**100, 0.01)])
def test_integer_functions(kind: str, scales: tuple[float, float]) -> None:
    for dtype in DTYPES:
        model = ModelBuilder()
        before, after = (model.parameters((scale, 5), dtype) for scale in scales)
        output = model.node(f"{CONTRIB}.QLinear{kind}", model.input("x", SHAPE, dtype), *before, *after)
        agreed(model.finish(output, dtype=dtype), drawn(SHAPE, dtype))
