// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.f32_sum"(%arg0) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3x5xf32>) -> tensor<2x5xf32>
func.func @rows(%input: tensor<2x3x5xf32>) -> tensor<2x5xf32> {
  %y = "qnn.f32_sum"(%input) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3x5xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @all(
func.func @all(%input: tensor<2x3x5xf32>) -> tensor<f32> {
  %y = "qnn.f32_sum"(%input) {axes = array<i64: 0, 1, 2>} : (tensor<2x3x5xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// CHECK-LABEL: func.func @kept(
func.func @kept(%input: tensor<2x3x5xf32>) -> tensor<1x3x1xf32> {
  %y = "qnn.f32_sum"(%input) {axes = array<i64: 0, 2>, keep_dims = true} : (tensor<2x3x5xf32>) -> tensor<1x3x1xf32>
  return %y : tensor<1x3x1xf32>
}

// CHECK-LABEL: func.func @in_order(
// CHECK: "qnn.f32_sum"(%arg0) {axes = array<i64: 1>, in_order = true} : (tensor<2x40xf32>) -> tensor<2xf32>
func.func @in_order(%input: tensor<2x40xf32>) -> tensor<2xf32> {
  %y = "qnn.f32_sum"(%input) {axes = array<i64: 1>, in_order = true} : (tensor<2x40xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
