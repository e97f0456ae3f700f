// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s

// A 1x1 convolution with stride 1 is a matrix product: images, rows and columns are one axis of 2 * 4 * 8 = 64 pixels.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [64, 2, 4], strides: [8, 4, 1]
// CHECK: qnn.role = "contraction", qnn.tiles = array<i64: 0, 0, 0, 0, 1, 0>
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [64, 1, 1, 16], strides: [16, 16, 16, 1]
// CHECK: qnn.role = "root", qnn.tiles = array<i64: {{[0-9]+}}, 1, 0, 0>
// CHECK-NOT: linalg.generic
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<2x4x8x8xui8>) -> tensor<2x4x8x16xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<16x1x1x8xi8>} : () -> tensor<16x1x1x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<2x4x8x8xui8>, tensor<16x1x1x8xi8>) -> tensor<2x4x8x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x4x8x16xi32>) -> tensor<2x4x8x16xui8>
  return %1 : tensor<2x4x8x16xui8>
}
