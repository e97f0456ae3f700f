// RUN: %roundtrip

// CHECK-LABEL: func.func @spatial(
// CHECK: "qnn.mean"(%arg0) {axes = array<i64: 1, 2>, input_scale = 5.000000e-01 : f64,
// CHECK-SAME: input_zero_point = 3 : i64, keep_dims = false, multiplier = "f64",
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up"
// CHECK-SAME: } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
func.func @spatial(%input: tensor<1x4x4x2xi8>) -> tensor<1x2xi8> {
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return %y : tensor<1x2xi8>
}
