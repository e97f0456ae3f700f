// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @matmul_c1(%data: tensor<4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op data must have at least 2 dimensions, but got 1}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c1_weight(%data: tensor<2x4xui8>, %weight: tensor<4xi8>) {
  // expected-error @+1 {{'qnn.matmul' op weight must have at least 2 dimensions, but got 1}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<2x4xui8>, tensor<4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c2(%data: tensor<2x4xui8>, %weight: tensor<5x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op weight depth must be 4, but got 5}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<2x4xui8>, tensor<5x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c3(%data: tensor<2x2x4xui8>, %weight: tensor<3x4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op leading dimensions must broadcast, but got [2] and [3]}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<2x2x4xui8>, tensor<3x4x3xi8>) -> tensor<2x3xi32>
  return
}
