// RUN: %qopt %s --qnn-fuse-requantize --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-fuse-requantize | filecheck %s

// Covers R12, N2: what differs between the two ops, or would be lost, keeps them apart.

// CHECK-LABEL: func.func @second_use(
// CHECK: qnn.conv2d
// CHECK: qnn.requantize
func.func @second_use(%arg0: tensor<1x4x4x2xui8>) -> (tensor<1x4x4x2xui8>, tensor<1x4x4x2xi32>) {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-requantize] 'qnn.requantize' needs the result of 'qnn.conv2d' alone, but it has 2 uses}}
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  return %2, %1 : tensor<1x4x4x2xui8>, tensor<1x4x4x2xi32>
}

// CHECK-LABEL: func.func @mismatched_scale(
// CHECK: qnn.conv2d
// CHECK: qnn.requantize
func.func @mismatched_scale(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-requantize] 'qnn.requantize' input_scale must be 0.25, but got 0.125}}
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.125 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @mismatched_weight_scales(
// CHECK: qnn.conv2d
// CHECK: qnn.requantize
func.func @mismatched_weight_scales(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-requantize] 'qnn.requantize' weight_scales must be [0.5, 0.25], but got [0.5, 0.5]}}
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.5>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @zero_point_of_a_channel(
// CHECK: qnn.conv2d
// CHECK: qnn.requantize
func.func @zero_point_of_a_channel(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-requantize] 'qnn.requantize' input_zero_points must be [0, 0], but got [0, 4]}}
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0, 4>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @another_axis(
// CHECK: qnn.conv2d
// CHECK: qnn.requantize
func.func @another_axis(%arg0: tensor<1x2x2x2xui8>) -> tensor<1x2x2x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x2x2x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x2x2x2xi32>
  // expected-remark @+1 {{[fuse-requantize] 'qnn.requantize' axis must be 3, but got 1}}
  %2 = "qnn.requantize"(%1) {
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x2x2x2xi32>) -> tensor<1x2x2x2xui8>
  return %2 : tensor<1x2x2x2xui8>
}

// CHECK-LABEL: func.func @wide_result(
// CHECK: qnn.conv2d
// CHECK: qnn.requantize
func.func @wide_result(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi16> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-requantize] 'qnn.requantize' must have an 8-bit result, but got i16}}
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xi16>
  return %2 : tensor<1x4x4x2xi16>
}

// CHECK-LABEL: func.func @run_time_weight(
// CHECK: qnn.conv_transpose2d
// CHECK: qnn.requantize
func.func @run_time_weight(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.conv_transpose2d"(%arg0, %arg1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-requantize] 'qnn.requantize' needs a constant weight}}
  %1 = "qnn.requantize"(%0) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  return %1 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @run_time_bias(
// CHECK: qnn.conv2d
// CHECK: qnn.requantize
func.func @run_time_bias(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<2xi32>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0, %arg1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xi32>
  // expected-remark @+1 {{[fuse-requantize] 'qnn.requantize' needs a constant bias}}
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}
