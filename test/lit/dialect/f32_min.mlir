// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.f32_min"(%arg0) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3x5xf32>) -> tensor<2x5xf32>
func.func @rows(%input: tensor<2x3x5xf32>) -> tensor<2x5xf32> {
  %y = "qnn.f32_min"(%input) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3x5xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @from_zero(
// CHECK: "qnn.f32_min"(%arg0) {axes = array<i64: 1>, from_zero = true} : (tensor<2x3xf32>) -> tensor<2xf32>
func.func @from_zero(%input: tensor<2x3xf32>) -> tensor<2xf32> {
  %y = "qnn.f32_min"(%input) {axes = array<i64: 1>, from_zero = true} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// CHECK-LABEL: func.func @of_numbers(
// CHECK: "qnn.f32_min"(%arg0) {axes = array<i64: 1>, nan_as_zero = true} : (tensor<2x3xf32>) -> tensor<2xf32>
func.func @of_numbers(%input: tensor<2x3xf32>) -> tensor<2xf32> {
  %y = "qnn.f32_min"(%input) {axes = array<i64: 1>, nan_as_zero = true} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
