// RUN: %qopt %s --qnn-split-extremes | filecheck %s
// RUN: %qopt %s --compile-to=linalg --target=avx512vnni | filecheck %s --check-prefix=KERNEL

// CHECK-LABEL: func.func @main(
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: %[[ROWS:.*]] = "qnn.f32_max"(%[[SUM]]) {axes = array<i64: 2>, keep_dims = true} : (tensor<1x6x256xf32>) -> tensor<1x6x1xf32>
// CHECK: "qnn.f32_max"(%[[ROWS]]) {axes = array<i64: 0, 1, 2>, keep_dims = true} : (tensor<1x6x1xf32>) -> tensor<1x1x1xf32>
// CHECK: %[[LEAST:.*]] = "qnn.f32_min"(%[[SUM]]) {axes = array<i64: 2>, keep_dims = true} : (tensor<1x6x256xf32>) -> tensor<1x6x1xf32>
// CHECK: "qnn.f32_min"(%[[LEAST]]) {axes = array<i64: 0, 1, 2>} : (tensor<1x6x1xf32>) -> tensor<f32>

// The sum and the extremes of its rows are one kernel.

// KERNEL: label = "rows"
// KERNEL-NOT: label = "arith.addf"
func.func @main(%arg0: tensor<1x6x256xf32>, %arg1: tensor<1x6x256xf32>) -> (tensor<1x1x1xf32>, tensor<f32>) {
  %0 = arith.addf %arg0, %arg1 : tensor<1x6x256xf32>
  %1 = "qnn.f32_max"(%0) {axes = array<i64: 0, 1, 2>, keep_dims = true} : (tensor<1x6x256xf32>) -> tensor<1x1x1xf32>
  %2 = "qnn.f32_min"(%0) {axes = array<i64: 0, 1, 2>, keep_dims = false} : (tensor<1x6x256xf32>) -> tensor<f32>
  return %1, %2 : tensor<1x1x1xf32>, tensor<f32>
}
