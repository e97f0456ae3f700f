// RUN: %qopt %s --compile-to=fused | %qopt - --compile-to=linalg --target=avx512vbmi | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | %qopt - --canonicalize | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | %qopt - | filecheck %s --check-prefix=VECTOR
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | %qopt - | filecheck %s --check-prefix=X86
// RUN: %qopt %s --compile-to=llvm --target=avx512vbmi | %qopt - | filecheck %s --check-prefix=LLVM
// RUN: %qopt %s --compile-to=llvm --target=avx512vbmi -o %t.first
// RUN: %qopt %t.first -o %t.second
// RUN: diff %t.first %t.second

// What is printed at a phase is a module that can be read again, and printed alike; a fused one is lowered from there.

// LINALG: linalg.generic
// VECTOR: vector.contract
// X86: vpdpbusd.256
// LLVM: llvm.func @main(
func.func @main(%x: tensor<1x4x4x4xi8>) -> tensor<1x4x4x8xi8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<8x3x3x4xi8>} : () -> tensor<8x3x3x4xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x4xi8>, tensor<8x3x3x4xi8>) -> tensor<1x4x4x8xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = -3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x8xi32>) -> tensor<1x4x4x8xi8>
  return %1 : tensor<1x4x4x8xi8>
}
