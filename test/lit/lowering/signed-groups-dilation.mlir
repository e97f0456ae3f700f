// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s --check-prefix=X86

// N3: signed data with groups and dilation.  Signed quantized values are stored as c + 128, the zero point -128 as 0, so the
// kernel reads unsigned bytes whatever the window looks like; the group is one more axis, dilation a stride.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: arith.xori %{{.*}}, %c-128_i8 : i8
// CHECK-LABEL: func.func private @kernel_1(
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [2, 3, 3, 3, 3, 1, 4], strides: [4, 56, 8, 112, 16, 4, 1]
// CHECK: arith.extui %{{.*}} : i8 to i32
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [2, 3, 3, 1, 1, 8], strides: [8, 48, 16, 8, 8, 1]
// CHECK-LABEL: func.func private @kernel_2(
// CHECK: arith.xori %{{.*}}, %c-128_i8 : i8

// X86-LABEL: func.func private @kernel_1(
// X86-COUNT-3: "llvm.x86.avx512.vpdpbusd.256"
// X86-NOT: vector.contract
// X86-LABEL: func.func private @kernel_2(
func.func @main(%x: tensor<1x7x7x8xi8>) -> tensor<1x3x3x16xi8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<16x3x3x4xi8>} : () -> tensor<16x3x3x4xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = -128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 2, 2>, groups = 2 : i64
  } : (tensor<1x7x7x8xi8>, tensor<16x3x3x4xi8>) -> tensor<1x3x3x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = -5 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x3x3x16xi32>) -> tensor<1x3x3x16xi8>
  return %1 : tensor<1x3x3x16xi8>
}
