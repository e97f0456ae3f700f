// RUN: %qopt %s --qnn-fuse-bias --qnn-fuse-requantize --qnn-fuse-clamp --qnn-fuse-residual --qnn-fuse-lut | filecheck %s
// RUN: %qopt %s --qnn-fuse-bias --qnn-fuse-requantize --qnn-fuse-clamp --qnn-fuse-residual --qnn-fuse-lut --qnn-decompose-fused | filecheck %s --check-prefix=APART

// Bias, requantization, clamp, residual sum and table become stages of a transposed convolution as of any other.

// CHECK-LABEL: func.func @stages(
// CHECK: [[BIAS:%.*]] = "qnn.constant"() {value = dense<100> : tensor<2xi32>}
// CHECK: "qnn.fused_conv_transpose2d"(%arg0, %{{.*}}, [[BIAS]], %arg1)
// CHECK-SAME: {clamp = {max = 255 : i64, min = 10 : i64}}, {add = {
// CHECK-SAME: residual_scale = 1.000000e+00 : f64
// CHECK-SAME: {lut = {table = dense<1> : tensor<256xi8>}}]
// CHECK-SAME: output_padding = array<i64: 1, 0>
// CHECK-NOT: qnn.requantize
// CHECK-NOT: qnn.add
// CHECK: return

// APART-LABEL: func.func @stages(
// APART: "qnn.conv_transpose2d"(%arg0,
// APART-SAME: output_padding = array<i64: 1, 0>, padding = array<i64: 1, 0, 0, 0>, strides = array<i64: 2, 1>
// APART: "qnn.requantize"
// APART: "qnn.clip"
// APART: "qnn.add"
// APART: "qnn.lut"
// APART: return
func.func @stages(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x9x5x2xui8>) -> tensor<1x9x5x2xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x3x2x2xi8>} : () -> tensor<2x3x2x2xi8>
  %b = "qnn.constant"() {value = dense<100> : tensor<1x9x5x2xi32>} : () -> tensor<1x9x5x2xi32>
  %0 = "qnn.conv_transpose2d"(%arg0, %w) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    output_padding = array<i64: 1, 0>, padding = array<i64: 1, 0, 0, 0>, strides = array<i64: 2, 1>,
    weight_scales = array<f64: 0.5, 0.25>, weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x3x2x2xi8>) -> tensor<1x9x5x2xi32>
  %1 = arith.addi %0, %b : tensor<1x9x5x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x9x5x2xi32>) -> tensor<1x9x5x2xui8>
  %3 = "qnn.clip"(%2) {min = 10 : i64, max = 255 : i64} : (tensor<1x9x5x2xui8>) -> tensor<1x9x5x2xui8>
  %4 = "qnn.add"(%3, %arg1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 2.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 1.0 : f64, rhs_zero_point = 4 : i64, rounding = "fixed64_up"
  } : (tensor<1x9x5x2xui8>, tensor<1x9x5x2xui8>) -> tensor<1x9x5x2xui8>
  %5 = "qnn.lut"(%4) {
    input_scale = 2.0 : f64, input_zero_point = 20 : i64, output_scale = 0.125 : f64, output_zero_point = 11 : i64,
    table = dense<1> : tensor<256xi8>
  } : (tensor<1x9x5x2xui8>) -> tensor<1x9x5x2xui8>
  return %5 : tensor<1x9x5x2xui8>
}
