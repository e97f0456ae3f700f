// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @requantize_c1(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op axis must be in [0, 2), but got 2}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 2 : i64,
    rounding = "fixed64_up"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c1_negative(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op axis must be in [0, 2), but got -1}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = -1 : i64,
    rounding = "fixed64_up"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c2(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op weight_scales must have 1 or 2 entries, but got 3}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0, 1.0, 1.0>, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, rounding = "fixed64_up"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c2_zero_points(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op input_zero_points must have 1 or 2 entries, but got 0}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, input_zero_points = array<i64>, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    rounding = "fixed64_up"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c3(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op output_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = 128 : i64, rounding = "fixed64_up"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c3_unsigned(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op output_zero_point must be in [0, 255], but got -128}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = -128 : i64, rounding = "fixed64_up"
  } : (tensor<2x3xi32>) -> tensor<2x3xui8>
  return
}
