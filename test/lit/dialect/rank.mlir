// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.rank"(%arg0) {axis = 1 : i64} : (tensor<2x5xi32>) -> tensor<2x5xi64>
func.func @rows(%input: tensor<2x5xi32>) -> tensor<2x5xi64> {
  %y = "qnn.rank"(%input) {axis = 1 : i64} : (tensor<2x5xi32>) -> tensor<2x5xi64>
  return %y : tensor<2x5xi64>
}
