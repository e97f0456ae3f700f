"""Products with parameters known at run time, against the formulas in NumPy."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import qdialect
from qdialect.reference import interpreter

Array = NDArray[Any]
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("by_row", [False, True])
def test_a_dense_product(by_row: bool) -> None:
    rows = "2x3x1x" if by_row else ""
    module = qdialect.parse(f"""
    func.func @main(%x: tensor<2x3x5xui8>, %s: tensor<{rows}f32>, %z: tensor<{rows}ui8>, %b: tensor<4xf32>)
        -> tensor<2x3x4xf32> {{
      %w = "qnn.constant"() {{value = dense<[[1, -2, 3, -4, 5], [127, -128, 0, 9, 8], [3, 3, 3, 3, 3], [0, 0, 0, 0, 1]]>
        : tensor<4x5xi8>}} : () -> tensor<4x5xi8>
      %y = "qnn.dynamic_dense"(%x, %w, %s, %z, %b) {{
        weight_scales = array<f64: 0.1, 0.2, 0.3, 0.4>, weight_zero_points = array<i64: 1, 0, -1, 2>
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
    factor = scale * np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    (found,) = interpreter.run(module, [x, scale, point, bias])
    np.testing.assert_array_equal(found, acc.astype(np.float32) * factor + bias)


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
