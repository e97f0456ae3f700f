// RUN: %qopt %s --qnn-sink-reshape --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-sink-reshape | filecheck %s

// CHECK-LABEL: func.func @channels_elsewhere(
// CHECK: qnn.reshape
// CHECK: qnn.requantize
func.func @channels_elsewhere(%arg0: tensor<1x2x2x2xui8>) -> tensor<2x4xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.reshape"(%1) {shape = array<i64: 2, 4>} : (tensor<1x2x2x2xi32>) -> tensor<2x4xi32>
  // expected-remark @+1 {{[sink-reshape] 'qnn.requantize' must rescale the channels of the contraction, which the reshape moves to other dimensions}}
  %3 = "qnn.requantize"(%2) {
    axis = 0 : i64, input_scale = 2.500000e-01 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 5.000000e-01 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up", weight_scales =
    array<f64: 5.000000e-01, 2.500000e-01>
  } : (tensor<2x4xi32>) -> tensor<2x4xui8>
  return %3 : tensor<2x4xui8>
}

// CHECK-LABEL: func.func @second_use(
// CHECK: qnn.reshape
// CHECK: qnn.clip
func.func @second_use(%arg0: tensor<1x2x2x2xui8>) -> (tensor<2x4xui8>, tensor<2x4xui8>) {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    weight_scales = array<f64: 5.000000e-01, 2.500000e-01>, padding = array<i64: 0,
    0, 0, 0>,
    output_scale = 5.000000e-01 :
    f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 5.000000e-01 : f64}}]
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x2x2x2xui8>
  %3 = "qnn.reshape"(%2) {shape = array<i64: 2, 4>} : (tensor<1x2x2x2xui8>) -> tensor<2x4xui8>
  // expected-remark @+1 {{[sink-reshape] 'qnn.clip' needs the result of 'qnn.reshape' alone, but it has 2 uses}}
  %4 = "qnn.clip"(%3) {max = 200 : i64, min = 12 : i64} : (tensor<2x4xui8>) -> tensor<2x4xui8>
  return %4, %3 : tensor<2x4xui8>, tensor<2x4xui8>
}

// What no contraction made stays where it is.

// CHECK-LABEL: func.func @no_contraction(
// CHECK: qnn.reshape
// CHECK-NEXT: {{.*}}qnn.clip
func.func @no_contraction(%arg0: tensor<1x2x2x2xui8>) -> tensor<2x4xui8> {
  %0 = "qnn.reshape"(%arg0) {shape = array<i64: 2, 4>} : (tensor<1x2x2x2xui8>) -> tensor<2x4xui8>
  %1 = "qnn.clip"(%0) {max = 200 : i64, min = 12 : i64} : (tensor<2x4xui8>) -> tensor<2x4xui8>
  return %1 : tensor<2x4xui8>
}
