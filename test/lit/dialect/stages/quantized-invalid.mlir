// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all stages share that leave quantized values.

func.func @quantized_c1(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[0] 'requantize' zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", zero_point = 128 : i64}},
      {add = {residual_scale = 0.5 : f64, residual_zero_point = 3 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantized_c1_element(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[0] 'requantize' zero_point must be in [0, 255], but got -1}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", zero_point = -1 : i64, element = ui8}},
      {lut = {table = dense<0> : tensor<256xi8>}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantized_c1_quantize(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'quantize' zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{dequantize}, {quantize = {zero_point = 128 : i64}}, {lut = {table = dense<0> : tensor<256xi8>}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantized_c1_add(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'add' zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}},
      {add = {residual_scale = 0.5 : f64, residual_zero_point = 3 : i64, zero_point = 128 : i64}},
      {lut = {table = dense<0> : tensor<256xi8>}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}
