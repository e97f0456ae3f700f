// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s --check-prefix=EIGHT
// RUN: %qopt %s --compile-to=fused | filecheck %s --check-prefix=FUSED

// A convolution, a depthwise and a pointwise one, as in MobileNet: one kernel per layer and nothing in between but the
// padding of the depthwise layer's input, which the first layer's kernel writes inside of.

// CHECK-LABEL: func.func private @kernel_1(
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [112], sizes: [4, 4, 1, 1, 16], strides: [96, 16, 16, 16, 1]
// CHECK-LABEL: func.func @main(
// CHECK: call {{.*}}"padding"
// CHECK: call {{.*}}"qnn.fused_conv2d"
// CHECK: call {{.*}}"qnn.fused_conv2d"
// CHECK: call {{.*}}"qnn.fused_conv2d"
// CHECK-NOT: call

// R6: what a fused op reads and writes is 8-bit.
// FUSED: "qnn.fused_conv2d"{{.*}} : (tensor<1x6x6x8xui8>, tensor<16x3x3x8xi8>, tensor<16xi32>) -> tensor<1x4x4x16xui8>
// FUSED: "qnn.fused_conv2d"{{.*}} -> tensor<1x4x4x16xui8>
// FUSED: "qnn.fused_conv2d"{{.*}} -> tensor<1x4x4x32xui8>
// FUSED-NOT: xi16>

// R7: so are the buffers between kernels; nothing is widened outside of one.
// EIGHT-LABEL: func.func @main(
// EIGHT-SAME: memref<288xi8>, %{{.*}}: memref<512xi8>, %{{.*}}: memref<{{.*}}xi8>, %{{.*}}: memref<{{.*}}xi8>)
// EIGHT-NOT: memref.view %arg3{{.*}} to memref<{{[0-9]+}}xi{{16|32|64}}>
// EIGHT-NOT: memref.alloc
func.func @main(%x: tensor<1x6x6x8xui8>) -> tensor<1x4x4x32xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<16x3x3x8xi8>} : () -> tensor<16x3x3x8xi8>
  %w1 = "qnn.constant"() {value = dense<3> : tensor<16x3x3x1xi8>} : () -> tensor<16x3x3x1xi8>
  %w2 = "qnn.constant"() {value = dense<3> : tensor<32x1x1x16xi8>} : () -> tensor<32x1x1x16xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x6x6x8xui8>, tensor<16x3x3x8xi8>) -> tensor<1x4x4x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x16xi32>) -> tensor<1x4x4x16xui8>
  %2 = "qnn.conv2d"(%1, %w1) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 16 : i64
  } : (tensor<1x4x4x16xui8>, tensor<16x3x3x1xi8>) -> tensor<1x4x4x16xi32>
  %3 = "qnn.requantize"(%2) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x16xi32>) -> tensor<1x4x4x16xui8>
  %4 = "qnn.conv2d"(%3, %w2) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x16xui8>, tensor<32x1x1x16xi8>) -> tensor<1x4x4x32xi32>
  %5 = "qnn.requantize"(%4) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x32xi32>) -> tensor<1x4x4x32xui8>
  return %5 : tensor<1x4x4x32xui8>
}
