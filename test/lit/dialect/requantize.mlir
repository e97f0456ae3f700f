// RUN: %roundtrip

// Per tensor and per channel (N2), both scales apart (R11), every way to form the multiplier.

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
func.func @per_channel(%input: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.5, 0.25, 0.125>, input_zero_points = array<i64: 1, 2, 3>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 1 : i64, rounding = "fixed64_up"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%input: tensor<2x3xi32>) -> tensor<2x3xui8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = 255 : i64, rounding = "fixed64_up",
    multiplier = "f32"
  } : (tensor<2x3xi32>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @between_bytes(
func.func @between_bytes(%input: tensor<2x3xi8>) -> tensor<2x3xui8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, input_zero_points = array<i64: -128>, output_scale = 0.25 : f64,
    output_zero_point = 0 : i64, rounding = "fixed64_up", multiplier = "f32_product"
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @sixteen_bits(
func.func @sixteen_bits(%input: tensor<2x3xi32>) -> tensor<2x3xi16> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = -128 : i64, rounding = "fixed64_up"
  } : (tensor<2x3xi32>) -> tensor<2x3xi16>
  return %y : tensor<2x3xi16>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%input: tensor<i32>) -> tensor<i8> {
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = -128 : i64, rounding = "fixed64_up"
  } : (tensor<i32>) -> tensor<i8>
  return %y : tensor<i8>
}
