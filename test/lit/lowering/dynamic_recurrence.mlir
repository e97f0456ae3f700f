// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s

// In each time step the range of the hidden states is found, they become bytes, and bytes are multiplied.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} to %c100
// CHECK: minimumf
// CHECK: maximumf
// CHECK: math.roundeven
// CHECK: scf.for {{.*}} to %c4
// CHECK: llvm.x86.avx512.vpdpbusd.512
// CHECK: math.fma
// CHECK-LABEL: func.func @main(
// CHECK: {qnn.label = "qnn.dynamic_lstm"}
// CHECK-NOT: qnn.label
func.func @main(%gates: tensor<100x1x64xf32>, %initial: tensor<1x32xf32>) -> tensor<101x1x32xf32> {
  %recurrence = arith.constant dense<5> : tensor<16x64xi8>
  %scales = arith.constant dense<0.125> : tensor<64xf32>
  %states = "qnn.dynamic_lstm"(%gates, %recurrence, %initial, %scales)
    : (tensor<100x1x64xf32>, tensor<16x64xi8>, tensor<1x32xf32>, tensor<64xf32>) -> tensor<101x1x32xf32>
  return %states : tensor<101x1x32xf32>
}
