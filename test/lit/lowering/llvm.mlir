// RUN: %qopt %s --compile-to=llvm --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=llvm --target=avx512vbmi | filecheck %s --check-prefix=ALONE
// RUN: %qopt %s --compile-to=llvm --target=generic | filecheck %s --check-prefix=GENERIC

// The last phase is the LLVM dialect alone; functions take bare pointers, as C's do. Callers get no copy of a kernel.

// CHECK: llvm.func internal @kernel_0(%{{[a-z0-9]+}}: !llvm.ptr,{{.*}} attributes {no_inline, sym_visibility = "private"} {
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: llvm.func @main(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: !llvm.ptr) {
// CHECK: llvm.call @kernel_0(

// ALONE-NOT: func.func
// ALONE-NOT: {{(arith|memref|scf|cf|vector|index|ub|math|affine)\.[a-z_]+ }}
// ALONE-NOT: unrealized_conversion_cast

// GENERIC: llvm.func internal @kernel_0(
// GENERIC-NOT: llvm.x86
// GENERIC: llvm.func @main(
func.func @main(%x: tensor<4x64xui8>) -> tensor<4x32xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<32x64xi8>} : () -> tensor<32x64xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<4x64xui8>, tensor<32x64xi8>) -> tensor<4x32xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 1 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<4x32xi32>) -> tensor<4x32xui8>
  return %1 : tensor<4x32xui8>
}
