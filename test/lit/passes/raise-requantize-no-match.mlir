// RUN: %qopt %s --qnn-raise-requantize --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-raise-requantize | filecheck %s

// Covers R16: float epilogues that no requantize has the bits of.

// CHECK-LABEL: func.func @second_use(
// CHECK: arith.mulf
func.func @second_use(%arg0: tensor<1x1x1x2xui8>) -> (tensor<1x1x1x2xui8>, tensor<1x1x1x2xi32>) {
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
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' needs the result of 'qnn.conv2d' alone, but it has 2 uses}}
  %14 = tensor.bitcast %13 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %14, %1 : tensor<1x1x1x2xui8>, tensor<1x1x1x2xi32>
}

// CHECK-LABEL: func.func @loose_clamp(
// CHECK: arith.mulf
func.func @loose_clamp(%arg0: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
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
  %9 = "qnn.constant"() {value = dense<-1> : tensor<1x1x1x2xi32>} : () -> tensor<1x1x1x2xi32>
  %10 = arith.maxsi %8, %9 : tensor<1x1x1x2xi32>
  %11 = "qnn.constant"() {value = dense<255> : tensor<1x1x1x2xi32>} : () -> tensor<1x1x1x2xi32>
  %12 = arith.minsi %10, %11 : tensor<1x1x1x2xi32>
  %13 = arith.trunci %12 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' must clamp to [0, 255] before the cast, but clamps to [-1, 255]}}
  %14 = tensor.bitcast %13 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %14 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @no_zero_point(
// CHECK: arith.mulf
func.func @no_zero_point(%arg0: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %2 = arith.sitofp %1 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %3 = "qnn.constant"() {value = dense<[[[[0.25, 0.125]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %4 = arith.mulf %2, %3 : tensor<1x1x1x2xf32>
  %5 = "qnn.constant"() {value = dense<20.75> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %6 = arith.addf %4, %5 : tensor<1x1x1x2xf32>
  %7 = math.floor %6 : tensor<1x1x1x2xf32>
  %8 = arith.fptosi %7 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %9 = "qnn.constant"() {value = dense<0> : tensor<1x1x1x2xi32>} : () -> tensor<1x1x1x2xi32>
  %10 = arith.maxsi %8, %9 : tensor<1x1x1x2xi32>
  %11 = "qnn.constant"() {value = dense<255> : tensor<1x1x1x2xi32>} : () -> tensor<1x1x1x2xi32>
  %12 = arith.minsi %10, %11 : tensor<1x1x1x2xi32>
  %13 = arith.trunci %12 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' must add a zero point in [0, 255] and 0.5, but adds [20.75]}}
  %14 = tensor.bitcast %13 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %14 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @rounded_sum(
// CHECK: arith.mulf
func.func @rounded_sum(%arg0: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %2 = arith.sitofp %1 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %3 = "qnn.constant"() {value = dense<[[[[0.25, 0.125]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %4 = arith.mulf %2, %3 : tensor<1x1x1x2xf32>
  %5 = "qnn.constant"() {value = dense<-0.5> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %6 = arith.addf %4, %5 : tensor<1x1x1x2xf32>
  %7 = math.floor %6 : tensor<1x1x1x2xf32>
  %8 = arith.fptosi %7 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %9 = "qnn.constant"() {value = dense<-128> : tensor<1x1x1x2xi32>} : () -> tensor<1x1x1x2xi32>
  %10 = arith.maxsi %8, %9 : tensor<1x1x1x2xi32>
  %11 = "qnn.constant"() {value = dense<127> : tensor<1x1x1x2xi32>} : () -> tensor<1x1x1x2xi32>
  %12 = arith.minsi %10, %11 : tensor<1x1x1x2xi32>
  // expected-remark @+1 {{[raise-requantize] 'arith.trunci' must add the zero point -1 and 0.5 one after the other to round as a requantize does}}
  %13 = arith.trunci %12 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  return %13 : tensor<1x1x1x2xi8>
}

// CHECK-LABEL: func.func @other_scales(
// CHECK: arith.mulf
func.func @other_scales(%arg0: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %2 = arith.sitofp %1 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %3 = "qnn.constant"() {value = dense<0.25> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
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
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' must multiply by the contraction's scales over one output scale}}
  %14 = tensor.bitcast %13 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %14 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @negative_factor(
// CHECK: arith.mulf
func.func @negative_factor(%arg0: tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %2 = arith.sitofp %1 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %3 = "qnn.constant"() {value = dense<[[[[-0.25, -0.125]]]]> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
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
  // expected-remark @+1 {{[raise-requantize] 'tensor.bitcast' must multiply by positive numbers that depend on the last dimension alone}}
  %14 = tensor.bitcast %13 : tensor<1x1x1x2xi8> to tensor<1x1x1x2xui8>
  return %14 : tensor<1x1x1x2xui8>
}

// CHECK-LABEL: func.func @run_time_factor(
// CHECK: arith.mulf
func.func @run_time_factor(%arg0: tensor<1x1x1x2xui8>, %arg1: tensor<1x1x1x2xf32>) -> tensor<1x1x1x2xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x1x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x1x1x2xi32>
  %2 = arith.sitofp %1 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xf32>
  %3 = arith.mulf %2, %arg1 : tensor<1x1x1x2xf32>
  %4 = "qnn.constant"() {value = dense<3.5> : tensor<1x1x1x2xf32>} : () -> tensor<1x1x1x2xf32>
  %5 = arith.addf %3, %4 : tensor<1x1x1x2xf32>
  %6 = math.floor %5 : tensor<1x1x1x2xf32>
  %7 = arith.fptosi %6 : tensor<1x1x1x2xf32> to tensor<1x1x1x2xi32>
  %8 = "qnn.clip"(%7) {max = 127 : i64, min = -128 : i64} : (tensor<1x1x1x2xi32>) -> tensor<1x1x1x2xi32>
  // expected-remark @+1 {{[raise-requantize] 'arith.trunci' must multiply by a constant}}
  %9 = arith.trunci %8 : tensor<1x1x1x2xi32> to tensor<1x1x1x2xi8>
  return %9 : tensor<1x1x1x2xi8>
}
