// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s

// R5: convolution, activation, convolution: two kernels, and nothing rearranges data in between.  The second reads the
// buffer that the first one writes.

// CHECK-LABEL: func.func @main(
// CHECK: %[[BETWEEN:.*]] = memref.view %arg3[%{{.*}}][] : memref<{{[0-9]+}}xi8> to memref<512xi8>
// CHECK: call @kernel_0(%arg0, %[[BETWEEN]],{{.*}} {qnn.label = "qnn.fused_conv2d"}
// CHECK: %[[OFFSET:.*]] = arith.constant 0 : index
// CHECK-NEXT: memref.view %arg3[%[[OFFSET]]][] : memref<{{[0-9]+}}xi8> to memref<512xi8>
// CHECK: call @kernel_1(
// CHECK-SAME: {qnn.label = "qnn.fused_conv2d"}
// CHECK-NOT: call
func.func @main(%x: tensor<1x4x4x16xui8>) -> tensor<1x4x4x16xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<32x1x1x16xi8>} : () -> tensor<32x1x1x16xi8>
  %w1 = "qnn.constant"() {value = dense<3> : tensor<16x1x1x32xi8>} : () -> tensor<16x1x1x32xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x16xui8>, tensor<32x1x1x16xi8>) -> tensor<1x4x4x32xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x32xi32>) -> tensor<1x4x4x32xui8>
  %2 = "qnn.hardswish"(%1) {
    input_scale = 2.0 : f64, input_zero_point = 3 : i64, output_scale = 0.5 : f64, output_zero_point = 7 : i64,
    entries = "half_away_divide", nan = "max", mode = "lut"
  } : (tensor<1x4x4x32xui8>) -> tensor<1x4x4x32xui8>
  %3 = "qnn.conv2d"(%2, %w1) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x32xui8>, tensor<16x1x1x32xi8>) -> tensor<1x4x4x16xi32>
  %4 = "qnn.requantize"(%3) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x16xi32>) -> tensor<1x4x4x16xui8>
  return %4 : tensor<1x4x4x16xui8>
}
