// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s

// Weights of 256 KiB and more are met by tall tiles of 2 vectors, and fetched ahead: on Zen 4 by 8 KiB, 64 iterations of
// 128 bytes.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: %[[AHEAD:.*]] = arith.constant 64 : index
// CHECK: scf.for %[[STEP:.*]] = %{{.*}} to %c256 {{.*}} -> (vector<14x1x2x16xi32>)
// CHECK: memref.prefetch %{{.*}}, read, locality<3>, data
// CHECK: %[[LATER:.*]] = arith.addi %[[STEP]], %[[AHEAD]]
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %[[LATER]], %c0, %c0, %c0], read, locality<2>, data
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %[[LATER]], %c1, %c0, %c0], read, locality<2>, data
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<28x1024xui8>) -> tensor<28x256xi32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<256x1024xi8>} : () -> tensor<256x1024xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<28x1024xui8>, tensor<256x1024xi8>) -> tensor<28x256xi32>
  return %0 : tensor<28x256xi32>
}
