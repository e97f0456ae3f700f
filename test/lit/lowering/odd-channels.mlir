// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s --check-prefix=X86

// N4: 3 channels in, 5 out.  The reduction is rounded up to a K group and the channels to 8 lanes, with weights of zero;
// what lies beyond the 5 channels never reaches the user's array.

// CHECK-LABEL: func.func private @kernel_1(
// Weights: one K group of taps, one vector of 8 lanes.
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [1, 1, 1, 8, 4],
// The data has 3 bytes per pixel: a K group reads one byte of the next.
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [16, 1, 4], strides: [3, 4, 1]
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [16, 1, 1, 8], strides: [8, 8, 8, 1]
// CHECK-LABEL: func.func private @kernel_2(
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [16, 5], strides: [8, 1]
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [16, 5], strides: [5, 1]
// CHECK-LABEL: func.func @main(
// CHECK-SAME: memref<48xi8>, %{{.*}}: memref<80xi8>
// CHECK: call @kernel_1(
// CHECK: call @kernel_2({{.*}}) {qnn.label = "output 0"}

// X86-LABEL: func.func private @kernel_1(
// X86: vpdpbusd.256
// X86-LABEL: func.func private @kernel_2(
func.func @main(%x: tensor<1x4x4x3xui8>) -> tensor<1x4x4x5xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<5x1x1x3xi8>} : () -> tensor<5x1x1x3xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x3xui8>, tensor<5x1x1x3xi8>) -> tensor<1x4x4x5xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x5xi32>) -> tensor<1x4x4x5xui8>
  return %1 : tensor<1x4x4x5xui8>
}
