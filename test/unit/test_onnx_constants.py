"""A constant that goes through a DequantizeLinear is a constant of f32 values for every operator."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper, numpy_helper
from onnx_graphs import ModelBuilder, drawn, run
from tolerances import assert_floats_within

from qdialect.arithmetic.machine import multiply_add
from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
SCALE = np.float32(0.125)
ROW, ONE = (5,), ()

OPERATORS: dict[str, tuple[tuple[int, ...], list[tuple[int, ...]], dict[str, Any]]] = {
    "Add": ((2, 3, 5), [ROW], {}),
    "BatchNormalization": ((2, 5, 3), [ROW, ROW, ROW, ROW], {}),
    "Clip": ((2, 5), [ONE, ONE], {}),
    "Concat": ((2, 5), [(2, 3)], {"axis": 1}),
    "Conv": ((1, 3, 6, 6), [(4, 3, 3, 3), (4,)], {}),
    "Div": ((2, 3, 5), [(3, 1)], {}),
    "Gemm": ((2, 5), [(5, 3), (3,)], {}),
    "LayerNormalization": ((2, 3, 5), [ROW, ROW], {}),
    "MatMul": ((2, 3, 5), [(5, 4)], {}),
    "Max": ((2, 5), [ROW, ONE], {}),
    "PRelu": ((2, 3, 5), [(3, 1)], {}),
    "Pow": ((2, 5), [ONE], {}),
    "Sum": ((2, 5), [ROW, ROW], {}),
}


def model_of(kind: str, is_quantized: bool) -> bytes:
    """`kind` on floats, its other operands constants that are positive."""
    shape, constants, attributes = OPERATORS[kind]
    b = ModelBuilder()
    names = [b.input("x", shape)]
    for seed, one in enumerate(constants):
        quantized = np.asarray(drawn(one, np.int8, seed) | 1).clip(1, 127).astype(np.int8)
        plain = quantized.astype(np.float32) * SCALE
        names.append(b.weight(quantized, float(SCALE)) if is_quantized else b.constant(plain))
    return b.finish(b.node(kind, *names, output="y", **attributes), dtype=np.float32)


@pytest.mark.parametrize("kind", OPERATORS)
def test_both_forms_of_a_constant_are_one_module(kind: str) -> None:
    assert str(import_onnx(model_of(kind, is_quantized=True))) == str(import_onnx(model_of(kind, is_quantized=False)))


@pytest.mark.parametrize("kind", ["Add", "Mul", "Sub"])
def test_a_function_of_constants_is_a_constant(kind: str) -> None:
    """Of dequantized ones too: the sum is a weight like another."""
    quantized = drawn((4, 3), np.int8)
    b = ModelBuilder()
    weight = b.node(kind, b.weight(quantized, float(SCALE)), b.weight(quantized[:1], 0.5))
    content = b.finish(b.node("MatMul", b.input("x", (2, 4)), weight), dtype=np.float32)
    assert "dequantize" not in str(import_onnx(content))
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    function = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract}[kind]
    matrix = function(quantized.astype(np.float32) * SCALE, quantized[:1].astype(np.float32) * np.float32(0.5))
    wanted = np.zeros((2, 3), np.float32)
    for k in range(4):
        wanted = multiply_add(x[:, k : k + 1], matrix[k], wanted)
    np.testing.assert_array_equal(run(content, x), wanted)


@pytest.mark.parametrize("scale", [1.334e36, 1e-30])
def test_a_constant_may_have_any_scale(scale: float) -> None:
    """A mask of the smallest float is quantized with a scale beyond those of activations."""
    b = ModelBuilder()
    mask = b.weight(np.array([0, 255, 3], np.uint8), scale, zero_point=255)
    content = b.finish(b.node("Add", b.input("x", (2, 3)), mask), dtype=np.float32)
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(content, x), x + np.array([-255, 0, -252], np.float32) * np.float32(scale))


@pytest.mark.parametrize(("shape", "axis"), [((1, 512), 1), ((100, 3), 0), ((2, 90, 3), 1)])
def test_elements_of_a_long_constant(shape: tuple[int, ...], axis: int) -> None:
    """As rows of token types are taken: by more elements than NumPy chooses among, and from a part of the others."""
    data = np.random.default_rng(0).integers(0, 99, shape)
    indices = np.random.default_rng(1).integers(-shape[axis], shape[axis], [min(n, 17) for n in shape])
    b = ModelBuilder()
    taken = b.node("GatherElements", b.constant(data), b.constant(indices), axis=axis)
    content = b.finish(b.node("Add", b.input("x", (1,), np.int64), taken), dtype=np.int64)
    assert "qnn.dynamic_gather" not in str(import_onnx(content))
    kept = data[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
    assert np.array_equal(run(content, np.array([1])), np.take_along_axis(kept, indices, axis) + 1)


@pytest.mark.parametrize("is_by_dimension", [False, True])
@pytest.mark.parametrize("is_node", [False, True])
def test_a_sparse_constant(is_by_dimension: bool, is_node: bool) -> None:
    """Its elements are at an index of all elements each, or at one of each dimension."""
    dense = np.zeros((4, 3), np.float32)
    dense[[0, 2, 3], [1, 0, 2]] = [2.0, -3.0, 0.5]
    found = np.argwhere(dense) if is_by_dimension else np.flatnonzero(dense)
    values, indices = dense[dense != 0], found.astype(np.int64)
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(values, "w"), numpy_helper.from_array(indices), list(dense.shape)
    )
    b = ModelBuilder()
    if is_node:
        b.node("Constant", output="w", sparse_value=sparse)
    model = ModelProto.FromString(b.finish(b.node("MatMul", b.input("x", (2, 4)), "w"), dtype=np.float32))
    if not is_node:
        model.graph.sparse_initializer.append(sparse)
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    assert_floats_within(run(model.SerializeToString(), x), x @ dense, "layer")


def test_a_bias_is_quantized_along_its_one_dimension() -> None:
    """Whatever axis the node names; without one it is 1."""
    b = ModelBuilder()
    bias = drawn((3,), np.int32)
    scales = np.array([0.1, 0.2, 0.4], np.float32)
    held = b.node("DequantizeLinear", b.constant(bias), b.constant(scales))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    found = run(b.finish(b.node("Add", b.input("x", x.shape), held), dtype=np.float32), x)
    np.testing.assert_array_equal(found, x + bias.astype(np.float32) * scales)


def test_infinite_values_of_a_constant_one_hot() -> None:
    """As in masks: they are chosen, not multiplied; an index from the end, and one outside."""
    b = ModelBuilder()
    values = np.array([-np.inf, 0.0], np.float32)
    hot = b.node("OneHot", b.constant(np.array([1, -1, 9])), b.constant(np.array(3)), b.constant(values))
    x = np.zeros((3, 3), np.float32)
    wanted = np.where(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]), np.float32(0), np.float32(-np.inf))
    np.testing.assert_array_equal(run(b.finish(b.node("Add", b.input("x", x.shape), hot), dtype=np.float32), x), wanted)


@pytest.mark.parametrize(
    ("number", "attributes", "reason"),
    [
        (1.0, {"keepdims": 2}, "attribute 'keepdims' must be 0 or 1, but is 2"),
        (np.nan, {}, "constant inputs must not hold NaN"),
    ],
)
def test_what_onnx_runtime_evaluates_otherwise_is_refused(
    number: float, attributes: dict[str, Any], reason: str
) -> None:
    b = ModelBuilder()
    largest = b.node("ReduceMax", b.constant(np.array([2.0, number], np.float32)), **attributes)
    with pytest.raises(ImportModelError) as raised:
        import_onnx(b.finish(b.node("Add", b.input("x", (1,)), largest), dtype=np.float32))
    assert reason in str(raised.value)
