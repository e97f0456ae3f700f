// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @fused_dense_c1(%data: tensor<2x4xui8>, %weight: tensor<3x5xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op weight depth must be 4, but got 5}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x5xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c4(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op weight_scales must have 1 or 3 entries, but got 2}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 1.0, 1.0>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c4_zero_points(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op weight_zero_points must have 1 or 3 entries, but got 2}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c4_no_zero_points(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op weight_zero_points must have 1 or 3 entries, but got 0}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c5(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c5_weight(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op weight_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0, 128>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c5_unsigned_weight(%data: tensor<2x4xui8>, %weight: tensor<3x4xui8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op weight_zero_points must be in [0, 255], but got -1}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: -1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xui8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c6(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<4xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op bias must have 3 entries, but got 4}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<4xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_bias_rank(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<1x3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'bias' must be a 1-d non-empty static tensor of i32 or f32, but got tensor<1x3xi32>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<1x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_bias_type(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi64>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'bias' must be a 1-d non-empty static tensor of i32 or f32, but got tensor<3xi64>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c7(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op output_min, output_zero_point and output_max must lie in [-128, 127] with min <= max, but got -128, 5 and 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 128 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 128 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c7_empty(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op output_min, output_zero_point and output_max must lie in [-128, 127] with min <= max, but got 10, 5 and 9}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = 10 : i64, output_max = 9 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = 10 : i64, sum_max = 9 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c7_zero_point(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op output_min, output_zero_point and output_max must lie in [-128, 127] with min <= max, but got -128, 200 and 127}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 200 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 200 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64,
    table_zero_point = 200 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c7_signedness(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op output_min, output_zero_point and output_max must lie in [0, 255] with min <= max, but got -128, 5 and 127}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xui8>
  return
}

// -----

func.func @fused_dense_c7_straddles(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op output_min, output_zero_point and output_max must lie in [-128, 127] or [0, 255] with min <= max, but got -1, 0 and 255}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 0 : i64,
    output_min = -1 : i64, output_max = 255 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 0 : i64,
    sum_min = -1 : i64, sum_max = 255 : i64, table = dense<0> : tensor<256xi8>, table_scale = 0.0078125 : f64,
    table_zero_point = -128 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c8(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op sum_min, sum_zero_point and sum_max must lie in [-128, 127] with min <= max, but got 1, 1 and 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.125 : f64, residual_zero_point = -7 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.5 : f64, sum_zero_point = 1 : i64,
    sum_min = 1 : i64, sum_max = 128 : i64, table = unit, table_scale = 0.5 : f64, table_zero_point = 1 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c8_straddles(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op sum_min, sum_zero_point and sum_max must lie in [-128, 127] or [0, 255] with min <= max, but got -1, 1 and 255}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.125 : f64, residual_zero_point = -7 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.5 : f64, sum_zero_point = 1 : i64,
    sum_min = -1 : i64, sum_max = 255 : i64, table = dense<0> : tensor<256xi8>, table_scale = 0.0078125 : f64,
    table_zero_point = -128 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c9(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x4xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op residual shape must be [2, 3], but got [2, 4]}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.125 : f64, residual_zero_point = -7 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.5 : f64, sum_zero_point = 1 : i64,
    sum_min = 1 : i64, sum_max = 100 : i64, table = unit, table_scale = 0.5 : f64, table_zero_point = 1 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x4xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c9_scale(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op residual_scale must be an f64 in [2^-60, 2^30], but got 0.0}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = -7 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.5 : f64, sum_zero_point = 1 : i64,
    sum_min = 1 : i64, sum_max = 100 : i64, table = unit, table_scale = 0.5 : f64, table_zero_point = 1 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c9_zero_point(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op residual_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.125 : f64, residual_zero_point = 128 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.5 : f64, sum_zero_point = 1 : i64,
    sum_min = 1 : i64, sum_max = 100 : i64, table = unit, table_scale = 0.5 : f64, table_zero_point = 1 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c10(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op sum_scale must repeat output_scale (0.25) where the stage is absent, but got 0.5}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.5 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c10_zero_point(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op sum_zero_point must repeat output_zero_point (5) where the stage is absent, but got 6}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 6 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c10_min(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op sum_min must repeat output_min (-128) where the stage is absent, but got 0}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = 0 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c10_max(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op sum_max must repeat output_max (127) where the stage is absent, but got 126}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 126 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c10_table(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op table_scale must repeat sum_scale (0.25) where the stage is absent, but got 0.5}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.5 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c10_table_zero_point(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op table_zero_point must repeat sum_zero_point (5) where the stage is absent, but got 6}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 6 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c10_table_range(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op table_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = dense<0> : tensor<256xi8>, table_scale = 0.0078125 : f64,
    table_zero_point = 128 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c11(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op activation must be none where real_scaling is none, but got tanh}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "tanh", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c11_place(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op residual_place must be left or right where real_scaling is none, but got before_rounding}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "before_rounding",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c11_bias(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xf32>) {
  // expected-error @+1 {{'qnn.fused_dense' op bias element type must be i32 where real_scaling is none, but got f32}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c11_rounding(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op rounding must be a float flavour where real_scaling is divide, but got fixed64_up}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "divide", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c11_alpha(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op activation_alpha must be 0 for activation none, but got 0.5}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.5 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_c11_large_alpha(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op activation_alpha must be in [-2^30, 2^30], but got 2147483648.0}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "f32_rne_zp_last", multiplier = "f64",
    real_scaling = "divide", activation = "elu", activation_alpha = 2147483648.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_table_size(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op table must be a dense tensor<256xi8> or unit, but got dense<0> : tensor<255xi8>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = dense<0> : tensor<255xi8>, table_scale = 0.25 : f64,
    table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_table_resource(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op table must be a dense tensor<256xi8> or unit, but got dense_resource<blob> : tensor<256xi8>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = dense_resource<blob> : tensor<256xi8>,
    table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_sum_arithmetic(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op sum_arithmetic must be one of "requantize_each", "shifted_fixed", "shifted_single", "shifted_double", "float_once", "fixed_once", "real_divide", "real_reciprocal", but got "exact"}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "exact",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

// R6: what a fused kernel reads and writes is 8-bit.
func.func @fused_dense_r6_wide_result(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op result 'output' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xi32>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi32>
  return
}

// -----

// R6: what a fused kernel reads and writes is 8-bit.
func.func @fused_dense_r6_wide_data(%data: tensor<2x4xi16>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<2x4xi16>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xi16>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

// R6: what a fused kernel reads and writes is 8-bit.
func.func @fused_dense_r6_wide_residual(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'residual' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xi32>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.125 : f64, residual_zero_point = -7 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.5 : f64, sum_zero_point = 1 : i64,
    sum_min = 1 : i64, sum_max = 100 : i64, table = unit, table_scale = 0.5 : f64, table_zero_point = 1 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_too_few_operands(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.fused_dense' op must have 3 or 4 operands, but got 2}}
  %y = "qnn.fused_dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_too_many_operands(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op must have 3 or 4 operands, but got 5}}
  %y = "qnn.fused_dense"(%data, %weight, %bias, %bias, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_no_result(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op must have 1 result, but got 0}}
  "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> ()
  return
}

// -----

func.func @fused_dense_two_results(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op must have 1 result, but got 2}}
  %y:2 = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @fused_dense_missing_attribute(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op must have attribute 'sum_max' (an i64)}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_unknown_attribute(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op has no attribute 'bogus'; it has 'input_scale', 'input_zero_point', 'weight_scales', 'weight_zero_points', 'output_scale', 'output_zero_point', 'output_min', 'output_max', 'rounding', 'multiplier', 'real_scaling', 'activation', 'activation_alpha', 'residual_place', 'residual_scale', 'residual_zero_point', 'sum_arithmetic', 'sum_rounding', 'sum_multiplier', 'sum_scale', 'sum_zero_point', 'sum_min', 'sum_max', 'table', 'table_scale', 'table_zero_point'}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64,
    bogus = 1 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_attribute_kind(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op sum_max must be an i64, but got 127 : i8}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i8, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_memref(%data: memref<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got memref<2x4xui8>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (memref<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_vector(%data: vector<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got vector<2x4xui8>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (vector<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_unranked(%data: tensor<*xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<*xui8>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<*xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_dynamic_shape(%data: tensor<?x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<?x4xui8>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<?x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_no_elements(%data: tensor<0x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<0x4xui8>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<0x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_element_type(%data: tensor<2x4xf64>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<2x4xf64>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xf64>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_encoding(%data: tensor<2x4xui8, "encoding">, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x4xui8, "encoding">}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8, "encoding">, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_too_large(%data: tensor<2147483648x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op operand 'data' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x4xui8>}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2147483648x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @fused_dense_result_shape(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_dense' op result shape must be 2x3, but got 2x4}}
  %y = "qnn.fused_dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi32>) -> tensor<2x4xi8>
  return
}
