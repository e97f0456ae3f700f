// RUN: %roundtrip

// Rows, numbers of a row, a scalar; any element type.

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.broadcast"(%arg0) {shape = array<i64: 4, 3>} : (tensor<1x3xui8>) -> tensor<4x3xui8>
func.func @rows(%input: tensor<1x3xui8>) -> tensor<4x3xui8> {
  %y = "qnn.broadcast"(%input) {shape = array<i64: 4, 3>} : (tensor<1x3xui8>) -> tensor<4x3xui8>
  return %y : tensor<4x3xui8>
}

// CHECK-LABEL: func.func @new_dimension(
func.func @new_dimension(%input: tensor<3x1xf32>) -> tensor<2x3x5xf32> {
  %y = "qnn.broadcast"(%input) {shape = array<i64: 2, 3, 5>} : (tensor<3x1xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%input: tensor<i64>) -> tensor<2xi64> {
  %y = "qnn.broadcast"(%input) {shape = array<i64: 2>} : (tensor<i64>) -> tensor<2xi64>
  return %y : tensor<2xi64>
}
