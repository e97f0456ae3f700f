// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=llvm --target=generic | filecheck %s --check-prefix=LLVM

// R8: padding is part of the input's layout, not a padded copy.  The 5x5 image has one column left and right and
// two rows below: [7, 7, 8] = 392 bytes.  Its border is filled with the zero point as it is stored, -100 + 128 = 28.

// Before the image, between the rows, after the image:
// CHECK-LABEL: func.func private @kernel_0(
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [8], strides: [1]
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [48], sizes: [4, 16], strides: [56, 1]
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [272], sizes: [64], strides: [1]
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [336], sizes: [56], strides: [1]
// The image goes inside; signed quantized values c are stored as c + 128.
// CHECK-LABEL: func.func private @kernel_1(
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [8], sizes: [5, 40], strides: [56, 1]
// CHECK: arith.xori %{{.*}}, %c-128_i8
// The convolution reads the padding in place, with stride 2 in both directions.
// CHECK-LABEL: func.func private @kernel_2(
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [3, 3, 3, 6, 4], strides: [112, 16, 56, 4, 1]
// CHECK-LABEL: func.func @main(
// CHECK: %[[FILL:.*]] = arith.constant 28 : i8
// CHECK: call @kernel_0(%[[FILL]], %{{.*}}) {qnn.label = "padding"}
// CHECK: call @kernel_1({{.*}}) {qnn.label = "input 0"}
// CHECK: call @kernel_2({{.*}}) {qnn.label = "qnn.fused_conv2d"}

// LLVM-NOT: @malloc
// LLVM-NOT: llvm.alloca
func.func @main(%x: tensor<1x5x5x8xi8>) -> tensor<1x3x3x16xi8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<16x3x3x8xi8>} : () -> tensor<16x3x3x8xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = -100 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 2, 2>, padding = array<i64: 0, 1, 2, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x5x5x8xi8>, tensor<16x3x3x8xi8>) -> tensor<1x3x3x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = -5 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x3x3x16xi32>) -> tensor<1x3x3x16xi8>
  return %1 : tensor<1x3x3x16xi8>
}
