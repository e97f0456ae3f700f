// RUN: %roundtrip

// CHECK-LABEL: func.func @spatial(
// CHECK: "qnn.reduce_min"(%arg0) {axes = array<i64: 1, 2>, keep_dims = false
// CHECK-SAME: } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
func.func @spatial(%input: tensor<1x4x4x2xi8>) -> tensor<1x2xi8> {
  %y = "qnn.reduce_min"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return %y : tensor<1x2xi8>
}
