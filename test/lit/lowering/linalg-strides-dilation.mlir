// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s

// Stride and dilation are strides of the view: per output row 2 rows of 13 * 8 bytes, per output column 3 pixels of 8;
// per kernel row 3 rows, per kernel column 2 pixels.  Dilated taps do not lie side by side, so they stay axes.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [3, 3, 2, 3, 2, 4], strides: [208, 24, 312, 16, 4, 1]
// CHECK: linalg.generic {{.*}}, "reduction", "reduction", "reduction", "reduction"]}
// CHECK-SAME: qnn.role = "contraction", qnn.tiles = array<i64: 0, 0, 0, 0, 0, 1, 1, 1, 0>
func.func @main(%x: tensor<1x9x13x8xui8>) -> tensor<1x3x3x16xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<16x2x3x8xi8>} : () -> tensor<16x2x3x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 2, 3>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 3, 2>, groups = 1 : i64
  } : (tensor<1x9x13x8xui8>, tensor<16x2x3x8xi8>) -> tensor<1x3x3x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x3x3x16xi32>) -> tensor<1x3x3x16xui8>
  return %1 : tensor<1x3x3x16xui8>
}
