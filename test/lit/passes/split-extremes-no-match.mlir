// RUN: %qopt %s --qnn-split-extremes --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-split-extremes | filecheck %s

// CHECK-LABEL: func.func @short_rows(
// CHECK: "qnn.f32_max"(%{{.*}}) {axes = array<i64: 0, 1>
func.func @short_rows(%arg0: tensor<6x255xf32>) -> tensor<f32> {
  %0 = arith.addf %arg0, %arg0 : tensor<6x255xf32>
  // expected-remark @+1 {{[split-extreme] 'qnn.f32_max' must have rows of at least 256, but has 6 of 255}}
  %1 = "qnn.f32_max"(%0) {axes = array<i64: 0, 1>} : (tensor<6x255xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// CHECK-LABEL: func.func @one_row(
// CHECK: "qnn.f32_min"(%{{.*}}) {axes = array<i64: 0, 1>
func.func @one_row(%arg0: tensor<1x256xf32>) -> tensor<f32> {
  %0 = arith.addf %arg0, %arg0 : tensor<1x256xf32>
  // expected-remark @+1 {{[split-extreme] 'qnn.f32_min' must have several rows, but has one}}
  %1 = "qnn.f32_min"(%0) {axes = array<i64: 0, 1>} : (tensor<1x256xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// CHECK-LABEL: func.func @argument(
// CHECK: "qnn.f32_max"(%{{.*}}) {axes = array<i64: 0, 1>
func.func @argument(%arg0: tensor<6x256xf32>) -> tensor<f32> {
  // expected-remark @+1 {{[split-extreme] 'qnn.f32_max' must read what an element-wise op computes}}
  %0 = "qnn.f32_max"(%arg0) {axes = array<i64: 0, 1>} : (tensor<6x256xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Columns, and rows alone.

// CHECK-LABEL: func.func @other_axes(
// CHECK: "qnn.f32_max"(%{{.*}}) {axes = array<i64: 0, 1>
// CHECK: "qnn.f32_max"(%{{.*}}) {axes = array<i64: 2>
func.func @other_axes(%arg0: tensor<2x6x256xf32>) -> (tensor<256xf32>, tensor<2x6xf32>) {
  %0 = arith.addf %arg0, %arg0 : tensor<2x6x256xf32>
  %1 = "qnn.f32_max"(%0) {axes = array<i64: 0, 1>} : (tensor<2x6x256xf32>) -> tensor<256xf32>
  %2 = "qnn.f32_max"(%0) {axes = array<i64: 2>} : (tensor<2x6x256xf32>) -> tensor<2x6xf32>
  return %1, %2 : tensor<256xf32>, tensor<2x6xf32>
}
