// RUN: %qopt %s --qnn-fuse-dequantize | filecheck %s
// RUN: %qopt %s --fuse-qnn | filecheck %s --check-prefix=ALL

// CHECK-LABEL: func.func @scales_and_bias(
// CHECK-DAG: [[BIAS:%.*]] = "qnn.constant"() {value = dense<[1.000000e+00, -2.000000e+00]> : tensor<2xf32>}
// CHECK-DAG: [[ONE:%.*]] = "qnn.constant"() {value = dense<1.000000e+00> : tensor<f32>}
// CHECK-DAG: [[POINT:%.*]] = "qnn.constant"() {value = dense<7> : tensor<ui8>}
// CHECK: "qnn.dynamic_dense"(%arg0, %{{.*}}, [[ONE]], [[POINT]], [[BIAS]])
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01, 5.000000e-01>
// CHECK-NOT: arith
// ALL-LABEL: func.func @scales_and_bias(
// ALL: "qnn.dynamic_dense"
func.func @scales_and_bias(%data: tensor<3x2xui8>) -> tensor<3x2xf32> {
  %w = "qnn.constant"() {value = dense<[[1, 2], [-3, 4]]> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %acc = "qnn.dense"(%data, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.5, 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %real = "qnn.dequantize"(%acc) {
    axis = 1 : i64, scales = array<f64: 0.25, 0.5>, zero_points = array<i64: 0>
  } : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %b = "qnn.constant"() {value = dense<[1.0, -2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %bs = "qnn.broadcast"(%b) {shape = array<i64: 3, 2>} : (tensor<2xf32>) -> tensor<3x2xf32>
  %y = arith.addf %real, %bs : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @padded_convolution(
// CHECK: "qnn.dynamic_conv2d"(%arg0
// CHECK-SAME: padding = array<i64: 0, 1, 2, 1>, strides = array<i64: 2, 2>
func.func @padded_convolution(%data: tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xf32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<2x3x3x2xi8>} : () -> tensor<2x3x3x2xi8>
  %acc = "qnn.conv2d"(%data, %w) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 1.0>,
    padding = array<i64: 0, 1, 2, 1>, strides = array<i64: 2, 2>
  } : (tensor<1x4x4x2xi8>, tensor<2x3x3x2xi8>) -> tensor<1x2x2x2xi32>
  %real = "qnn.dequantize"(%acc) {scales = array<f64: 0.5>, zero_points = array<i64: 0>}
    : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  return %real : tensor<1x2x2x2xf32>
}
