// RUN: %qopt %s --qnn-fuse-dynamic-epilogue | filecheck %s

// CHECK-LABEL: func.func @zero_point_scale_and_bias(
// CHECK: [[BIAS:%.*]] = "qnn.constant"() {value = dense<[1.000000e+00, -2.000000e+00]> : tensor<2xf32>}
// CHECK: "qnn.dynamic_dense"(%arg0, %{{.*}}, %arg1, %arg2, [[BIAS]])
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>
// CHECK-NOT: arith
func.func @zero_point_scale_and_bias(%data: tensor<3x2xui8>, %scale: tensor<f32>, %point: tensor<ui8>) -> tensor<3x2xf32> {
  %0 = "qnn.constant"() {value = dense<[[1, 2], [-3, 4]]> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %1 = "qnn.dense"(%data, %0) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %2 = "qnn.constant"() {value = dense<[3, 1]> : tensor<2xi32>} : () -> tensor<2xi32>
  %3 = tensor.bitcast %point : tensor<ui8> to tensor<i8>
  %4 = arith.extui %3 : tensor<i8> to tensor<i32>
  %5 = "qnn.broadcast"(%4) {shape = array<i64: 2>} : (tensor<i32>) -> tensor<2xi32>
  %6 = arith.muli %2, %5 : tensor<2xi32>
  %7 = "qnn.broadcast"(%6) {shape = array<i64: 3, 2>} : (tensor<2xi32>) -> tensor<3x2xi32>
  %8 = arith.subi %1, %7 : tensor<3x2xi32>
  %9 = "qnn.dequantize"(%8) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %10 = "qnn.constant"() {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %11 = arith.mulf %scale, %10 : tensor<f32>
  %12 = "qnn.broadcast"(%11) {shape = array<i64: 3, 2>} : (tensor<f32>) -> tensor<3x2xf32>
  %13 = arith.mulf %9, %12 : tensor<3x2xf32>
  %14 = "qnn.constant"() {value = dense<[1.0, -2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %15 = "qnn.broadcast"(%14) {shape = array<i64: 3, 2>} : (tensor<2xf32>) -> tensor<3x2xf32>
  %16 = arith.addf %13, %15 : tensor<3x2xf32>
  return %16 : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @scale_by_row(
// CHECK: [[POINT:%.*]] = "qnn.constant"() {value = dense<0> : tensor<i8>}
// CHECK: "qnn.dynamic_dense"(%arg0, %{{.*}}, %arg1, [[POINT]])
// CHECK-NOT: arith
func.func @scale_by_row(%data: tensor<3x2xi8>, %scale: tensor<3x1xf32>) -> tensor<3x2xf32> {
  %0 = "qnn.constant"() {value = dense<[[1, 2], [-3, 4]]> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %1 = "qnn.dense"(%data, %0) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<3x2xi8>, tensor<2x2xi8>) -> tensor<3x2xi32>
  %2 = "qnn.dequantize"(%1) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<3x2xi32>) -> tensor<3x2xf32>
  %3 = "qnn.broadcast"(%scale) {shape = array<i64: 3, 2>} : (tensor<3x1xf32>) -> tensor<3x2xf32>
  %4 = arith.mulf %2, %3 : tensor<3x2xf32>
  return %4 : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @scales_of_channels(
// CHECK: "qnn.dynamic_conv2d"
// CHECK-SAME: strides = array<i64: 2, 2>, weight_scales = array<f64: 5.000000e-01, 2.500000e-01>
func.func @scales_of_channels(%data: tensor<1x3x3x2xui8>, %scale: tensor<f32>) -> tensor<1x2x2x2xf32> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%data, %0) {
    input_scale = 1.0 : f64, input_zero_point = 7 : i64, strides = array<i64: 2, 2>, weight_scales = array<f64: 1.0>
  } : (tensor<1x3x3x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  %2 = "qnn.dequantize"(%1) {scales = array<f64: 1.0>, zero_points = array<i64: 0>} : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xf32>
  %3 = "qnn.constant"() {value = dense<[0.5, 0.25]> : tensor<2xf32>} : () -> tensor<2xf32>
  %4 = "qnn.broadcast"(%scale) {shape = array<i64: 2>} : (tensor<f32>) -> tensor<2xf32>
  %5 = arith.mulf %4, %3 : tensor<2xf32>
  %6 = "qnn.broadcast"(%5) {shape = array<i64: 1, 2, 2, 2>} : (tensor<2xf32>) -> tensor<1x2x2x2xf32>
  %7 = arith.mulf %6, %2 : tensor<1x2x2x2xf32>
  return %7 : tensor<1x2x2x2xf32>
}

// CHECK-LABEL: func.func @activation(
// CHECK: "qnn.dynamic_dense"
// CHECK-SAME: activation = "relu"
// CHECK-NOT: arith
func.func @activation(%data: tensor<3x2xui8>, %scale: tensor<f32>, %point: tensor<ui8>) -> tensor<3x2xf32> {
  %0 = "qnn.constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %1 = "qnn.dynamic_dense"(%data, %0, %scale, %point)
    : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<f32>, tensor<ui8>) -> tensor<3x2xf32>
  %2 = "qnn.constant"() {value = dense<0.0> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %is_3 = arith.cmpf ogt, %2, %1 : tensor<3x2xf32>
  %3 = arith.select %is_3, %2, %1 : tensor<3x2xi1>, tensor<3x2xf32>
  return %3 : tensor<3x2xf32>
}
