// RUN: %roundtrip

// CHECK-LABEL: func.func @first(
// CHECK: "qnn.arg_min"(%arg0) {axis = 1 : i64, keep_dims = false, last = false
// CHECK-SAME: } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
func.func @first(%input: tensor<2x3x4xi8>) -> tensor<2x4xi64> {
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return %y : tensor<2x4xi64>
}
