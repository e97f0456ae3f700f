// RUN: %roundtrip

// CHECK-LABEL: func.func @signed(
// CHECK: "qnn.tanh"(%arg0) {entries = "half_away_divide", input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 3 : i64, nan = "max", output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = -128 : i64
// CHECK-SAME: } : (tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @signed(%input: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.tanh"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
