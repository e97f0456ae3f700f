// RUN: %roundtrip

// Bias or none, per-channel parameters, data of one to three dimensions.

// CHECK-LABEL: func.func @plain(
// CHECK: "qnn.dense"(%arg0, %arg1) {input_scale = 5.000000e-01 : f64, input_zero_point = 128 : i64,
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>, weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
func.func @plain(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) -> tensor<2x3xi32> {
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

// CHECK-LABEL: func.func @with_bias(
func.func @with_bias(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) -> tensor<2x3xi32> {
  %y = "qnn.dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

// CHECK-LABEL: func.func @per_channel(
func.func @per_channel(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) -> tensor<2x3xi32> {
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.5, 0.25, 0.125>,
    weight_zero_points = array<i64: 1, -2, 3>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

// CHECK-LABEL: func.func @vector(
func.func @vector(%data: tensor<4xi8>, %weight: tensor<3x4xui8>) -> tensor<3xi32> {
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = -128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 255>
  } : (tensor<4xi8>, tensor<3x4xui8>) -> tensor<3xi32>
  return %y : tensor<3xi32>
}

// CHECK-LABEL: func.func @batches(
func.func @batches(%data: tensor<5x2x4xui8>, %weight: tensor<3x4xi8>) -> tensor<5x2x3xi32> {
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<5x2x4xui8>, tensor<3x4xi8>) -> tensor<5x2x3xi32>
  return %y : tensor<5x2x3xi32>
}
