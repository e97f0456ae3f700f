// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all contractions share, on one of them.

func.func @contraction_c4(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op weight_scales must have 1 or 3 entries, but got 2}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 1.0, 1.0>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @contraction_c4_zero_points(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op weight_zero_points must have 1 or 3 entries, but got 2}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @contraction_c4_no_zero_points(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op weight_zero_points must have 1 or 3 entries, but got 0}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @contraction_c5(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @contraction_c5_weight(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op weight_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0, 128>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @contraction_c5_unsigned_weight(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xui8>) {
  // expected-error @+1 {{'qnn.conv2d' op weight_zero_points must be in [0, 255], but got -1}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: -1>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xui8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @contraction_c6(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<4xi32>) {
  // expected-error @+1 {{'qnn.conv2d' op bias must have 3 entries, but got 4}}
  %y = "qnn.conv2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<4xi32>) -> tensor<1x3x3x3xi32>
  return
}
