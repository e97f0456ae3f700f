"""How much a network computes."""

from qdialect.bench.throughput import multiply_accumulates
from qdialect.ir.context import parse

NETWORK = """
func.func @main(%image: tensor<1x4x5x6xui8>, %kernel: tensor<4x2x3x3xi8>, %left: tensor<7x2x4xui8>,
                %right: tensor<7x4x3xi8>) -> (tensor<1x5x7x4xi32>, tensor<7x2x3xi32>) {
  %0 = "qnn.conv_transpose2d"(%image, %kernel) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, output_padding = array<i64: 0, 0>,
    padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64
  } : (tensor<1x4x5x6xui8>, tensor<4x2x3x3xi8>) -> tensor<1x5x7x4xi32>
  %1 = "qnn.matmul"(%left, %right) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<7x2x4xui8>, tensor<7x4x3xi8>) -> tensor<7x2x3xi32>
  return %0, %1 : tensor<1x5x7x4xi32>, tensor<7x2x3xi32>
}
"""


def test_transposed_convolutions_and_products_of_tensors_are_counted() -> None:
    # Each of 4x5 pixels meets the kernel; each of 7x2x3 sums has four products.
    assert multiply_accumulates(parse(NETWORK)) == 4 * 5 * (4 * 2 * 3 * 3) + 7 * 2 * 3 * 4


def test_products_of_words_are_counted() -> None:
    text = """
      func.func @main(%rows: tensor<3x5xi16>) -> tensor<3x7xi64> {
        %weight = arith.constant dense<2> : tensor<7x5xi8>
        %sums = "qnn.i16_dense"(%rows, %weight) : (tensor<3x5xi16>, tensor<7x5xi8>) -> tensor<3x7xi64>
        return %sums : tensor<3x7xi64>
      }"""
    assert multiply_accumulates(parse(text)) == 3 * 7 * 5
