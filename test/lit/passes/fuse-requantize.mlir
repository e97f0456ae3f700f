// RUN: %qopt %s --qnn-fuse-requantize | filecheck %s

// Covers R11, R12 (requantize): every scale and zero point of both ops is on the fused op, absent stages repeat it.
// Covers R6, R7: the kernel is 8-bit in and 8-bit out.

// CHECK-LABEL: func.func @conv(
// CHECK-NOT: "qnn.conv2d"
// CHECK: "qnn.fused_conv2d"(%arg0,
// CHECK-SAME: epilogue = [{requantize = {rounding = "fixed64_up"}}]
// CHECK-SAME: input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64
// CHECK-SAME: output_scale = 5.000000e-01 : f64, output_zero_point = 10 : i64
// CHECK-SAME: strides = array<i64: 2, 1>
// CHECK-SAME: weight_scales = array<f64: 5.000000e-01, 2.500000e-01>
// CHECK-SAME: (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x2x4x2xui8>
func.func @conv(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x2x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<[5, 6]> : tensor<2xi32>} : () -> tensor<2xi32>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %2 = "qnn.conv2d"(%arg0, %1, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x2x4x2xi32>
  %3 = "qnn.requantize"(%2) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x2x4x2xi32>) -> tensor<1x2x4x2xui8>
  return %3 : tensor<1x2x4x2xui8>
}

// CHECK-LABEL: func.func @dense_without_bias(
// CHECK: [[BIAS:%.*]] = "qnn.constant"() {value = dense<0> : tensor<2xi32>}
// CHECK: "qnn.fused_dense"(%arg0, %{{.*}}, [[BIAS]])
// CHECK-SAME: epilogue = [{requantize = {rounding = {{"[a-z0-9_]+"}}}}]
func.func @dense_without_bias(%arg0: tensor<3x2xi8>) -> tensor<3x2xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %1 = "qnn.dense"(%arg0, %0) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<3x2xi8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 0 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5>
  } : (tensor<3x2xi32>) -> tensor<3x2xi8>
  return %2 : tensor<3x2xi8>
}
