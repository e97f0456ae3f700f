// RUN: %roundtrip

// Bias or none, per-channel parameters (N2), asymmetric padding, dilation, groups, depthwise.

// CHECK-LABEL: func.func @plain(
// CHECK: "qnn.conv2d"(%arg0, %arg1) {dilation = array<i64: 1, 1>, groups = 1 : i64,
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = 128 : i64, padding = array<i64: 0, 0, 0, 0>,
// CHECK-SAME: strides = array<i64: 1, 1>, weight_scales = array<f64: 2.500000e-01>,
// CHECK-SAME: weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
func.func @plain(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32> {
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return %y : tensor<1x3x3x3xi32>
}

// CHECK-LABEL: func.func @with_bias(
func.func @with_bias(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) -> tensor<1x3x3x3xi32> {
  %y = "qnn.conv2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi32>
  return %y : tensor<1x3x3x3xi32>
}

// CHECK-LABEL: func.func @per_channel(
func.func @per_channel(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32> {
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.5, 0.25, 0.125>,
    weight_zero_points = array<i64: 1, -2, 3>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return %y : tensor<1x3x3x3xi32>
}

// CHECK-LABEL: func.func @window(
func.func @window(%data: tensor<2x9x8x2xui8>, %weight: tensor<3x2x2x2xi8>) -> tensor<2x5x4x3xi32> {
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    strides = array<i64: 2, 3>, padding = array<i64: 1, 2, 3, 4>, dilation = array<i64: 3, 2>
  } : (tensor<2x9x8x2xui8>, tensor<3x2x2x2xi8>) -> tensor<2x5x4x3xi32>
  return %y : tensor<2x5x4x3xi32>
}

// CHECK-LABEL: func.func @depthwise(
func.func @depthwise(%data: tensor<1x5x5x4xi8>, %weight: tensor<4x3x3x1xi8>) -> tensor<1x3x3x4xi32> {
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, weight_scales = array<f64: 0.25>, groups = 4 : i64
  } : (tensor<1x5x5x4xi8>, tensor<4x3x3x1xi8>) -> tensor<1x3x3x4xi32>
  return %y : tensor<1x3x3x4xi32>
}

// CHECK-LABEL: func.func @grouped(
func.func @grouped(%data: tensor<1x4x4x4xui8>, %weight: tensor<6x2x2x2xui8>) -> tensor<1x3x3x6xi32> {
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 255>, groups = 2 : i64
  } : (tensor<1x4x4x4xui8>, tensor<6x2x2x2xui8>) -> tensor<1x3x3x6xi32>
  return %y : tensor<1x3x3x6xi32>
}

// CHECK-LABEL: func.func @kernel_fills_input(
func.func @kernel_fills_input(%data: tensor<1x2x2x2xui8>, %weight: tensor<3x2x2x2xi8>) -> tensor<1x1x1x3xi32> {
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<1x2x2x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x1x1x3xi32>
  return %y : tensor<1x1x1x3xi32>
}
