"""Quantization whose parameters are found at run time, as ONNX Runtime computes it."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_graphs import ModelBuilder

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]


def quantized(x: Array) -> tuple[Array, np.float32, int]:
    """Quantized values, scale and zero point by the formulas of the operator, in float32."""
    low, high = min(np.float32(x.min()), np.float32(0)), max(np.float32(x.max()), np.float32(0))
    scale = (high - low) / np.float32(255) if high != low else np.float32(1)
    point = int(np.rint(np.clip(np.float32(0) - low / scale, 0, 255)))
    return np.clip(np.rint(x / scale) + point, 0, 255).astype(np.uint8), scale, point


def run(content: bytes, *inputs: Array) -> tuple[Array, ...]:
    module = import_onnx(content)
    wanted = interpreter.run(module, inputs)
    for target in ("host", "generic"):
        results = compile_module(module, target=target)(*inputs)
        for one, found in zip(wanted, results if isinstance(results, tuple) else (results,), strict=True):
            np.testing.assert_array_equal(found, one)
    return wanted


DATA = {
    "both signs": np.random.default_rng(0).normal(size=(5, 19)),
    "positive": np.random.default_rng(0).uniform(1, 3, (5, 19)),
    "negative": -np.random.default_rng(0).uniform(1, 3, (5, 19)),
    "zero": np.zeros((5, 19)),
    "tiny": np.random.default_rng(0).normal(size=(5, 19)) * 1e-30,
}


@pytest.mark.parametrize("name", DATA)
def test_parameters_come_from_the_data(name: str) -> None:
    model, x = ModelBuilder(), DATA[name].astype(np.float32)
    outputs = ["quantized", "scale", "point"]
    model.node_of_many("DynamicQuantizeLinear", [model.input("x", x.shape)], outputs)
    total = model.node("Mul", model.node("Cast", "quantized", to=1), "scale")
    content = model.finish(total, "scale", model.node("Cast", "point", to=1), dtype=np.float32)
    found = run(content, x)
    values, scale, point = quantized(x)
    np.testing.assert_array_equal(found[0], values.astype(np.float32) * scale)
    assert found[1:] == (scale, np.float32(point))


@pytest.mark.parametrize("weight_point", [0, 7])
def test_a_product_with_run_time_parameters(weight_point: int) -> None:
    model, x = ModelBuilder(), DATA["both signs"].astype(np.float32)
    weight = np.random.default_rng(1).integers(-127, 128, (19, 10)).astype(np.int8)
    model.node_of_many("DynamicQuantizeLinear", [model.input("x", x.shape)], ["quantized", "scale", "point"])
    sums = model.node(
        "MatMulInteger", "quantized", model.constant(weight), "point", model.constant(np.array(weight_point, np.int8))
    )
    factor = model.node("Mul", "scale", model.constant(0.02))
    f32 = model.node("Mul", model.node("Cast", sums, to=1), factor)
    (found,) = run(model.finish(f32, dtype=np.float32), x)
    values, scale, point = quantized(x)
    wanted = (values.astype(np.int32) - point) @ (weight.astype(np.int32) - weight_point)
    np.testing.assert_array_equal(found, wanted.astype(np.float32) * (scale * np.float32(0.02)))


def test_a_run_time_zero_point_takes_a_constant_matrix() -> None:
    model = ModelBuilder()
    names = [model.input(name, (4, 4), np.uint8) for name in ("x", "w")]
    sums = model.node("MatMulInteger", *names, model.input("z", (), np.uint8))
    with pytest.raises(ImportModelError) as caught:
        import_onnx(model.finish(sums, dtype=np.int32))
    assert "right operand must be a constant matrix where the zero point is omitted" in caught.value.render()
