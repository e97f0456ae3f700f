// RUN: %roundtrip

// Ranks up and down, to and from a scalar.

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.reshape"(%arg0) {shape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
func.func @rows(%input: tensor<2x3xi8>) -> tensor<3x2xi8> {
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return %y : tensor<3x2xi8>
}

// CHECK-LABEL: func.func @flat(
func.func @flat(%input: tensor<2x3xui8>) -> tensor<6xui8> {
  %y = "qnn.reshape"(%input) {shape = array<i64: 6>} : (tensor<2x3xui8>) -> tensor<6xui8>
  return %y : tensor<6xui8>
}

// CHECK-LABEL: func.func @to_scalar(
func.func @to_scalar(%input: tensor<1x1xi32>) -> tensor<i32> {
  %y = "qnn.reshape"(%input) {shape = array<i64>} : (tensor<1x1xi32>) -> tensor<i32>
  return %y : tensor<i32>
}

// CHECK-LABEL: func.func @from_scalar(
func.func @from_scalar(%input: tensor<i16>) -> tensor<1x1xi16> {
  %y = "qnn.reshape"(%input) {shape = array<i64: 1, 1>} : (tensor<i16>) -> tensor<1x1xi16>
  return %y : tensor<1x1xi16>
}
