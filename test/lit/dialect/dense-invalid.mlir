// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @dense_c1(%data: tensor<2x4xui8>, %weight: tensor<3x5xi8>) {
  // expected-error @+1 {{'qnn.dense' op weight depth must be 4, but got 5}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<2x4xui8>, tensor<3x5xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_c1_scalar(%data: tensor<ui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op data must have at least 1 dimension, but got 0}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<ui8>, tensor<3x4xi8>) -> tensor<3xi32>
  return
}
