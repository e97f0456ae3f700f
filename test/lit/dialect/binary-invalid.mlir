// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all ops of two tensors share, on one of them.

func.func @binary_c1(%lhs: tensor<2x3xi8>, %rhs: tensor<2x4xi8>) {
  // expected-error @+1 {{'qnn.add' op operand shapes must broadcast, but got [2, 3] and [2, 4]}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<2x3xi8>, tensor<2x4xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @binary_c2(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op lhs_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 128 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @binary_c2_rhs(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.add' op rhs_zero_point must be in [0, 255], but got -4}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<2x3xi8>, tensor<2x3xui8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @binary_c2_output(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op output_zero_point must be in [-128, 127], but got -129}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = -129 : i64, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @binary_c3(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op output_min and output_max must be ordered and in [-128, 127], but got 10 and 9}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = 10 : i64, output_max = 9 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @binary_c3_range(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op output_min and output_max must be ordered and in [0, 255], but got -128 and 127}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xui8>
  return
}
