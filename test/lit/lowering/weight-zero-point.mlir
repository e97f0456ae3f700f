// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s

// Weights 255 around a zero point of 0 fit no two signed bytes.  What is left of the zero point after the shift to signed
// times the sum of the window is subtracted in the epilogue: a second contraction, with a column of ones.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: qnn.role = "contraction"
// CHECK: qnn.role = "sum"
// CHECK: qnn.role = "root"
// CHECK: %[[CORRECTION:.*]] = arith.muli
// CHECK: arith.subi %{{.*}}, %[[CORRECTION]] : i32
func.func @main(%x: tensor<1x1x4x4xui8>) -> tensor<1x1x4x2xui8> {
  %w0 = "qnn.constant"() {value = dense<[[[[0, 255, 255, 255]]], [[[7, 9, 7, 9]]]]> : tensor<2x1x1x4xui8>} : () -> tensor<2x1x1x4xui8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x4x4xui8>, tensor<2x1x1x4xui8>) -> tensor<1x1x4x2xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x1x4x2xi32>) -> tensor<1x1x4x2xui8>
  return %1 : tensor<1x1x4x2xui8>
}
