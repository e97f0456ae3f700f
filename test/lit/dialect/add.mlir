// RUN: %roundtrip

// Broadcasting, mixed signedness, clamps, every arithmetic.

// CHECK-LABEL: func.func @same_shape(
// CHECK: "qnn.add"(%arg0, %arg1) {arithmetic = "requantize_each", lhs_scale = 5.000000e-01 : f64,
// CHECK-SAME: lhs_zero_point = 3 : i64, multiplier = "f64", output_max = 127 : i64, output_min = -128 : i64,
// CHECK-SAME: output_scale = 7.500000e-01 : f64, output_zero_point = 5 : i64, rhs_scale = 2.500000e-01 : f64,
// CHECK-SAME: rhs_zero_point = -4 : i64, rounding = "fixed64_up"
// CHECK-SAME: } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @same_shape(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @broadcast(
func.func @broadcast(%lhs: tensor<2x1x3xi8>, %rhs: tensor<4x1xi8>) -> tensor<2x4x3xi8> {
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<2x1x3xi8>, tensor<4x1xi8>) -> tensor<2x4x3xi8>
  return %y : tensor<2x4x3xi8>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%lhs: tensor<2x3xi8>, %rhs: tensor<i8>) -> tensor<2x3xi8> {
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    rounding = "fixed64_nearest"
  } : (tensor<2x3xi8>, tensor<i8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @mixed_signedness(
func.func @mixed_signedness(%lhs: tensor<2x3xui8>, %rhs: tensor<2x3xi8>) -> tensor<2x3xui8> {
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 255 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = 0 : i64, output_max = 255 : i64,
    arithmetic = "shifted_fixed", multiplier = "f32"
  } : (tensor<2x3xui8>, tensor<2x3xi8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @clamped(
func.func @clamped(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = 5 : i64, output_max = 29 : i64,
    arithmetic = "float_once", rounding = "f32_rne_zp_first"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
