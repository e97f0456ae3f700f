// RUN: %qopt %s --qnn-trim-taps --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-trim-taps | filecheck %s

// Covers R8: taps that meet the image stay, and those of weights that are known at run time.

// The last row of taps meets the first row of the image, at the last output alone.

// CHECK-LABEL: func.func @all_meet_the_image(
// CHECK: padding = array<i64: 3, 3, 3, 3>
// CHECK-SAME: tensor<1x3x3x2xi8>
func.func @all_meet_the_image(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x1xi32> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<1x3x3x2xi8>} : () -> tensor<1x3x3x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 3, 3>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 3, 3, 3, 3>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<1x3x3x2xi8>) -> tensor<1x4x4x1xi32>
  return %1 : tensor<1x4x4x1xi32>
}

// CHECK-LABEL: func.func @run_time_weights(
// CHECK: padding = array<i64: 1, 1, 1, 1>
func.func @run_time_weights(%arg0: tensor<1x1x1x2xui8>, %arg1: tensor<1x3x3x2xi8>) -> tensor<1x1x1x1xi32> {
  // expected-remark @+1 {{[trim-taps] 'qnn.conv2d' taps that meet padding alone must be constant}}
  %0 = "qnn.conv2d"(%arg0, %arg1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<1x3x3x2xi8>) -> tensor<1x1x1x1xi32>
  return %0 : tensor<1x1x1x1xi32>
}
