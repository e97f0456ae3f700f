// RUN: %qopt %s --compile-to=x86 --target=avx2 | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=haswell | filecheck %s --check-prefix=HASWELL

// Words of weights that exceed half of the first level are fetched 1024 bytes ahead, a line at each step: 16 steps of 2
// vectors of 32 bytes.

// CHECK-LABEL: func.func private @kernel_1(
// CHECK: %[[AHEAD:.*]] = arith.constant 16 : index
// CHECK: scf.for %[[STEP:.*]] = %{{.*}} to %c512
// CHECK: %[[LATER:.*]] = arith.addi %[[STEP]], %[[AHEAD]]
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %[[LATER]], %c0, %c0, %c0], read, locality<3>, data
// CHECK-NOT: memref.prefetch
// CHECK: llvm.x86.avx2.pmadd.wd
// CHECK-LABEL: func.func @main(

// HASWELL-NOT: locality<3>{{.*}}xi16
func.func @main(%x: tensor<48x1024xui8>) -> tensor<48x256xi32> {
  %w = "qnn.constant"() {value = dense<127> : tensor<256x1024xi8>} : () -> tensor<256x1024xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<48x1024xui8>, tensor<256x1024xi8>) -> tensor<48x256xi32>
  return %0 : tensor<48x256xi32>
}
