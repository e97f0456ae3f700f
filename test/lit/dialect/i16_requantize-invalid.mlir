// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @i16_requantize_c1(%acc: tensor<2x3xi64>) {
  // expected-error @+1 {{'qnn.i16_requantize' op weight_scales must have 1 or 3 entries, but got 2}}
  %y = "qnn.i16_requantize"(%acc) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.001, 0.002>, output_scale = 0.25 : f64,
    rounding = "fixed16_up"
  } : (tensor<2x3xi64>) -> tensor<2x3xi16>
  return
}

// -----

func.func @i16_requantize_c2(%acc: tensor<2x3xi64>) {
  // expected-error @+1 {{'qnn.i16_requantize' op output_min and output_max must be ordered and in [-32768, 32767], but got 5 and 4}}
  %y = "qnn.i16_requantize"(%acc) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_min = 5 : i64, output_max = 4 : i64,
    rounding = "fixed16_up"
  } : (tensor<2x3xi64>) -> tensor<2x3xi16>
  return
}

// -----

func.func @i16_requantize_c3(%acc: tensor<2x3xi64>) {
  // expected-error @+1 {{'qnn.i16_requantize' op input of fixed32_double must have element type i32, but got i64}}
  %y = "qnn.i16_requantize"(%acc) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, rounding = "fixed32_double"
  } : (tensor<2x3xi64>) -> tensor<2x3xi16>
  return
}

// -----

func.func @i16_requantize_c5(%acc: tensor<2x3xi64>) {
  // expected-error @+1 {{'qnn.i16_requantize' op output_zero_point must be in [-32768, 32767], but got 32768}}
  %y = "qnn.i16_requantize"(%acc) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = 32768 : i64, rounding = "f64_even"
  } : (tensor<2x3xi64>) -> tensor<2x3xi16>
  return
}

// -----

func.func @i16_requantize_c4(%acc: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.i16_requantize' op multipliers must be below 2^14, but got 16384.0}}
  %y = "qnn.i16_requantize"(%acc) {
    input_scale = 4096.0 : f64, output_scale = 0.25 : f64, rounding = "fixed32_double"
  } : (tensor<2x3xi32>) -> tensor<2x3xi16>
  return
}
