// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s

// A filter as wide as its input looks at whole rows: all taps are one run of 2 * 16 * 4 = 128 bytes, 32 K groups, and the
// convolution is a matrix product whose rows overlap by half.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [1, 32, 2, 16, 4], strides: [4096, 128, 64, 4, 1]
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [5, 32, 4], strides: [64, 4, 1]
// CHECK: linalg.generic {{.*}} ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME: qnn.role = "contraction", qnn.tiles = array<i64: 0, 0, 0, 0, 1, 0>
func.func @main(%x: tensor<1x10x16x4xui8>) -> tensor<1x9x1x32xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<32x2x16x4xi8>} : () -> tensor<32x2x16x4xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x10x16x4xui8>, tensor<32x2x16x4xi8>) -> tensor<1x9x1x32xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x9x1x32xi32>) -> tensor<1x9x1x32xui8>
  return %1 : tensor<1x9x1x32xui8>
}
