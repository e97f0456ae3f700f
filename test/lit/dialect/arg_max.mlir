// RUN: %roundtrip

// Either width of index, kept dimensions, the last of equal quantized values.

// CHECK-LABEL: func.func @first(
// CHECK: "qnn.arg_max"(%arg0) {axis = 1 : i64, keep_dims = false, last = false
// CHECK-SAME: } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
func.func @first(%input: tensor<2x3x4xi8>) -> tensor<2x4xi64> {
  %y = "qnn.arg_max"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return %y : tensor<2x4xi64>
}

// CHECK-LABEL: func.func @keep_dims(
// CHECK: "qnn.arg_max"(%arg0) {axis = 1 : i64, keep_dims = true, last = false
// CHECK-SAME: } : (tensor<2x3x4xi8>) -> tensor<2x1x4xi64>
func.func @keep_dims(%input: tensor<2x3x4xi8>) -> tensor<2x1x4xi64> {
  %y = "qnn.arg_max"(%input) {
    axis = 1 : i64, keep_dims = true, last = false
  } : (tensor<2x3x4xi8>) -> tensor<2x1x4xi64>
  return %y : tensor<2x1x4xi64>
}

// CHECK-LABEL: func.func @narrow_index(
// CHECK: "qnn.arg_max"(%arg0) {axis = 2 : i64, keep_dims = false, last = false
// CHECK-SAME: } : (tensor<2x3x4xui8>) -> tensor<2x3xi32>
func.func @narrow_index(%input: tensor<2x3x4xui8>) -> tensor<2x3xi32> {
  %y = "qnn.arg_max"(%input) {
    axis = 2 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xui8>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

// CHECK-LABEL: func.func @last(
// CHECK: "qnn.arg_max"(%arg0) {axis = 1 : i64, keep_dims = false, last = true
// CHECK-SAME: } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
func.func @last(%input: tensor<2x3x4xi8>) -> tensor<2x4xi64> {
  %y = "qnn.arg_max"(%input) {
    axis = 1 : i64, keep_dims = false, last = true
  } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return %y : tensor<2x4xi64>
}

// CHECK-LABEL: func.func @to_scalar(
// CHECK: "qnn.arg_max"(%arg0) {axis = 0 : i64, keep_dims = false, last = false
// CHECK-SAME: } : (tensor<4xi8>) -> tensor<i64>
func.func @to_scalar(%input: tensor<4xi8>) -> tensor<i64> {
  %y = "qnn.arg_max"(%input) {
    axis = 0 : i64, keep_dims = false, last = false
  } : (tensor<4xi8>) -> tensor<i64>
  return %y : tensor<i64>
}
