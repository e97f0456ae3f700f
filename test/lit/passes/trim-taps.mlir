// RUN: %qopt %s --qnn-trim-taps | filecheck %s

// Covers R8: taps that meet nothing but padding are neither multiplied nor do they widen the border of an image.

// CHECK-LABEL: func.func @dilated(
// CHECK: [[W:%.*]] = "qnn.constant"() {value = dense<5> : tensor<1x1x1x2xi8>}
// CHECK-NOT: padding
// CHECK: "qnn.conv2d"(%arg0, [[W]]) {{.*}}tensor<1x1x1x2xi8>
func.func @dilated(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x1xi32> {
  %0 = "qnn.constant"() {
    value = dense<[[[[1, 1], [2, 2], [3, 3]], [[4, 4], [5, 5], [6, 6]], [[7, 7], [8, 8], [9, 9]]]]> : tensor<1x3x3x2xi8>
  } : () -> tensor<1x3x3x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 4, 4>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 4, 4, 4, 4>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 1>
  } : (tensor<1x4x4x2xui8>, tensor<1x3x3x2xi8>) -> tensor<1x4x4x1xi32>
  return %1 : tensor<1x4x4x1xi32>
}

// One row of pixels: of three rows of taps one is left, and of three columns all are.

// CHECK-LABEL: func.func @one_row(
// CHECK: [[W:%.*]] = "qnn.constant"() {value = dense<{{\[\[\[\[}}4], [5], [6]]]]> : tensor<1x1x3x1xi8>}
// CHECK: "qnn.fused_conv2d"(%arg0, [[W]], {{.*}}padding = array<i64: 0, 1, 0, 1>
func.func @one_row(%arg0: tensor<1x1x9x1xi8>) -> tensor<1x1x9x1xi8> {
  %0 = "qnn.constant"() {
    value = dense<[[[[1], [2], [3]], [[4], [5], [6]], [[7], [8], [9]]]]> : tensor<1x3x3x1xi8>
  } : () -> tensor<1x3x3x1xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<1xi32>} : () -> tensor<1xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    padding = array<i64: 1, 1, 1, 1>, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    weight_scales = array<f64: 0.5>, output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x1x9x1xi8>, tensor<1x3x3x1xi8>, tensor<1xi32>) -> tensor<1x1x9x1xi8>
  return %2 : tensor<1x1x9x1xi8>
}
