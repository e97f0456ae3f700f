// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.f32_prod"(%arg0) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3x5xf32>) -> tensor<2x5xf32>
func.func @rows(%input: tensor<2x3x5xf32>) -> tensor<2x5xf32> {
  %y = "qnn.f32_prod"(%input) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3x5xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}
