// RUN: %qopt %s --qnn-sink-reshape | filecheck %s

// CHECK-LABEL: func.func @requantize_by_channel(
// CHECK: %[[ACC:.*]] = "qnn.conv2d"
// CHECK-NEXT: %[[QUANTIZED:.*]] = "qnn.requantize"(%[[ACC]]) {axis = 3 : i64
// CHECK-NEXT: "qnn.reshape"(%[[QUANTIZED]]) {shape = array<i64: 4, 2>}
func.func @requantize_by_channel(%arg0: tensor<1x2x2x2xui8>) -> tensor<4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01,
    2.500000e-01>, weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.reshape"(%1) {shape = array<i64: 4, 2>} : (tensor<1x2x2x2xi32>) -> tensor<4x2xi32>
  %3 = "qnn.requantize"(%2) {
    axis = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 5.000000e-01 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up", weight_scales =
    array<f64: 5.000000e-01, 2.500000e-01>
  } : (tensor<4x2xi32>) -> tensor<4x2xui8>
  return %3 : tensor<4x2xui8>
}

// CHECK-LABEL: func.func @requantize_of_the_tensor(
// CHECK: %[[ACC:.*]] = "qnn.conv2d"
// CHECK-NEXT: %[[QUANTIZED:.*]] = "qnn.requantize"(%[[ACC]]) {axis = 3 : i64
// CHECK-NEXT: "qnn.reshape"(%[[QUANTIZED]]) {shape = array<i64: 8>}
func.func @requantize_of_the_tensor(%arg0: tensor<1x2x2x2xui8>) -> tensor<8xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 5.000000e-01>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.reshape"(%1) {shape = array<i64: 8>} : (tensor<1x2x2x2xi32>) -> tensor<8xi32>
  %3 = "qnn.requantize"(%2) {
    axis = 0 : i64, input_scale = 2.500000e-01 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 5.000000e-01 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up", weight_scales =
    array<f64: 5.000000e-01>
  } : (tensor<8xi32>) -> tensor<8xui8>
  return %3 : tensor<8xui8>
}

// CHECK-LABEL: func.func @clip_and_table(
// CHECK: %[[QUANTIZED:.*]] = "qnn.fused_conv2d"
// CHECK-NEXT: %[[CLIPPED:.*]] = "qnn.clip"(%[[QUANTIZED]])
// CHECK-NEXT: %[[TABLE:.*]] = "qnn.sigmoid"(%[[CLIPPED]])
// CHECK-NEXT: "qnn.reshape"(%[[TABLE]])
func.func @clip_and_table(%arg0: tensor<1x2x2x2xui8>) -> tensor<2x4xi8> {
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
  %4 = "qnn.clip"(%3) {max = 200 : i64, min = 12 : i64} : (tensor<2x4xui8>) -> tensor<2x4xui8>
  %5 = "qnn.sigmoid"(%4) {
    entries = "half_away_divide", input_scale = 5.000000e-01 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 3.906250e-03 : f64, output_zero_point = -128 : i64
  } : (tensor<2x4xui8>) -> tensor<2x4xi8>
  return %5 : tensor<2x4xi8>
}
