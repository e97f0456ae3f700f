// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all functions of one 8-bit tensor share, on one of them.

func.func @eight_bit_function_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op input_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @eight_bit_function_c1_unsigned_input(%input: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.relu' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xui8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @eight_bit_function_c1_output(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op output_zero_point must be in [-128, 127], but got -129}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -129 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @eight_bit_function_c1_unsigned_output(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op output_zero_point must be in [0, 255], but got 256}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = 256 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return
}
