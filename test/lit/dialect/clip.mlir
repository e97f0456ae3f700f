// RUN: %roundtrip

// Every kind of tensor, whole range and single value.

// CHECK-LABEL: func.func @bytes(
// CHECK: "qnn.clip"(%arg0) {max = 100 : i64, min = -3 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @bytes(%input: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%input: tensor<2x3xui8>) -> tensor<2x3xui8> {
  %y = "qnn.clip"(%input) {min = 0 : i64, max = 255 : i64} : (tensor<2x3xui8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @accumulators(
func.func @accumulators(%input: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %y = "qnn.clip"(%input) {min = -2147483648 : i64, max = 2147483647 : i64} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

// CHECK-LABEL: func.func @one_value(
func.func @one_value(%input: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.clip"(%input) {min = 7 : i64, max = 7 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%input: tensor<i16>) -> tensor<i16> {
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<i16>) -> tensor<i16>
  return %y : tensor<i16>
}
