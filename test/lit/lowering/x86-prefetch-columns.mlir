// RUN: %qopt %s --compile-to=x86 --target=avx512bf16 --mattr=tune=emeraldrapids | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512bf16 | filecheck %s --check-prefix=STREAMED

// The third level of a Golden Cove delivers weights no faster than tall tiles take them. Larger ones than stay in the
// second level meet all rows, a tile of columns at a time, and each of 8 tiles of rows fetches an eighth of the next
// columns: 64 of 512 steps. A Zen 4 reads them anew for each tile of rows, and fetches ahead.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: scf.for %[[COLUMN:.*]] = %{{.*}} to %c24 step %c1 {
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %c104 step %c13 {
// CHECK: scf.for %[[STEP:.*]] = %{{.*}} to %c512 {{.*}} -> (vector<13x1x2x16xi32>)
// CHECK: %[[TILE:.*]] = arith.divui %[[ROW]], %c13
// CHECK: %[[START:.*]] = arith.muli %[[TILE]], %c64
// CHECK: %[[PART:.*]] = arith.shrui %[[STEP]], %c3
// CHECK: %[[FETCHED:.*]] = arith.addi %[[START]], %[[PART]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[COLUMN]], %c1
// CHECK: memref.prefetch %{{.*}}[%[[NEXT]], %[[FETCHED]], %c0, %c0, %c0], read, locality<2>, data

// STREAMED-LABEL: func.func private @kernel_0(
// STREAMED: scf.for %{{.*}} = %{{.*}} to %c104 step %c13 {
// STREAMED: scf.for %[[COLUMN:.*]] = %{{.*}} to %c24 step %c1 {
// STREAMED: memref.prefetch %{{.*}}[%[[COLUMN]], %{{.*}}, %c0, %c0, %c0], read, locality<2>, data
func.func @main(%x: tensor<128x2048xui8>) -> tensor<128x768xi32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<768x2048xi8>} : () -> tensor<768x2048xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<128x2048xui8>, tensor<768x2048xi8>) -> tensor<128x768xi32>
  return %0 : tensor<128x768xi32>
}
