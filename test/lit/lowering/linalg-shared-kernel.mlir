// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s

// Weights, bias, multipliers and zero points are arguments: layers of one shape are one kernel, called twice.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-NOT: @kernel_1
// CHECK-LABEL: func.func @main(
// CHECK: call @kernel_0(
// CHECK: call @kernel_0(
// CHECK-NOT: call
func.func @main(%x: tensor<1x4x4x16xui8>) -> tensor<1x4x4x16xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<16x1x1x16xi8>} : () -> tensor<16x1x1x16xi8>
  %w1 = "qnn.constant"() {value = dense<5> : tensor<16x1x1x16xi8>} : () -> tensor<16x1x1x16xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x16xui8>, tensor<16x1x1x16xi8>) -> tensor<1x4x4x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.1 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x16xi32>) -> tensor<1x4x4x16xui8>
  %2 = "qnn.conv2d"(%1, %w1) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x16xui8>, tensor<16x1x1x16xi8>) -> tensor<1x4x4x16xi32>
  %3 = "qnn.requantize"(%2) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 3.1 : f64, output_zero_point = 9 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x16xi32>) -> tensor<1x4x4x16xui8>
  return %3 : tensor<1x4x4x16xui8>
}
