// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s
// RUN: %qopt %s --compile-to=llvm --target=generic | filecheck %s --check-prefix=GENERIC

// While a tile of 6 rows is at work, the rows of the next one are fetched: 6 rows of 512 bytes in 128 steps, 24 bytes or
// 6 K groups a step.  What is left over at the end has nothing after it.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: %[[TILE:.*]] = arith.constant 6 : index
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %c48
// CHECK: scf.for %[[STEP:.*]] = %{{.*}} to %c128
// CHECK-DAG: %[[NEXT:.*]] = arith.addi %[[ROW]], %[[TILE]]
// CHECK-DAG: %[[AHEAD:.*]] = arith.muli %[[STEP]], %[[TILE]]
// CHECK: memref.prefetch %{{.*}}[%[[NEXT]], %[[AHEAD]], %{{.*}}], read, locality<3>, data
// CHECK-NOT: memref.prefetch
// CHECK-LABEL: func.func @main(

// GENERIC-NOT: prefetch
func.func @main(%x: tensor<52x512xui8>) -> tensor<52x64xi32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<64x512xi8>} : () -> tensor<64x512xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<52x512xui8>, tensor<64x512xi8>) -> tensor<52x64xi32>
  return %0 : tensor<52x64xi32>
}
