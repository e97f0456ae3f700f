// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s

// A convolution is a strided matrix product: the windows are a view with overlapping strides, no im2col copies them.
// Contraction and epilogue are two generics of one micro-kernel; what the next step must know stands on them.

// CHECK-LABEL: func.func private @kernel_0(
// The weights: channel tiles, kernel rows, K groups of a row's taps, vectors, lanes, four taps.
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [1, 3, 6, 4, 16, 4],
// CHECK-SAME: strides: [4608, 1536, 256, 64, 4, 1]
// The data: output rows and columns, kernel rows, K groups of the run of 24 bytes that the 3 pixels of a kernel row are.
// Rows overlap (80 bytes per output row and per kernel row), and so do columns (8 bytes each, 24 read).
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [6, 8, 3, 6, 4], strides: [80, 8, 80, 4, 1]
// CHECK: linalg.generic
// CHECK-SAME: qnn.micro_kernel = 0 : i64, qnn.role = "contraction_fill"
// CHECK: linalg.generic {{.*}}, "reduction", "reduction", "reduction"]}
// CHECK-SAME: qnn.micro_kernel = 0 : i64, qnn.role = "contraction", qnn.tiles = array<i64: 0, 0, 0, 0, 0, 1, 1, 0>
// CHECK: arith.extui %{{.*}} : i8 to i32
// CHECK: arith.extsi %{{.*}} : i8 to i32
// CHECK: arith.muli
// CHECK: arith.addi
// CHECK: linalg.yield %{{.*}} : i32
// The result: rows, columns, channel tiles, vectors, lanes; it is written where it belongs.
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [6, 8, 1, 4, 16], strides: [512, 64, 64, 16, 1]
// CHECK: bufferization.to_tensor %{{.*}} restrict writable
// CHECK: linalg.generic
// CHECK-NOT: "reduction"
// CHECK-SAME: qnn.micro_kernel = 0 : i64, qnn.role = "root", qnn.tiles = array<i64: 1, {{[0-9]+}}, 1, 0, 0>
// CHECK: linalg.yield %{{.*}} : i8
// CHECK: bufferization.materialize_in_destination
// CHECK-NOT: linalg.generic
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<1x8x10x8xui8>) -> tensor<1x6x8x64xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<64x3x3x8xi8>} : () -> tensor<64x3x3x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x8x10x8xui8>, tensor<64x3x3x8xi8>) -> tensor<1x6x8x64xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x6x8x64xi32>) -> tensor<1x6x8x64xui8>
  return %1 : tensor<1x6x8x64xui8>
}
