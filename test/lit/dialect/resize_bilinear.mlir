// RUN: %roundtrip

// Every arithmetic.

// CHECK-LABEL: func.func @fixed(
// CHECK: "qnn.resize_bilinear"(%arg0) {arithmetic = "tflite_fixed", coordinates = "half_pixel", size = array<i64: 8, 5>
// CHECK-SAME: } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
func.func @fixed(%input: tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8> {
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return %y : tensor<1x8x5x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%input: tensor<1x4x6x3xui8>) -> tensor<1x8x5x3xui8> {
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "align_corners", arithmetic = "tflite_float"
  } : (tensor<1x4x6x3xui8>) -> tensor<1x8x5x3xui8>
  return %y : tensor<1x8x5x3xui8>
}

// CHECK-LABEL: func.func @float(
func.func @float(%input: tensor<1x4x6x3xf32>) -> tensor<1x8x5x3xf32> {
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "pytorch_half_pixel", arithmetic = "onnx_float"
  } : (tensor<1x4x6x3xf32>) -> tensor<1x8x5x3xf32>
  return %y : tensor<1x8x5x3xf32>
}
