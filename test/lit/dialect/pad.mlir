// RUN: %roundtrip

// Asymmetric, empty, every kind of tensor.

// CHECK-LABEL: func.func @both_sides(
// CHECK: "qnn.pad"(%arg0) {high = array<i64: 0, 2>, low = array<i64: 1, 0>, value = 3 : i64
// CHECK-SAME: } : (tensor<2x3xi8>) -> tensor<3x5xi8>
func.func @both_sides(%input: tensor<2x3xi8>) -> tensor<3x5xi8> {
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return %y : tensor<3x5xi8>
}

// CHECK-LABEL: func.func @nothing(
func.func @nothing(%input: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.pad"(%input) {
    low = array<i64: 0, 0>, high = array<i64: 0, 0>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%input: tensor<2x3xui8>) -> tensor<3x5xui8> {
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 255 : i64
  } : (tensor<2x3xui8>) -> tensor<3x5xui8>
  return %y : tensor<3x5xui8>
}

// CHECK-LABEL: func.func @accumulators(
func.func @accumulators(%input: tensor<2x3xi32>) -> tensor<3x5xi32> {
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = -2147483648 : i64
  } : (tensor<2x3xi32>) -> tensor<3x5xi32>
  return %y : tensor<3x5xi32>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%input: tensor<i8>) -> tensor<i8> {
  %y = "qnn.pad"(%input) {low = array<i64>, high = array<i64>, value = 3 : i64} : (tensor<i8>) -> tensor<i8>
  return %y : tensor<i8>
}

// CHECK-LABEL: func.func @float(
func.func @float(%input: tensor<2xf32>) -> tensor<5xf32> {
  %y = "qnn.pad"(%input) {
    low = array<i64: 1>, high = array<i64: 2>, value = -1 : i64
  } : (tensor<2xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}
