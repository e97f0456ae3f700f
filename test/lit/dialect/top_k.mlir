// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.top_k"(%arg0) {axis = 1 : i64, count = 3 : i64} : (tensor<2x5xi32>) -> tensor<2x3xi64>
func.func @rows(%input: tensor<2x5xi32>) -> tensor<2x3xi64> {
  %y = "qnn.top_k"(%input) {axis = 1 : i64, count = 3 : i64} : (tensor<2x5xi32>) -> tensor<2x3xi64>
  return %y : tensor<2x3xi64>
}

// CHECK-LABEL: func.func @unstable(
// CHECK: "qnn.top_k"(%arg0) {axis = 1 : i64, count = 3 : i64, order = "std_top_k"} : (tensor<2x5xi32>) -> tensor<2x3xi64>
func.func @unstable(%input: tensor<2x5xi32>) -> tensor<2x3xi64> {
  %y = "qnn.top_k"(%input) {axis = 1 : i64, count = 3 : i64, order = "std_top_k"} : (tensor<2x5xi32>) -> tensor<2x3xi64>
  return %y : tensor<2x3xi64>
}
