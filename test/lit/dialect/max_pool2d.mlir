// RUN: %roundtrip

// Both signednesses, asymmetric padding, the whole image as window.

// CHECK-LABEL: func.func @signed(
// CHECK: "qnn.max_pool2d"(%arg0) {kernel = array<i64: 2, 2>, output_max = 127 : i64, output_min = -128 : i64,
// CHECK-SAME: padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>
// CHECK-SAME: } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
func.func @signed(%data: tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8> {
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return %y : tensor<1x3x3x2xi8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%data: tensor<1x4x4x2xui8>) -> tensor<1x3x3x2xui8> {
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 2, 2>, output_min = 0 : i64, output_max = 255 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x3x3x2xui8>
  return %y : tensor<1x3x3x2xui8>
}

// CHECK-LABEL: func.func @padded(
func.func @padded(%data: tensor<1x4x4x2xi8>) -> tensor<1x3x2x2xi8> {
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 3, 2>, strides = array<i64: 2, 3>, padding = array<i64: 2, 1, 1, 0>, output_min = 3 : i64,
    output_max = 127 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x2x2xi8>
  return %y : tensor<1x3x2x2xi8>
}

// CHECK-LABEL: func.func @global(
func.func @global(%data: tensor<1x4x4x2xi8>) -> tensor<1x1x1x2xi8> {
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 4, 4>, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x1x1x2xi8>
  return %y : tensor<1x1x1x2xi8>
}
