// RUN: %qopt %s --qnn-pair-channels | filecheck %s

// The order of an argument's channels is given.

// CHECK-LABEL: func.func @argument(
// CHECK: value = dense<{{.*}}[100, 100, 1, 2, 3, 4, 5, 6]
func.func @argument(%x: tensor<1x2x2x8xui8>) -> tensor<1x2x2x1xi32> {
  %v = "qnn.constant"() {value = dense<[[[[100, 100, 1, 2, 3, 4, 5, 6]]]]> : tensor<1x1x1x8xi8>} : () -> tensor<1x1x1x8xi8>
  %0 = "qnn.conv2d"(%x, %v) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<1x2x2x8xui8>, tensor<1x1x1x8xi8>) -> tensor<1x2x2x1xi32>
  return %0 : tensor<1x2x2x1xi32>
}

// So is that of a result, and of what other ops read.

// CHECK-LABEL: func.func @result(
// CHECK: value = dense<{{.*}}[100, 100, 1, 2, 3, 4, 5, 6]
func.func @result(%x: tensor<1x2x2x1xui8>) -> (tensor<1x2x2x8xui8>, tensor<1x2x2x1xi32>) {
  %w = "qnn.constant"() {value = dense<1> : tensor<8x1x1x1xi8>} : () -> tensor<8x1x1x1xi8>
  %b = "qnn.constant"() {value = dense<0> : tensor<8xi32>} : () -> tensor<8xi32>
  %0 = "qnn.fused_conv2d"(%x, %w, %b) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 1.0>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x2x2x1xui8>, tensor<8x1x1x1xi8>, tensor<8xi32>) -> tensor<1x2x2x8xui8>
  %v = "qnn.constant"() {value = dense<[[[[100, 100, 1, 2, 3, 4, 5, 6]]]]> : tensor<1x1x1x8xi8>} : () -> tensor<1x1x1x8xi8>
  %1 = "qnn.conv2d"(%0, %v) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<1x2x2x8xui8>, tensor<1x1x1x8xi8>) -> tensor<1x2x2x1xi32>
  return %0, %1 : tensor<1x2x2x8xui8>, tensor<1x2x2x1xi32>
}

// Where the bound holds, nothing is reordered; nor where no order keeps it.

// CHECK-LABEL: func.func @fits(
// CHECK: value = dense<{{.*}}[127, -127, 64, 64, 3, 4, 5, 6]
// CHECK: value = dense<127> : tensor<1x1x1x8xi8>
func.func @fits(%x: tensor<1x2x2x1xui8>) -> tensor<1x2x2x1xi32> {
  %w = "qnn.constant"() {value = dense<1> : tensor<8x1x1x1xi8>} : () -> tensor<8x1x1x1xi8>
  %b = "qnn.constant"() {value = dense<0> : tensor<8xi32>} : () -> tensor<8xi32>
  %0 = "qnn.fused_conv2d"(%x, %w, %b) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 1.0>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x2x2x1xui8>, tensor<8x1x1x1xi8>, tensor<8xi32>) -> tensor<1x2x2x8xui8>
  %v = "qnn.constant"() {value = dense<[[[[127, -127, 64, 64, 3, 4, 5, 6]]]]> : tensor<1x1x1x8xi8>} : () -> tensor<1x1x1x8xi8>
  %c = "qnn.constant"() {value = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
  %1 = "qnn.fused_conv2d"(%0, %v, %c) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, weight_scales = array<f64: 1.0>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x2x2x8xui8>, tensor<1x1x1x8xi8>, tensor<1xi32>) -> tensor<1x2x2x1xui8>
  %2 = "qnn.fused_conv2d"(%1, %w, %b) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 1.0>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x2x2x1xui8>, tensor<8x1x1x1xi8>, tensor<8xi32>) -> tensor<1x2x2x8xui8>
  %d = "qnn.constant"() {value = dense<127> : tensor<1x1x1x8xi8>} : () -> tensor<1x1x1x8xi8>
  %3 = "qnn.conv2d"(%2, %d) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<1x2x2x8xui8>, tensor<1x1x1x8xi8>) -> tensor<1x2x2x1xi32>
  return %3 : tensor<1x2x2x1xi32>
}
