// RUN: %qopt %s --qnn-raise-requantize | filecheck %s

// Covers R16: the float32 epilogue as it stands after TVM's lowering, found again after the detector's best moment.

// CHECK-LABEL: func.func @unsigned(
// CHECK-NOT: arith.
// CHECK: "qnn.requantize"({{.*}}) {axis = 3 : i64, input_scale = 2.500000e-01 : f64
// CHECK-SAME: output_scale = 5.000000e-01 : f64, output_zero_point = 20 : i64, rounding = "f32_up_zp_first", weight_scales = array<f64: 5.000000e-01, 2.500000e-01>
// CHECK-SAME: -> tensor<1x1x1x2xui8>
// CHECK-NEXT: return
func.func @unsigned(%arg0: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %2 = arith.sitofp %1 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %3 = "qnn.constant"() {value = dense<[[[[0.25, 0.125]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %4 = arith.mulf %2, %3 : tensor<1x1x1x2xf32>
  %5 = "qnn.constant"() {value = dense<20.5> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %6 = arith.addf %4, %5 : tensor<1x1x1x2xf32>
  %7 = math.floor %6 : tensor<1x1x1x2xf32>
  %8 = arith.fptosi %7 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %9 = "qnn.constant"() {value = dense<0> : tensor<1x1x1x2xi32>} : () -> tensor<1x1x1x2xi32>
  %10 = arith.maxsi %8, %9 : tensor<1x1x1x2xi32>
  %11 = "qnn.constant"() {value = dense<255> : tensor<1x1x1x2xi32>} : () -> tensor<1x1x1x2xi32>
  %12 = arith.minsi %10, %11 : tensor<1x1x1x2xi32>
  %13 = arith.trunci %12 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  %14 = tensor.bitcast %13 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %14 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @signed_with_relu(
// CHECK-NOT: arith.
// CHECK: "qnn.requantize"({{.*}}output_zero_point = -20 : i64
// CHECK: "qnn.clip"({{.*}}max = 127 : i64, min = -20 : i64
// CHECK-NEXT: return
func.func @signed_with_relu(%arg0: tensor<1x2xi8>) -> tensor<1x2xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %1 = "qnn.dense"(%arg0, %0) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x2xi8>, tensor<2x2xi8>) -> tensor<1x2xi32>
  %2 = arith.sitofp %1 : tensor<1x2xi32> to tensor<1x2xf32>
  %3 = "qnn.constant"() {value = dense<0.25> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %4 = arith.mulf %2, %3 : tensor<1x2xf32>
  %5 = "qnn.constant"() {value = dense<-20.0> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %6 = arith.addf %4, %5 : tensor<1x2xf32>
  %7 = "qnn.constant"() {value = dense<0.5> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %8 = arith.addf %6, %7 : tensor<1x2xf32>
  %9 = math.floor %8 : tensor<1x2xf32>
  %10 = arith.fptosi %9 : tensor<1x2xf32> to tensor<1x2xi32>
  %11 = "qnn.constant"() {value = dense<-20> : tensor<1x2xi32>} : () -> tensor<1x2xi32>
  %12 = arith.maxsi %10, %11 : tensor<1x2xi32>
  %13 = "qnn.constant"() {value = dense<127> : tensor<1x2xi32>} : () -> tensor<1x2xi32>
  %14 = arith.minsi %12, %13 : tensor<1x2xi32>
  %15 = arith.trunci %14 : tensor<1x2xi32> to tensor<1x2xi8>
  return %15 : tensor<1x2xi8>
}

// CHECK-LABEL: func.func @clip_op(
// CHECK-NOT: arith.
// CHECK: "qnn.requantize"({{.*}}output_scale = 1.000000e+00 : f64, output_zero_point = 3 : i64
// CHECK-NEXT: return
func.func @clip_op(%arg0: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %2 = arith.sitofp %1 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %3 = "qnn.constant"() {value = dense<0.125> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %4 = arith.mulf %2, %3 : tensor<1x1x1x2xf32>
  %5 = "qnn.constant"() {value = dense<3.5> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %6 = arith.addf %4, %5 : tensor<1x1x1x2xf32>
  %7 = math.floor %6 : tensor<1x1x1x2xf32>
  %8 = arith.fptosi %7 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %9 = "qnn.clip"(%8) {max = 127 : i64, min = -128 : i64} : (tensor<1x1x1x2xi32>) -> tensor<1x1x1x2xi32>
  %10 = arith.trunci %9 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  return %10 : tensor<1x1x1x2xi8>
}
