// RUN: %qopt %s --qnn-pair-channels | filecheck %s

// The first two of eight channels have weights that exceed the bound together: each gets another neighbour.

// CHECK-LABEL: func.func @chain(
// CHECK-DAG: value = dense<{{\[}}[{{\[}}[0]]], {{\[}}{{\[}}[2]]], {{\[}}{{\[}}[1]]], {{\[}}{{\[}}[3]]], {{.*}}> : tensor<8x1x1x1xi8>
// CHECK-DAG: value = dense<[10, 12, 11, 13, 14, 15, 16, 17]> : tensor<8xi32>
// CHECK-DAG: value = dense<{{.*}}[100, 1, 100, 2, 3, 4, 5, 6]{{.*}}> : tensor<1x1x1x8xi8>
// CHECK-DAG: weight_scales = array<f64: 1.000000e+00, 3.000000e+00, 2.000000e+00, 4.000000e+00, 5.000000e+00
func.func @chain(%x: tensor<1x2x2x1xui8>) -> tensor<1x2x2x1xi32> {
  %w = "qnn.constant"() {
    value = dense<[[[[0]]], [[[1]]], [[[2]]], [[[3]]], [[[4]]], [[[5]]], [[[6]]], [[[7]]]]> : tensor<8x1x1x1xi8>
  } : () -> tensor<8x1x1x1xi8>
  %b = "qnn.constant"() {value = dense<[10, 11, 12, 13, 14, 15, 16, 17]> : tensor<8xi32>} : () -> tensor<8xi32>
  %0 = "qnn.fused_conv2d"(%x, %w, %b) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    weight_scales = array<f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x2x2x1xui8>, tensor<8x1x1x1xi8>, tensor<8xi32>) -> tensor<1x2x2x8xui8>
  %v = "qnn.constant"() {value = dense<[[[[100, 100, 1, 2, 3, 4, 5, 6]]]]> : tensor<1x1x1x8xi8>} : () -> tensor<1x1x1x8xi8>
  %1 = "qnn.conv2d"(%0, %v) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<1x2x2x8xui8>, tensor<1x1x1x8xi8>) -> tensor<1x2x2x1xi32>
  return %1 : tensor<1x2x2x1xi32>
}

// A depthwise convolution between both has its filters in the same order.

// CHECK-LABEL: func.func @depthwise(
// CHECK-DAG: value = dense<{{\[}}[{{\[}}[0]]], {{\[}}{{\[}}[2]]], {{\[}}{{\[}}[1]]], {{.*}}> : tensor<8x1x1x1xi8>
// CHECK-DAG: value = dense<{{\[}}[{{\[}}[20]]], {{\[}}{{\[}}[22]]], {{\[}}{{\[}}[21]]], {{.*}}> : tensor<8x1x1x1xi8>
// CHECK-DAG: value = dense<{{.*}}[100, 1, 100, 2, 3, 4, 5, 6]{{.*}}> : tensor<1x1x1x8xi8>
func.func @depthwise(%x: tensor<1x2x2x1xui8>) -> tensor<1x2x2x1xi32> {
  %w = "qnn.constant"() {
    value = dense<[[[[0]]], [[[1]]], [[[2]]], [[[3]]], [[[4]]], [[[5]]], [[[6]]], [[[7]]]]> : tensor<8x1x1x1xi8>
  } : () -> tensor<8x1x1x1xi8>
  %b = "qnn.constant"() {value = dense<0> : tensor<8xi32>} : () -> tensor<8xi32>
  %0 = "qnn.fused_conv2d"(%x, %w, %b) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 1.0>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x2x2x1xui8>, tensor<8x1x1x1xi8>, tensor<8xi32>) -> tensor<1x2x2x8xui8>
  %f = "qnn.constant"() {
    value = dense<[[[[20]]], [[[21]]], [[[22]]], [[[23]]], [[[24]]], [[[25]]], [[[26]]], [[[27]]]]> : tensor<8x1x1x1xi8>
  } : () -> tensor<8x1x1x1xi8>
  %1 = "qnn.fused_conv2d"(%0, %f, %b) {
    groups = 8 : i64, input_scale = 0.5 : f64, input_zero_point = 10 : i64, weight_scales = array<f64: 1.0>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x2x2x8xui8>, tensor<8x1x1x1xi8>, tensor<8xi32>) -> tensor<1x2x2x8xui8>
  %v = "qnn.constant"() {value = dense<[[[[100, 100, 1, 2, 3, 4, 5, 6]]]]> : tensor<1x1x1x8xi8>} : () -> tensor<1x1x1x8xi8>
  %2 = "qnn.conv2d"(%1, %v) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, weight_scales = array<f64: 1.0>
  } : (tensor<1x2x2x8xui8>, tensor<1x1x1x8xi8>) -> tensor<1x2x2x1xi32>
  return %2 : tensor<1x2x2x1xi32>
}
