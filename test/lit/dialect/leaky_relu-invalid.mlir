// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @leaky_relu_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.leaky_relu' op alpha must be in [0, 1] in mode "fixed", but got 1.5}}
  %y = "qnn.leaky_relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    alpha = 1.5 : f64, mode = "fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @leaky_relu_c2_negative(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.leaky_relu' op alpha must be in [0, 1] in mode "fixed", but got -0.25}}
  %y = "qnn.leaky_relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    alpha = -0.25 : f64, mode = "fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @leaky_relu_c2_tflite(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.leaky_relu' op alpha must be in [0, 1073741824] in mode "tflite", but got -0.25}}
  %y = "qnn.leaky_relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    alpha = -0.25 : f64, mode = "tflite"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}
