// RUN: %roundtrip

// Both signednesses, a mixed pair, a scalar; each way to form an entry.

// CHECK-LABEL: func.func @signed(
// CHECK: "qnn.elu"(%arg0) {alpha = 1.000000e+00 : f64, entries = "half_away_divide",
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = 3 : i64, nan = "max",
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = -128 : i64
// CHECK-SAME: } : (tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @signed(%input: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.elu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max", alpha = 1.0 : f64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
// CHECK: "qnn.elu"(%arg0) {alpha = 1.000000e+00 : f64, entries = "half_even_divide",
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = 128 : i64, nan = "zero_point",
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = 255 : i64
// CHECK-SAME: } : (tensor<2x3xui8>) -> tensor<2x3xui8>
func.func @unsigned(%input: tensor<2x3xui8>) -> tensor<2x3xui8> {
  %y = "qnn.elu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, output_scale = 0.25 : f64,
    output_zero_point = 255 : i64, entries = "half_even_divide", nan = "zero_point", alpha = 1.0 : f64
  } : (tensor<2x3xui8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @signed_to_unsigned(
// CHECK: "qnn.elu"(%arg0) {alpha = 1.000000e+00 : f64, entries = "half_away_reciprocal",
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = 3 : i64, nan = "min",
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = 0 : i64
// CHECK-SAME: } : (tensor<2x3xi8>) -> tensor<2x3xui8>
func.func @signed_to_unsigned(%input: tensor<2x3xi8>) -> tensor<2x3xui8> {
  %y = "qnn.elu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = 0 : i64,
    entries = "half_away_reciprocal", nan = "min", alpha = 1.0 : f64
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @scalar(
// CHECK: "qnn.elu"(%arg0) {alpha = 1.000000e+00 : f64, entries = "half_away_double",
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = 3 : i64, nan = "max",
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = -128 : i64
// CHECK-SAME: } : (tensor<i8>) -> tensor<i8>
func.func @scalar(%input: tensor<i8>) -> tensor<i8> {
  %y = "qnn.elu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_double", nan = "max", alpha = 1.0 : f64
  } : (tensor<i8>) -> tensor<i8>
  return %y : tensor<i8>
}

// CHECK-LABEL: func.func @negative_alpha(
// CHECK: "qnn.elu"(%arg0) {alpha = -5.000000e-01 : f64, entries = "half_away_divide",
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = 3 : i64, nan = "max",
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = -128 : i64
// CHECK-SAME: } : (tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @negative_alpha(%input: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.elu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max", alpha = -0.5 : f64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
