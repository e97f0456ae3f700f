// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @hardswish_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.hardswish' op output_scale must be greater than 0.00390625, but got 0.00390625}}
  %y = "qnn.hardswish"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, mode = "tflite"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}
