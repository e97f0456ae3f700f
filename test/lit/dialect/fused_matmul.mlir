// RUN: %roundtrip

// Every combination of the stages: clamp, table, residual sum. Covers R11: every scale and zero point is on the op.

// CHECK-LABEL: func.func @requantize_only(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2) {activation = "none", activation_alpha = 0.000000e+00 : f64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, multiplier = "f64", output_max = 127 : i64,
// CHECK-SAME: output_min = -128 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: residual_scale = 0.000000e+00 : f64, residual_zero_point = 0 : i64, rounding = "fixed64_up",
// CHECK-SAME: sum_arithmetic = "requantize_each", sum_max = 127 : i64, sum_min = -128 : i64,
// CHECK-SAME: sum_multiplier = "f64", sum_rounding = "fixed64_up", sum_scale = 2.500000e-01 : f64,
// CHECK-SAME: sum_zero_point = 5 : i64, table, table_scale = 2.500000e-01 : f64, table_zero_point = 5 : i64,
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>, weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
func.func @requantize_only(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @clamped(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2) {activation = "none", activation_alpha = 0.000000e+00 : f64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, multiplier = "f64", output_max = 29 : i64, output_min = 5 : i64,
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: residual_scale = 0.000000e+00 : f64, residual_zero_point = 0 : i64, rounding = "fixed32_double",
// CHECK-SAME: sum_arithmetic = "requantize_each", sum_max = 29 : i64, sum_min = 5 : i64,
// CHECK-SAME: sum_multiplier = "f64", sum_rounding = "fixed64_up", sum_scale = 2.500000e-01 : f64,
// CHECK-SAME: sum_zero_point = 5 : i64, table, table_scale = 2.500000e-01 : f64, table_zero_point = 5 : i64,
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>, weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
func.func @clamped(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = 5 : i64, output_max = 29 : i64, rounding = "fixed32_double", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = 5 : i64, sum_max = 29 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @table(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2) {activation = "none", activation_alpha = 0.000000e+00 : f64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, multiplier = "f64", output_max = 127 : i64,
// CHECK-SAME: output_min = -128 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: residual_scale = 0.000000e+00 : f64, residual_zero_point = 0 : i64, rounding = "fixed64_up",
// CHECK-SAME: sum_arithmetic = "requantize_each", sum_max = 127 : i64, sum_min = -128 : i64,
// CHECK-SAME: sum_multiplier = "f64", sum_rounding = "fixed64_up", sum_scale = 2.500000e-01 : f64,
// CHECK-SAME: sum_zero_point = 5 : i64, table = dense<0> : tensor<256xi8>, table_scale = 7.812500e-03 : f64,
// CHECK-SAME: table_zero_point = -128 : i64, weight_scales = array<f64: 2.500000e-01>,
// CHECK-SAME: weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
func.func @table(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = dense<0> : tensor<256xi8>, table_scale = 0.0078125 : f64,
    table_zero_point = -128 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @table_to_unsigned(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2) {activation = "none", activation_alpha = 0.000000e+00 : f64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, multiplier = "f64", output_max = 127 : i64,
// CHECK-SAME: output_min = -128 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: residual_scale = 0.000000e+00 : f64, residual_zero_point = 0 : i64, rounding = "fixed64_up",
// CHECK-SAME: sum_arithmetic = "requantize_each", sum_max = 127 : i64, sum_min = -128 : i64,
// CHECK-SAME: sum_multiplier = "f64", sum_rounding = "fixed64_up", sum_scale = 2.500000e-01 : f64,
// CHECK-SAME: sum_zero_point = 5 : i64, table = dense<0> : tensor<256xi8>, table_scale = 7.812500e-03 : f64,
// CHECK-SAME: table_zero_point = 255 : i64, weight_scales = array<f64: 2.500000e-01>,
// CHECK-SAME: weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xui8>
func.func @table_to_unsigned(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) -> tensor<2x3xui8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = dense<0> : tensor<256xi8>, table_scale = 0.0078125 : f64,
    table_zero_point = 255 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @residual(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2, %arg3) {activation = "none", activation_alpha = 0.000000e+00 : f64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, multiplier = "f64", output_max = 127 : i64,
// CHECK-SAME: output_min = -128 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: residual_scale = 1.250000e-01 : f64, residual_zero_point = -7 : i64, rounding = "fixed64_up",
// CHECK-SAME: sum_arithmetic = "requantize_each", sum_max = 100 : i64, sum_min = 1 : i64,
// CHECK-SAME: sum_multiplier = "f64", sum_rounding = "fixed64_up", sum_scale = 5.000000e-01 : f64,
// CHECK-SAME: sum_zero_point = 1 : i64, table, table_scale = 5.000000e-01 : f64, table_zero_point = 1 : i64,
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>, weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @residual(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.125 : f64, residual_zero_point = -7 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.5 : f64, sum_zero_point = 1 : i64,
    sum_min = 1 : i64, sum_max = 100 : i64, table = unit, table_scale = 0.5 : f64, table_zero_point = 1 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @residual_and_table(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2, %arg3) {activation = "none", activation_alpha = 0.000000e+00 : f64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, multiplier = "f64", output_max = 127 : i64,
// CHECK-SAME: output_min = -128 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: residual_scale = 1.250000e-01 : f64, residual_zero_point = -7 : i64, rounding = "fixed64_up",
// CHECK-SAME: sum_arithmetic = "shifted_fixed", sum_max = 100 : i64, sum_min = 1 : i64, sum_multiplier = "f64",
// CHECK-SAME: sum_rounding = "fixed32_double", sum_scale = 5.000000e-01 : f64, sum_zero_point = 1 : i64,
// CHECK-SAME: table = dense<0> : tensor<256xi8>, table_scale = 7.812500e-03 : f64,
// CHECK-SAME: table_zero_point = -128 : i64, weight_scales = array<f64: 2.500000e-01>,
// CHECK-SAME: weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @residual_and_table(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.125 : f64, residual_zero_point = -7 : i64, sum_arithmetic = "shifted_fixed",
    sum_rounding = "fixed32_double", sum_multiplier = "f64", sum_scale = 0.5 : f64, sum_zero_point = 1 : i64,
    sum_min = 1 : i64, sum_max = 100 : i64, table = dense<0> : tensor<256xi8>, table_scale = 0.0078125 : f64,
    table_zero_point = -128 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned_residual(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2, %arg3) {activation = "none", activation_alpha = 0.000000e+00 : f64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, multiplier = "f64", output_max = 127 : i64,
// CHECK-SAME: output_min = -128 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: residual_scale = 1.250000e-01 : f64, residual_zero_point = 200 : i64, rounding = "fixed64_up",
// CHECK-SAME: sum_arithmetic = "float_once", sum_max = 100 : i64, sum_min = 1 : i64, sum_multiplier = "f32",
// CHECK-SAME: sum_rounding = "fixed64_up", sum_scale = 5.000000e-01 : f64, sum_zero_point = 1 : i64, table,
// CHECK-SAME: table_scale = 5.000000e-01 : f64, table_zero_point = 1 : i64,
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>, weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>, tensor<2x3xui8>) -> tensor<2x3xi8>
func.func @unsigned_residual(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>, %residual: tensor<2x3xui8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.125 : f64, residual_zero_point = 200 : i64, sum_arithmetic = "float_once",
    sum_rounding = "fixed64_up", sum_multiplier = "f32", sum_scale = 0.5 : f64, sum_zero_point = 1 : i64,
    sum_min = 1 : i64, sum_max = 100 : i64, table = unit, table_scale = 0.5 : f64, table_zero_point = 1 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>, tensor<2x3xui8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @per_channel(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2) {activation = "none", activation_alpha = 0.000000e+00 : f64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, multiplier = "f32", output_max = 127 : i64,
// CHECK-SAME: output_min = -128 : i64, output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: residual_scale = 0.000000e+00 : f64, residual_zero_point = 0 : i64, rounding = "f32_rne_zp_last",
// CHECK-SAME: sum_arithmetic = "requantize_each", sum_max = 127 : i64, sum_min = -128 : i64,
// CHECK-SAME: sum_multiplier = "f64", sum_rounding = "fixed64_up", sum_scale = 2.500000e-01 : f64,
// CHECK-SAME: sum_zero_point = 5 : i64, table, table_scale = 2.500000e-01 : f64, table_zero_point = 5 : i64,
// CHECK-SAME: weight_scales = array<f64: 5.000000e-01, 2.500000e-01, 1.250000e-01>,
// CHECK-SAME: weight_zero_points = array<i64: 1, -2, 3>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
func.func @per_channel(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.5, 0.25, 0.125>,
    weight_zero_points = array<i64: 1, -2, 3>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "f32_rne_zp_last", multiplier = "f32",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2) {activation = "none", activation_alpha = 0.000000e+00 : f64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 128 : i64, multiplier = "f64", output_max = 255 : i64, output_min = 0 : i64,
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: residual_scale = 0.000000e+00 : f64, residual_zero_point = 0 : i64, rounding = "fixed64_up",
// CHECK-SAME: sum_arithmetic = "requantize_each", sum_max = 255 : i64, sum_min = 0 : i64,
// CHECK-SAME: sum_multiplier = "f64", sum_rounding = "fixed64_up", sum_scale = 2.500000e-01 : f64,
// CHECK-SAME: sum_zero_point = 5 : i64, table, table_scale = 2.500000e-01 : f64, table_zero_point = 5 : i64,
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>, weight_zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xui8>
func.func @unsigned(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi32>) -> tensor<2x3xui8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = 0 : i64, output_max = 255 : i64, rounding = "fixed64_up", multiplier = "f64",
    real_scaling = "none", activation = "none", activation_alpha = 0.0 : f64, residual_place = "right",
    residual_scale = 0.0 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = 0 : i64, sum_max = 255 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi32>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @real_stage(
// CHECK: "qnn.fused_matmul"(%arg0, %arg1, %arg2, %arg3) {activation = "leaky_relu", activation_alpha = 1.000000e-01 : f64,
// CHECK-SAME: real_scaling = "reciprocal", residual_place = "before_rounding", residual_scale = 5.000000e-01 : f64,
// CHECK-SAME: rounding = "f32_rne_zp_last"
// CHECK-SAME: tensor<3xf32>, tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @real_stage(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xf32>, %residual: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.fused_matmul"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    output_min = -128 : i64, output_max = 127 : i64, rounding = "f32_rne_zp_last", multiplier = "f64",
    real_scaling = "reciprocal", activation = "leaky_relu", activation_alpha = 0.1 : f64,
    residual_place = "before_rounding",
    residual_scale = 0.5 : f64, residual_zero_point = 0 : i64, sum_arithmetic = "requantize_each",
    sum_rounding = "fixed64_up", sum_multiplier = "f64", sum_scale = 0.25 : f64, sum_zero_point = 5 : i64,
    sum_min = -128 : i64, sum_max = 127 : i64, table = unit, table_scale = 0.25 : f64, table_zero_point = 5 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xf32>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
