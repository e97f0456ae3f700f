// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=generic | filecheck %s --check-prefix=GENERIC

// Depthwise convolution by dot products: the loops over 64 lanes put unpacked bytes in place.

// LINALG-LABEL: func.func private @kernel_3(
// LINALG: memref.reinterpret_cast %{{.*}} sizes: [3, 1, 5, 3, 3, 2, 2, 2, 2, 4], strides: [448, 64, 64, 448, 64, 8, 4, 32, 16, 1]
// LINALG: memref.reinterpret_cast %{{.*}} sizes: [3, 1, 2, 2, 2, 2, 4, 3], strides: [256, 256, 128, 64, 32, 16, 4, 1]
// LINALG: qnn.role = "k_groups0"
// LINALG: memref.reinterpret_cast %{{.*}} sizes: [3, 1, 5, 2, 2, 2, 2, 4], strides: [{{[0-9]+}}, 64, 64, 8, 4, 32, 16, 1]

// Three output rows look at five input rows, whose three columns are loaded and unpacked once.

// CHECK-LABEL: func.func private @kernel_3(
// CHECK-COUNT-3: llvm.load %{{.*}} -> vector<64xi8>
// CHECK-COUNT-4: llvm.shufflevector %{{.*}} : vector<64xi8>
// CHECK-COUNT-4: llvm.shufflevector %{{.*}} : vector<32xi16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK-COUNT-16: llvm.shufflevector %{{.*}} : vector<64xi8>
// CHECK-NOT: llvm.shufflevector %{{.*}} : vector<64xi8>
// CHECK-NOT: vector.contract
// CHECK-COUNT-3: llvm.x86.avx512.packuswb.512
// CHECK-NOT: permvar
// CHECK: vector.store %{{.*}}, vector<64xi8>
// CHECK-LABEL: func.func private @kernel_

// Two K groups of columns are two dot products after each other.

// LINALG: qnn.role = "k_groups0"
// LINALG: qnn.role = "k_groups1"

// A kernel of many K groups is multiplied tap by tap.

// LINALG: qnn.role = "contraction"

// GENERIC-NOT: llvm.x86
// GENERIC-NOT: vector.shuffle
// GENERIC-LABEL: func.func @main(
func.func @main(%x: tensor<1x5x5x64xui8>) -> tensor<1x5x5x64xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<64x3x3x1xi8>} : () -> tensor<64x3x3x1xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 64 : i64
  } : (tensor<1x5x5x64xui8>, tensor<64x3x3x1xi8>) -> tensor<1x5x5x64xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x5x5x64xi32>) -> tensor<1x5x5x64xui8>
  %w1 = "qnn.constant"() {value = dense<3> : tensor<64x5x5x1xi8>} : () -> tensor<64x5x5x1xi8>
  %2 = "qnn.conv2d"(%1, %w1) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 2, 2>,
    dilation = array<i64: 1, 1>, groups = 64 : i64
  } : (tensor<1x5x5x64xui8>, tensor<64x5x5x1xi8>) -> tensor<1x5x5x64xi32>
  %3 = "qnn.requantize"(%2) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x5x5x64xi32>) -> tensor<1x5x5x64xui8>
  %w2 = "qnn.constant"() {value = dense<3> : tensor<64x9x9x1xi8>} : () -> tensor<64x9x9x1xi8>
  %4 = "qnn.conv2d"(%3, %w2) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 4, 4, 4, 4>,
    dilation = array<i64: 1, 1>, groups = 64 : i64
  } : (tensor<1x5x5x64xui8>, tensor<64x9x9x1xi8>) -> tensor<1x5x5x64xi32>
  %5 = "qnn.requantize"(%4) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x5x5x64xi32>) -> tensor<1x5x5x64xui8>
  return %5 : tensor<1x5x5x64xui8>
}
