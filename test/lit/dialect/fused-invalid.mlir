// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all fused ops share, on one of them: the epilogue as a whole, its order, the residual, attributes and arity.
// R6: nothing wider than 8 bits passes.

func.func @fused_c7(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op output_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 128 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c7_unsigned(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op output_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = -1 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xui8>
  return
}

// -----

func.func @fused_c8(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] must be one of activation, add, clamp, dequantize, lut, quantize, requantize, sum, but got 'relu'}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}, {relu}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c8_missing(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'clamp' must have attributes 'min' (an i64), 'max' (an i64)}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}, {clamp}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c8_one_missing(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[0] 'requantize' must have attribute 'rounding' (one of "fixed64_up", "fixed64_nearest", "fixed64_double", "fixed32_double", "f32_rne_zp_last", "f32_rne_zp_first", "f32_up_zp_first", "f32_nearest_zp_first")}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c8_unknown(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[0] 'requantize' has no attributes 'min', 'output_scale'; it has 'scale', 'zero_point', 'element', 'rounding', 'multiplier'}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", min = 0 : i64, output_scale = 1.0 : f64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c8_kind(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'clamp' min must be an i64, but got 0.000000e+00 : f64}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}, {clamp = {min = 0.0 : f64, max = 9 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c8_scale(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[0] 'requantize' scale must be an f64 in [2^-60, 2^30], but got 0.000000e+00 : f64}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.0 : f64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c8_element(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[0] 'requantize' element must be the type i8 or ui8, but got i32}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up", element = i32}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c9(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[0] 'clamp' must follow quantized values, but got accumulators}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{clamp = {min = 0 : i64, max = 9 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c9_f32(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'activation' must follow f32 values, but got quantized values}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}, {activation = {function = "silu"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c9_twice(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'requantize' must follow accumulators, but got quantized values}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}, {requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c9_unrounded(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue[1] 'clamp' must follow quantized values, but got f32 values}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{dequantize}, {clamp = {min = 0 : i64, max = 9 : i64}}, {quantize}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c10(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue must end with quantized values, but got f32 values}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{dequantize}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c10_scale(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue must end with the result's scale 0.25, but got 0.5}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.5 : f64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c10_zero_point(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue must end with the result's zero_point 5, but got 6}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", zero_point = 6 : i64}}, {clamp = {min = 0 : i64, max = 9 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c10_element(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue must end with the result's element i8, but got ui8}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up", element = ui8}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c11(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x4xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op residual shape must be [2, 3], but got [2, 4]}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}, {add = {residual_scale = 0.5 : f64, residual_zero_point = 3 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x4xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c11_without(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op without a residual no stage must read it, but got 'add'}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}, {add = {residual_scale = 0.5 : f64, residual_zero_point = 3 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c11_unread(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op residual must be read by one stage, but got none}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c11_twice(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op residual must be read by one stage, but got 'sum', 'add'}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{dequantize}, {sum = {residual_scale = 0.5 : f64, residual_zero_point = 3 : i64}}, {quantize}, {add = {residual_scale = 0.5 : f64, residual_zero_point = 3 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_c12(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xf32>) {
  // expected-error @+1 {{'qnn.fused_dense' op bias element type must be i32 where the first stage is 'requantize', but got f32}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_no_stages(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue must be a non-empty array of stages {name} or {name = {attributes}}, but got []}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = []
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_stage_without_attributes(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue must be a non-empty array of stages {name} or {name = {attributes}}, but got [{clamp = 0 : i64}]}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{clamp = 0 : i64}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_two_stages_in_one(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue must be a non-empty array of stages {name} or {name = {attributes}}, but got [{clamp = {}, lut = {}}]}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{clamp = {}, lut = {}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_stage_without_dictionary(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op epilogue must be a non-empty array of stages {name} or {name = {attributes}}, but got "requantize"}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = "requantize"
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_missing_attributes(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op must have attributes 'weight_scales' (a non-empty array<f64> of positive scales up to 2^30), 'output_zero_point' (an i64), 'epilogue' (a non-empty array of stages {name} or {name = {attributes}})}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, output_scale = 0.25 : f64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_unknown_attributes(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op has no attributes 'rounding', 'sum_scale'; it has 'input_scale', 'input_zero_point', 'weight_scales', 'weight_zero_points', 'output_scale', 'output_zero_point', 'epilogue'}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, rounding = "fixed64_up", sum_scale = 0.5 : f64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_r6_wide_result(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op result 'output' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xi32>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @fused_r6_wide_data(%data: tensor<2x4xi16>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<2x4xi16>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<2x4xi16>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_r6_wide_residual(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'residual' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xi32>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.25 : f64, zero_point = 5 : i64}}, {add = {residual_scale = 0.125 : f64, residual_zero_point = -7 : i64}}, {clamp = {min = 1 : i64, max = 100 : i64}}]
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}
