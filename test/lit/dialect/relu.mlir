// RUN: %roundtrip

// Both signednesses, a mixed pair, a scalar; each way to form an entry.

// CHECK-LABEL: func.func @signed(
// CHECK: "qnn.relu"(%arg0) {entries = "half_away_divide", input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 3 : i64, nan = "max", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64
// CHECK-SAME: } : (tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @signed(%input: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%input: tensor<2x3xui8>) -> tensor<2x3xui8> {
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, output_scale = 0.25 : f64, output_zero_point = 255 : i64,
    entries = "half_even_divide", nan = "zero_point"
  } : (tensor<2x3xui8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @signed_to_unsigned(
func.func @signed_to_unsigned(%input: tensor<2x3xi8>) -> tensor<2x3xui8> {
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = 0 : i64,
    entries = "half_away_reciprocal", nan = "min"
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%input: tensor<i8>) -> tensor<i8> {
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    entries = "half_away_double"
  } : (tensor<i8>) -> tensor<i8>
  return %y : tensor<i8>
}
