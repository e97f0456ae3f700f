// RUN: %roundtrip

// Any order, repeated indices; any element type.

// CHECK-LABEL: func.func @columns(
// CHECK: "qnn.gather"(%arg0) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xui8>) -> tensor<4x3xui8>
func.func @columns(%input: tensor<4x6xui8>) -> tensor<4x3xui8> {
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xui8>) -> tensor<4x3xui8>
  return %y : tensor<4x3xui8>
}

// CHECK-LABEL: func.func @rows(
func.func @rows(%input: tensor<4x6xf32>) -> tensor<1x6xf32> {
  %y = "qnn.gather"(%input) {axis = 0 : i64, indices = array<i64: 3>} : (tensor<4x6xf32>) -> tensor<1x6xf32>
  return %y : tensor<1x6xf32>
}
