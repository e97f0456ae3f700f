// RUN: %qopt %s --qnn-fuse-clamp | filecheck %s

// Covers R12 (clip, relu, relu6): a clamp becomes the output range of the op before it.

// CHECK-LABEL: func.func @clip(
// CHECK-NOT: qnn.clip
// CHECK: qnn.fused_conv2d
// CHECK-SAME: epilogue = [{requantize = {rounding = "fixed64_up"}}, {clamp = {max = 90 : i64, min = 20 : i64}}]
func.func @clip(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.clip"(%2) {max = 90 : i64, min = 20 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @relu(
// CHECK-NOT: qnn.relu
// CHECK: qnn.fused_conv2d
// CHECK-SAME: {clamp = {max = 255 : i64, min = 10 : i64}}]
func.func @relu(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.relu"(%2) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @relu6(
// CHECK-NOT: qnn.relu6
// CHECK: qnn.fused_conv2d
// CHECK-SAME: {clamp = {max = 22 : i64, min = 10 : i64}}]
func.func @relu6(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.relu6"(%2) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @relu_of_a_sum(
// CHECK-NOT: qnn.relu
// CHECK: qnn.add
// CHECK-SAME: output_max = 255 : i64, output_min = 20 : i64
func.func @relu_of_a_sum(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.add"(%arg0, %arg1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %1 = "qnn.relu"(%0) {
    entries = "half_away_divide", input_scale = 1.0 : f64, input_zero_point = 20 : i64, nan = "max",
    output_scale = 1.0 : f64, output_zero_point = 20 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %1 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @clip_of_a_pool(
// CHECK-NOT: qnn.clip
// CHECK: qnn.max_pool2d
// CHECK-SAME: output_max = 6 : i64, output_min = 5 : i64
func.func @clip_of_a_pool(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x3x3x2xui8> {
  %0 = "qnn.max_pool2d"(%arg0) {
    kernel = array<i64: 2, 2>, output_max = 255 : i64, output_min = 0 : i64, padding = array<i64: 0, 0, 0, 0>,
    strides = array<i64: 1, 1>
  } : (tensor<1x4x4x2xui8>) -> tensor<1x3x3x2xui8>
  %1 = "qnn.clip"(%0) {max = 6 : i64, min = 5 : i64} : (tensor<1x3x3x2xui8>) -> tensor<1x3x3x2xui8>
  return %1 : tensor<1x3x3x2xui8>
}

// CHECK-LABEL: func.func @empty_meeting(
// CHECK: "qnn.clip"(%arg0) {max = 30 : i64, min = 30 : i64}
// CHECK-NOT: qnn.clip
func.func @empty_meeting(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.clip"(%arg0) {max = 20 : i64, min = 10 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %1 = "qnn.clip"(%0) {max = 40 : i64, min = 30 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %1 : tensor<1x4x4x2xui8>
}
