"""Products with parameters known at run time, against the formulas in NumPy."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import qdialect
from qdialect.arithmetic.activations import ACTIVATIONS, Activation
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("by_row", [False, True])
def test_a_dense_product(by_row: bool, is_last: bool) -> None:
    rows = "2x3x1x" if by_row else ""
    module = qdialect.parse(f"""
    func.func @main(%x: tensor<2x3x5xui8>, %s: tensor<{rows}f32>, %z: tensor<{rows}ui8>, %b: tensor<4xf32>)
        -> tensor<2x3x4xf32> {{
      %w = "qnn.constant"() {{value = dense<[[1, -2, 3, -4, 5], [127, -128, 0, 9, 8], [3, 3, 3, 3, 3], [0, 0, 0, 0, 1]]>
        : tensor<4x5xi8>}} : () -> tensor<4x5xi8>
      %y = "qnn.dynamic_dense"(%x, %w, %s, %z, %b) {{
        weight_scales = array<f64: 0.1, 0.2, 0.3, 0.4>, weight_zero_points = array<i64: 1, 0, -1, 2>,
        scale_last = {str(is_last).lower()}
      }} : (tensor<2x3x5xui8>, tensor<4x5xi8>, tensor<{rows}f32>, tensor<{rows}ui8>, tensor<4xf32>)
        -> tensor<2x3x4xf32>
      return %y : tensor<2x3x4xf32>
    }}""")
    shape = (2, 3, 1) if by_row else ()
    x = RNG.integers(0, 256, (2, 3, 5)).astype(np.uint8)
    scale, point = RNG.uniform(0.01, 0.1, shape), RNG.integers(0, 256, shape)
    scale, point = np.asarray(scale, np.float32), np.asarray(point, np.uint8)
    bias = RNG.normal(size=4).astype(np.float32)
    weight = np.array([[1, -2, 3, -4, 5], [127, -128, 0, 9, 8], [3] * 5, [0, 0, 0, 0, 1]])
    acc = (x.astype(np.int64) - point) @ (weight - np.array([[1], [0], [-1], [2]])).T
    weight_scales = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    by_product = acc.astype(np.float32) * (scale * weight_scales) + bias
    in_turn = acc.astype(np.float32) * weight_scales * scale + bias
    assert not np.array_equal(by_product, in_turn)
    (found,) = interpreter.run(module, [x, scale, point, bias])
    np.testing.assert_array_equal(found, in_turn if is_last else by_product)


def test_a_convolution_without_bias() -> None:
    module = qdialect.parse("""
    func.func @main(%x: tensor<1x3x3x1xi8>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<1x2x2x1xf32> {
      %w = "qnn.constant"() {value = dense<[[[[1], [-2]], [[3], [4]]]]> : tensor<1x2x2x1xi8>} : () -> tensor<1x2x2x1xi8>
      %y = "qnn.dynamic_conv2d"(%x, %w, %s, %z) {weight_scales = array<f64: 0.5>}
        : (tensor<1x3x3x1xi8>, tensor<1x2x2x1xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2x2x1xf32>
      return %y : tensor<1x2x2x1xf32>
    }""")
    x, scale, point = RNG.integers(-128, 128, (3, 3)).astype(np.int8), np.float32(0.3), np.int8(-7)
    real = x.astype(np.int64) + 7
    acc = real[:-1, :-1] - 2 * real[:-1, 1:] + 3 * real[1:, :-1] + 4 * real[1:, 1:]
    (found,) = interpreter.run(module, [x.reshape(1, 3, 3, 1), np.array(scale), np.array(point)])
    np.testing.assert_array_equal(found[0, :, :, 0], acc.astype(np.float32) * (scale * np.float32(0.5)))


@pytest.mark.parametrize("scale", [0.02, np.nan, np.inf])
def test_activations_of_a_product(scale: float) -> None:
    """Every function of one product, by its float operations, with the same bits in compiled code."""
    functions = [one for one in Activation if one is not Activation.NONE]
    alphas = [0.25 if one.has_alpha else 0.0 for one in functions]
    ops = "\n".join(
        f"""%y{i} = "qnn.dynamic_dense"(%x, %w, %s, %z, %b) {{activation = "{one}", alpha = {alpha} : f64}}
        : (tensor<3x5xi8>, tensor<4x5xi8>, tensor<f32>, tensor<i8>, tensor<4xf32>) -> tensor<3x4xf32>"""
        for i, (one, alpha) in enumerate(zip(functions, alphas, strict=True))
    )
    types = ", ".join(["tensor<3x4xf32>"] * len(functions))
    names = ", ".join(f"%y{i}" for i in range(len(functions)))
    module = qdialect.parse(f"""
    func.func @main(%x: tensor<3x5xi8>, %s: tensor<f32>, %z: tensor<i8>) -> ({types}) {{
      %w = "qnn.constant"() {{value = dense<[[1, -2, 3, -4, 5], [27, -28, 0, 9, 8], [3, 3, 3, 3, 3], [0, 0, 0, 0, 1]]>
        : tensor<4x5xi8>}} : () -> tensor<4x5xi8>
      %b = "qnn.constant"() {{value = dense<[0.5, -1.0, 0.0, 2.0]> : tensor<4xf32>}} : () -> tensor<4xf32>
      {ops}
      return {names} : {types}
    }}""")
    inputs = [RNG.integers(-9, 9, (3, 5)).astype(np.int8), np.array(scale, np.float32), np.array(3, np.int8)]
    weight = np.array([[1, -2, 3, -4, 5], [27, -28, 0, 9, 8], [3] * 5, [0, 0, 0, 0, 1]])
    with np.errstate(all="ignore"):
        sums = ((inputs[0].astype(np.int64) - 3) @ weight.T).astype(np.float32)
        values = sums * np.float32(scale) + np.array([0.5, -1, 0, 2], np.float32)
        wanted = [ACTIVATIONS[one].in_kernel(values, alpha=alpha) for one, alpha in zip(functions, alphas, strict=True)]
        np.testing.assert_array_equal(wanted[0], np.maximum(values, 0))
    interpreted, compiled = interpreter.run(module, inputs), compile_module(module)(*inputs)
    for exact, found, same in zip(wanted, interpreted, compiled, strict=True):
        np.testing.assert_array_equal(found, exact)
        np.testing.assert_array_equal(same, exact)
