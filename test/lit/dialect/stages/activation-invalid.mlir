// RUN: %qopt %s --split-input-file --verify-diagnostics

// Functions of f32 values.

func.func @activation_c1(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'activation' alpha must be 0 for function tanh, but got 0.5}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{dequantize}, {activation = {function = "tanh", alpha = 0.5 : f64}}, {quantize}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @activation_c2(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'activation' alpha must be in [-2^30, 2^30], but got 2147483648.0}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{dequantize}, {activation = {function = "elu", alpha = 2147483648.0 : f64}}, {quantize}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @activation_function(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'activation' function must be one of "leaky_relu", "elu", "hardswish", "hardsigmoid", "sigmoid", "silu", "tanh", "gelu", "gelu_tanh", but got "none"}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{dequantize}, {activation = {function = "none"}}, {quantize}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}
