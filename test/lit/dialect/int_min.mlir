// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.int_min"(%arg0) {axes = array<i64: 1>, keep_dims = true} : (tensor<2x3x5xi64>) -> tensor<2x1x5xi64>
func.func @rows(%input: tensor<2x3x5xi64>) -> tensor<2x1x5xi64> {
  %y = "qnn.int_min"(%input) {axes = array<i64: 1>, keep_dims = true} : (tensor<2x3x5xi64>) -> tensor<2x1x5xi64>
  return %y : tensor<2x1x5xi64>
}
