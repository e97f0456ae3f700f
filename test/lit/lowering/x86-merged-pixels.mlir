// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s

// Windows two pixels apart: 64 lanes are 16 channels of 4 pixels, whose bytes lie 32 apart in the input and side by side
// in the output.  Six pixels are four and, reaching back, four.

// LINALG-LABEL: func.func private @kernel_2(
// LINALG: memref.reinterpret_cast %{{.*}} sizes: [2, 1, 1, 3, 3, 2, 2, 2, 2, 4], strides: [416, 64, 128, 208, 16, 8, 4, 64, 32, 1]
// LINALG: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [2, 1, 1, 2, 2, 2, 2, 4], strides: [96, 64, 64, 8, 4, 32, 16, 1]
// LINALG: memref.reinterpret_cast %{{.*}} to offset: [32], sizes: [2, 1, 1, 2, 2, 2, 2, 4], strides: [96, 64, 64, 8, 4, 32, 16, 1]

// A tap's bytes are in two vectors.

// CHECK-LABEL: func.func private @kernel_2(
// CHECK-COUNT-2: llvm.load %{{.*}} -> vector<64xi8>
// CHECK: vector.shuffle %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 32, 33, 34
// CHECK: llvm.x86.avx512.vpdpbusd.512
// CHECK: llvm.x86.avx512.packuswb.512
// CHECK-NOT: vector.contract
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<1x4x13x16xui8>) -> tensor<1x2x6x16xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<16x3x3x1xi8>} : () -> tensor<16x3x3x1xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 1, 0>,
    dilation = array<i64: 1, 1>, groups = 16 : i64
  } : (tensor<1x4x13x16xui8>, tensor<16x3x3x1xi8>) -> tensor<1x2x6x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x2x6x16xi32>) -> tensor<1x2x6x16xui8>
  return %1 : tensor<1x2x6x16xui8>
}
