// RUN: %roundtrip

// Part of a dimension, every other element, a scalar; any element type.

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.slice"(%arg0) {begin = array<i64: 1, 0>, size = array<i64: 2, 6>, strides = array<i64: 1, 1>
// CHECK-SAME: } : (tensor<4x6xui8>) -> tensor<2x6xui8>
func.func @rows(%input: tensor<4x6xui8>) -> tensor<2x6xui8> {
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 6>, strides = array<i64: 1, 1>
  } : (tensor<4x6xui8>) -> tensor<2x6xui8>
  return %y : tensor<2x6xui8>
}

// CHECK-LABEL: func.func @every_other(
func.func @every_other(%input: tensor<4x6xf32>) -> tensor<4x3xf32> {
  %y = "qnn.slice"(%input) {
    begin = array<i64: 0, 1>, size = array<i64: 4, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%input: tensor<i64>) -> tensor<i64> {
  %y = "qnn.slice"(%input) {begin = array<i64>, size = array<i64>, strides = array<i64>} : (tensor<i64>) -> tensor<i64>
  return %y : tensor<i64>
}
