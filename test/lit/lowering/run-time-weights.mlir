// RUN: %qopt %s --fuse-qnn | filecheck %s --check-prefix=FUSED
// RUN: %qopt %s --compile-to=linalg --target=avx512vnni | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s --check-prefix=X86

// Covers R12: weights that are known at run time alone are packed, tap by tap, and the products are dot products.

// FUSED-LABEL: func.func @main(
// FUSED: "qnn.fused_conv2d"(%arg0, %arg1, %0)
// CHECK-LABEL: func.func @main(
// CHECK: qnn.label = "weights"
// CHECK: qnn.label = "pack"
// CHECK: qnn.label = "column sums"
// CHECK: qnn.label = "qnn.fused_conv2d"
// X86: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
func.func @main(%x: tensor<1x6x6x8xui8>, %w: tensor<16x3x3x8xi8>) -> tensor<1x6x6x16xui8> {
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>
  } : (tensor<1x6x6x8xui8>, tensor<16x3x3x8xi8>) -> tensor<1x6x6x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, output_scale = 2.0 : f64, output_zero_point = 3 : i64,
    axis = 3 : i64, rounding = "fixed64_up"
  } : (tensor<1x6x6x16xi32>) -> tensor<1x6x6x16xui8>
  return %1 : tensor<1x6x6x16xui8>
}
