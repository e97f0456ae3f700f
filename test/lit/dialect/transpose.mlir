// RUN: %roundtrip

// Both layout changes, a matrix, a scalar.

// CHECK-LABEL: func.func @to_channels_first(
// CHECK: "qnn.transpose"(%arg0) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
func.func @to_channels_first(%input: tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8> {
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return %y : tensor<1x2x4x4xi8>
}

// CHECK-LABEL: func.func @to_channels_last(
func.func @to_channels_last(%input: tensor<1x2x4x5xui8>) -> tensor<1x4x5x2xui8> {
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x5xui8>) -> tensor<1x4x5x2xui8>
  return %y : tensor<1x4x5x2xui8>
}

// CHECK-LABEL: func.func @weights(
func.func @weights(%input: tensor<2x3xi16>) -> tensor<3x2xi16> {
  %y = "qnn.transpose"(%input) {permutation = array<i64: 1, 0>} : (tensor<2x3xi16>) -> tensor<3x2xi16>
  return %y : tensor<3x2xi16>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%input: tensor<i32>) -> tensor<i32> {
  %y = "qnn.transpose"(%input) {permutation = array<i64>} : (tensor<i32>) -> tensor<i32>
  return %y : tensor<i32>
}
