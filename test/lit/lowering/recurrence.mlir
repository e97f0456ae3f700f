// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s

// A recurrent cell is one kernel with a loop over time: a product that keeps its sums in registers, then vectors of
// gates. No code is repeated for a time step and nothing is allocated.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} to %c100
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<1x64xf32>)
// CHECK: math.fma
// CHECK: vector.transfer_read {{.*}} vector<16xf32>
// CHECK-NOT: math.exp
// CHECK: vector.transfer_write {{.*}} vector<16xf32>
// CHECK: vector.transfer_write {{.*}} vector<16xf32>
// CHECK-NOT: scf.for
// CHECK-LABEL: func.func @main(
// CHECK: {qnn.label = "qnn.f32_lstm"}
// CHECK-NOT: qnn.label
func.func @main(%gates: tensor<100x1x64xf32>, %initial: tensor<1x32xf32>) -> tensor<101x1x32xf32> {
  %recurrence = arith.constant dense<0.125> : tensor<16x64xf32>
  %states = "qnn.f32_lstm"(%gates, %recurrence, %initial)
    : (tensor<100x1x64xf32>, tensor<16x64xf32>, tensor<1x32xf32>) -> tensor<101x1x32xf32>
  return %states : tensor<101x1x32xf32>
}
