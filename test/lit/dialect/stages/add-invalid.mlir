// RUN: %qopt %s --split-input-file --verify-diagnostics

// The addition of a residual to quantized values.

func.func @add_c2(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'add' residual_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}},
      {add = {residual_scale = 0.5 : f64, residual_zero_point = 128 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_c2_unsigned(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'add' residual_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}},
      {add = {residual_scale = 0.5 : f64, residual_zero_point = -1 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xui8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_scale(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'add' residual_scale must be an f64 in [2^-60, 2^30], but got 0.000000e+00 : f64}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}},
      {add = {residual_scale = 0.0 : f64, residual_zero_point = 3 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_arithmetic(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'add' arithmetic must be one of "requantize_each", "shifted_fixed", "shifted_single", "shifted_double", "float_once", "fixed_once", "f32_divide", "f32_reciprocal", "f32_reciprocal_f32", but got "exact"}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}},
      {add = {residual_scale = 0.5 : f64, residual_zero_point = 3 : i64, arithmetic = "exact"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}
