// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s --check-prefix=VECTOR

// A softmax of rows is one kernel: a loop over blocks of 16 rows, between whose kernels scratch memory lies.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME: memref<16384xf32>, %{{[a-z0-9]+}}: memref<16384xf32>
// CHECK-SAME: {qnn.scratch}
// CHECK: %[[BLOCKS:.*]] = arith.constant 4 : index
// CHECK: scf.for {{.*}} to %[[BLOCKS]]
// CHECK: arith.maximumf
// CHECK: math.fma
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @main(
// CHECK: {qnn.label = "rows"}
// CHECK-NOT: qnn.label

// VECTOR-LABEL: func.func private @kernel_0(
// VECTOR: scf.for
// VECTOR: arith.maximumf {{.*}} vector<8x32xf32>
// VECTOR: math.fma {{.*}} vector<1x128xf32>
// VECTOR: vector.transfer_write %{{.*}}, %[[SCRATCH:[a-z_0-9]+]][
// VECTOR: vector.transfer_read %[[SCRATCH]][
// VECTOR: arith.divf {{.*}} vector<1x128xf32>
func.func @main(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %0 = "qnn.f32_max"(%x) {axes = array<i64: 1>, keep_dims = true} : (tensor<64x256xf32>) -> tensor<64x1xf32>
  %1 = "qnn.broadcast"(%0) {shape = array<i64: 64, 256>} : (tensor<64x1xf32>) -> tensor<64x256xf32>
  %2 = arith.subf %x, %1 : tensor<64x256xf32>
  %3 = math.exp %2 : tensor<64x256xf32>
  %4 = "qnn.f32_sum"(%3) {axes = array<i64: 1>, keep_dims = true} : (tensor<64x256xf32>) -> tensor<64x1xf32>
  %5 = "qnn.broadcast"(%4) {shape = array<i64: 64, 256>} : (tensor<64x1xf32>) -> tensor<64x256xf32>
  %6 = arith.divf %3, %5 : tensor<64x256xf32>
  return %6 : tensor<64x256xf32>
}
