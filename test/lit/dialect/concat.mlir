// RUN: %roundtrip

// One to three inputs of different extents.

// CHECK-LABEL: func.func @two(
// CHECK: "qnn.concat"(%arg0, %arg1) {axis = 1 : i64, input_scales = array<f64: 5.000000e-01, 2.500000e-01>,
// CHECK-SAME: input_zero_points = array<i64: 1, -2>, multiplier = "f64",
// CHECK-SAME: operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
// CHECK-SAME: output_scale = 5.000000e-01 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up"
// CHECK-SAME: } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
func.func @two(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) -> tensor<2x6xi8> {
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return %y : tensor<2x6xi8>
}

// CHECK-LABEL: func.func @one(
func.func @one(%a: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.concat"(%a) {
    axis = 1 : i64, input_scales = array<f64: 0.5>, input_zero_points = array<i64: 1>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @three(
func.func @three(%a: tensor<2x3xi8>, %b: tensor<1x3xi8>, %c: tensor<5x3xi8>) -> tensor<8x3xi8> {
  %y = "qnn.concat"(%a, %b, %c) {
    axis = 0 : i64, input_scales = array<f64: 0.5, 0.5, 0.5>, input_zero_points = array<i64: 1, 1, 1>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<1x3xi8>, tensor<5x3xi8>) -> tensor<8x3xi8>
  return %y : tensor<8x3xi8>
}

// CHECK-LABEL: func.func @mixed_signedness(
func.func @mixed_signedness(%a: tensor<2x3xui8>, %b: tensor<2x3xi8>) -> tensor<2x6xi8> {
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 255, -128>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "f32_rne_zp_last", multiplier = "f32",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xui8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return %y : tensor<2x6xi8>
}

// CHECK-LABEL: func.func @same_value_twice(
func.func @same_value_twice(%a: tensor<2x3xi8>) -> tensor<2x6xi8> {
  %y = "qnn.concat"(%a, %a) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return %y : tensor<2x6xi8>
}
