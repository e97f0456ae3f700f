// RUN: %qopt %s --qnn-fuse-bias --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-fuse-bias | filecheck %s

// Covers R12: sums that are no constant for each channel, or whose accumulators others use, stay.

// CHECK-LABEL: func.func @run_time_addend(
// CHECK: arith.addi
func.func @run_time_addend(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xi32> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-bias] 'arith.addi' needs the value added to the contraction to be constant}}
  %2 = arith.addi %1, %arg1 : tensor<1x4x4x2xi32>
  return %2 : tensor<1x4x4x2xi32>
}

// CHECK-LABEL: func.func @run_time_bias(
// CHECK: arith.addi
func.func @run_time_bias(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<2xi32>) -> tensor<1x4x4x2xi32> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0, %arg1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.constant"() {
    value = dense<[[[[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]]]]> : tensor<1x4x4x2xi32>
  } : () -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-bias] 'arith.addi' needs the contraction's own bias to be constant}}
  %3 = arith.addi %1, %2 : tensor<1x4x4x2xi32>
  return %3 : tensor<1x4x4x2xi32>
}

// CHECK-LABEL: func.func @row_constant(
// CHECK: arith.addi
func.func @row_constant(%arg0: tensor<1x2x1x2xui8>) -> tensor<1x2x1x2xi32> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x2x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x1x2xi32>
  %2 = "qnn.constant"() {value = dense<[[[[1, 1]], [[2, 2]]]]> : tensor<1x2x1x2xi32>} : () -> tensor<1x2x1x2xi32>
  // expected-remark @+1 {{[fuse-bias] 'arith.addi' needs the constant to depend on the last dimension alone}}
  %3 = arith.addi %1, %2 : tensor<1x2x1x2xi32>
  return %3 : tensor<1x2x1x2xi32>
}

// CHECK-LABEL: func.func @second_use(
// CHECK: arith.addi
func.func @second_use(%arg0: tensor<1x4x4x2xui8>) -> (tensor<1x4x4x2xi32>, tensor<1x4x4x2xi32>) {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.constant"() {
    value = dense<[[[[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]]]]> : tensor<1x4x4x2xi32>
  } : () -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-bias] 'arith.addi' needs the result of 'qnn.conv2d' alone, but it has 2 uses}}
  %3 = arith.addi %1, %2 : tensor<1x4x4x2xi32>
  return %3, %1 : tensor<1x4x4x2xi32>, tensor<1x4x4x2xi32>
}

// CHECK-LABEL: func.func @subtracted_from(
// CHECK: arith.subi
func.func @subtracted_from(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi32> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = arith.constant dense<12> : tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-bias] 'arith.subi' must not subtract the accumulators, but subtract from them}}
  %3 = arith.subi %2, %1 : tensor<1x4x4x2xi32>
  return %3 : tensor<1x4x4x2xi32>
}
