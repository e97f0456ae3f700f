// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s --check-prefix=X86

// A transposed convolution of stride 2 is four ordinary ones: with a kernel of 3 the even rows and columns of the result
// see two taps, the odd ones see one.  Every kernel reads the padded image of 3 x 4 pixels, [5, 6, 16], and writes
// every other pixel of the result, [7, 9, 16], from the first pixel of its phase on.

// Rows and columns 0, 2, ..: two by two taps.
// CHECK-LABEL: func.func private @kernel_2(
// CHECK: memref.reinterpret_cast %arg0 to offset: [0], sizes: [4, 5, 2, 8, 4], strides: [96, 16, 96, 4, 1]
// CHECK: memref.reinterpret_cast %arg1 to offset: [0], sizes: [4, 5, 1, 1, 16], strides: [288, 32, 16, 16, 1]
// Rows and columns 1, 3, ..: one tap; a tile has all three rows of four pixels.
// CHECK-LABEL: func.func private @kernel_5(
// CHECK: memref.reinterpret_cast %arg0 to offset: [112], sizes: [3, 4, 4, 4], strides: [96, 16, 4, 1]
// CHECK: memref.reinterpret_cast %arg1 to offset: [160], sizes: [3, 4, 1, 1, 16], strides: [288, 32, 16, 16, 1]
// CHECK-LABEL: func.func @main(
// CHECK: {qnn.label = "padding"}
// CHECK: {qnn.label = "input 0"}
// CHECK: {qnn.label = "qnn.fused_conv_transpose2d"}
// CHECK: {qnn.label = "qnn.fused_conv_transpose2d"}
// CHECK: {qnn.label = "qnn.fused_conv_transpose2d"}
// CHECK: {qnn.label = "qnn.fused_conv_transpose2d"}
// CHECK-NOT: qnn.fused_conv_transpose2d

// X86: llvm.x86.avx512.vpdpbusd.512
// X86-NOT: vector.contract
// X86-NOT: vector.gather
func.func @main(%x: tensor<1x3x4x16xi8>) -> tensor<1x7x9x16xi8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<16x3x3x16xi8>} : () -> tensor<16x3x3x16xi8>
  %0 = "qnn.conv_transpose2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = -100 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>,
    output_padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x3x4x16xi8>, tensor<16x3x3x16xi8>) -> tensor<1x7x9x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = -5 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x7x9x16xi32>) -> tensor<1x7x9x16xi8>
  return %1 : tensor<1x7x9x16xi8>
}
