// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.int_sum"(%arg0) {axes = array<i64: 1>, keep_dims = true} : (tensor<2x3x5xi64>) -> tensor<2x1x5xi64>
func.func @rows(%input: tensor<2x3x5xi64>) -> tensor<2x1x5xi64> {
  %y = "qnn.int_sum"(%input) {axes = array<i64: 1>, keep_dims = true} : (tensor<2x3x5xi64>) -> tensor<2x1x5xi64>
  return %y : tensor<2x1x5xi64>
}

// CHECK-LABEL: func.func @bytes(
// CHECK: (tensor<2x3xui8>) -> tensor<2xi32>
func.func @bytes(%input: tensor<2x3xui8>) -> tensor<2xi32> {
  %y = "qnn.int_sum"(%input) {axes = array<i64: 1>} : (tensor<2x3xui8>) -> tensor<2xi32>
  return %y : tensor<2xi32>
}
