// Every phase can be stopped at.
// RUN: %qopt %s --compile-to=qnn | filecheck %s --check-prefix=QNN
// RUN: %qopt %s --compile-to=fused | filecheck %s --check-prefix=FUSED
// RUN: %qopt %s --compile-to=linalg | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=vector | filecheck %s --check-prefix=VECTOR
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s --check-prefix=X86
// RUN: %qopt %s --compile-to=x86 --target=generic | filecheck %s --check-prefix=GENERIC
// RUN: %qopt %s --compile-to=llvm --target=avx512vnni | filecheck %s --check-prefix=LLVM
// RUN: %qopt %s --compile-to=llvm --fuse-qnn | filecheck %s --check-prefix=LLVM
// RUN: not %qopt %s --compile-to=asm 2>&1 | filecheck %s --check-prefix=PHASE
// RUN: not %qopt %s --compile-to=llvm --threads=0 2>&1 | filecheck %s --check-prefix=THREADS
// RUN: not %qopt %s --compile-to=llvm --target=z80 2>&1 | filecheck %s --check-prefix=TARGET

// QNN: "qnn.dense"
// QNN: "qnn.requantize"
// FUSED-NOT: "qnn.dense"
// FUSED: "qnn.fused_dense"
// FUSED-NOT: "qnn.requantize"
// LINALG: linalg.generic
// VECTOR: vector.contract
// X86: vpdpbusd
// GENERIC-NOT: vpdpbusd
// LLVM: llvm.func
// LLVM-NOT: func.func
// PHASE: error: argument --compile-to: invalid choice: 'asm' (choose from
// THREADS: error: argument --threads: must be an integer from 1 to 256, but got 0
// TARGET: error: target must be one of host, generic, {{.*}}, but got 'z80'

func.func @main(%x: tensor<4x64xi8>) -> tensor<4x32xi8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<32x64xi8>} : () -> tensor<32x64xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 0>
  } : (tensor<4x64xi8>, tensor<32x64xi8>) -> tensor<4x32xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = -3 : i64, axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<4x32xi32>) -> tensor<4x32xi8>
  return %1 : tensor<4x32xi8>
}
