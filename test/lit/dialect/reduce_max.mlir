// RUN: %roundtrip

// Some axes, all axes, kept or dropped.

// CHECK-LABEL: func.func @spatial(
// CHECK: "qnn.reduce_max"(%arg0) {axes = array<i64: 1, 2>, keep_dims = false
// CHECK-SAME: } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
func.func @spatial(%input: tensor<1x4x4x2xi8>) -> tensor<1x2xi8> {
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return %y : tensor<1x2xi8>
}

// CHECK-LABEL: func.func @keep_dims(
func.func @keep_dims(%input: tensor<1x4x4x2xi8>) -> tensor<1x1x1x2xi8> {
  %y = "qnn.reduce_max"(%input) {axes = array<i64: 1, 2>, keep_dims = true} : (tensor<1x4x4x2xi8>) -> tensor<1x1x1x2xi8>
  return %y : tensor<1x1x1x2xi8>
}

// CHECK-LABEL: func.func @all_axes(
func.func @all_axes(%input: tensor<1x4x4x2xi8>) -> tensor<i8> {
  %y = "qnn.reduce_max"(%input) {axes = array<i64: 0, 1, 2, 3>} : (tensor<1x4x4x2xi8>) -> tensor<i8>
  return %y : tensor<i8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%input: tensor<1x4x4x2xui8>) -> tensor<1x2xui8> {
  %y = "qnn.reduce_max"(%input) {axes = array<i64: 1, 2>} : (tensor<1x4x4x2xui8>) -> tensor<1x2xui8>
  return %y : tensor<1x2xui8>
}
