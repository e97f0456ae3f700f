// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all reductions to another quantization share, on one of them.

func.func @rescaled_reduction_c1(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.sum' op axes must be distinct, ascending and in [0, 4), but got [1, 1]}}
  %y = "qnn.sum"(%input) {
    axes = array<i64: 1, 1>, input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -4 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @rescaled_reduction_c1_none(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.sum' op axes must be distinct, ascending and in [0, 4), but got []}}
  %y = "qnn.sum"(%input) {
    axes = array<i64>, input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -4 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @rescaled_reduction_c2(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.sum' op input_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.sum"(%input) {
    axes = array<i64: 1, 2>, input_scale = 0.5 : f64, input_zero_point = 128 : i64, output_scale = 0.25 : f64,
    output_zero_point = -4 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @rescaled_reduction_c2_output(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.sum' op output_zero_point must be in [0, 255], but got -4}}
  %y = "qnn.sum"(%input) {
    axes = array<i64: 1, 2>, input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -4 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xui8>
  return
}
