// RUN: %roundtrip

// Per tensor and per channel (N2), both scales apart (R11), every rounding (R15) and every way to form the multiplier.

// CHECK-LABEL: func.func @per_tensor(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "fixed64_up", weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xi8>
func.func @per_tensor(%input: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @per_channel(
// CHECK: "qnn.requantize"(%arg0) {axis = 1 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 1, 2, 3>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "fixed64_up",
// CHECK-SAME: weight_scales = array<f64: 5.000000e-01, 2.500000e-01, 1.250000e-01>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xi8>
func.func @per_channel(%input: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.5, 0.25, 0.125>,
    input_zero_points = array<i64: 1, 2, 3>, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f32", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = 255 : i64, rounding = "fixed64_up", weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xui8>
func.func @unsigned(%input: tensor<2x3xi32>) -> tensor<2x3xui8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = 255 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f32"
  } : (tensor<2x3xi32>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @between_bytes(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: -128>, multiplier = "f32_product",
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = 0 : i64, rounding = "fixed64_up",
// CHECK-SAME: weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi8>) -> tensor<2x3xui8>
func.func @between_bytes(%input: tensor<2x3xi8>) -> tensor<2x3xui8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: -128>,
    output_scale = 0.25 : f64, output_zero_point = 0 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f32_product"
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @sixteen_bits(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "fixed64_up", weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xi16>
func.func @sixteen_bits(%input: tensor<2x3xi32>) -> tensor<2x3xi16> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi16>
  return %y : tensor<2x3xi16>
}

// CHECK-LABEL: func.func @scalar(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "fixed64_up", weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<i32>) -> tensor<i8>
func.func @scalar(%input: tensor<i32>) -> tensor<i8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<i32>) -> tensor<i8>
  return %y : tensor<i8>
}

// CHECK-LABEL: func.func @fixed64_nearest(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "fixed64_nearest",
// CHECK-SAME: weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xi8>
func.func @fixed64_nearest(%input: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_nearest",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @fixed32_double(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "fixed32_double",
// CHECK-SAME: weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xi8>
func.func @fixed32_double(%input: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed32_double",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @f32_rne_zp_last(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "f32_rne_zp_last",
// CHECK-SAME: weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xi8>
func.func @f32_rne_zp_last(%input: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "f32_rne_zp_last",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @f32_rne_zp_first(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "f32_rne_zp_first",
// CHECK-SAME: weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xi8>
func.func @f32_rne_zp_first(%input: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "f32_rne_zp_first",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @f32_up_zp_first(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "f32_up_zp_first",
// CHECK-SAME: weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xi8>
func.func @f32_up_zp_first(%input: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "f32_up_zp_first",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @f32_nearest_zp_first(
// CHECK: "qnn.requantize"(%arg0) {axis = 0 : i64, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_points = array<i64: 0>, multiplier = "f64", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64, rounding = "f32_nearest_zp_first",
// CHECK-SAME: weight_scales = array<f64: 1.000000e+00>
// CHECK-SAME: } : (tensor<2x3xi32>) -> tensor<2x3xi8>
func.func @f32_nearest_zp_first(%input: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "f32_nearest_zp_first",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
