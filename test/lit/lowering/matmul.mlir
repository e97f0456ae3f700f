// RUN: %qopt %s --compile-to=fused | filecheck %s --check-prefix=FUSED
// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s --check-prefix=X86

// A product of two tensors known at run time: one 8-bit op, three kernels.  The right operand is packed as constant
// weights are, the sums of its columns make the accumulators' start, and the matrices are the groups of one contraction.

// FUSED: "qnn.fused_matmul"(%arg0, %arg1,
// FUSED-SAME: (tensor<4x16x32xi8>, tensor<4x32x64xi8>, tensor<64xi32>) -> tensor<4x16x64xi8>
// FUSED-NOT: xi32>) -> tensor<4x16x64xi32>

// Four rows are read along the channels and written as K groups, 32-bit numbers of one byte of each row:
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [32, 64], strides: [256, 1]
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [64], sizes: [32, 64], strides: [256, 1]
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [128], sizes: [32, 64], strides: [256, 1]
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [192], sizes: [32, 64], strides: [256, 1]
// CHECK: bufferization.to_tensor %{{.*}} restrict writable : {{.*}} to tensor<32x64xi32>
// CHECK-LABEL: func.func @main(
// CHECK: {qnn.label = "pack"}
// CHECK: {qnn.label = "column sums"}
// CHECK: {qnn.label = "qnn.fused_matmul"}
// CHECK-NOT: qnn.fused_matmul

// X86: llvm.x86.avx512.vpdpbusd.512
// X86-NOT: vector.contract
// X86-NOT: vector.gather
func.func @main(%x: tensor<4x16x32xi8>, %w: tensor<4x32x64xi8>) -> tensor<4x16x64xi8> {
  %0 = "qnn.matmul"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<4x16x32xi8>, tensor<4x32x64xi8>) -> tensor<4x16x64xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = -5 : i64, axis = 2 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<4x16x64xi32>) -> tensor<4x16x64xi8>
  return %1 : tensor<4x16x64xi8>
}
