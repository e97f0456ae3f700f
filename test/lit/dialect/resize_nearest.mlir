// RUN: %roundtrip

// Every way to count; any element type.

// CHECK-LABEL: func.func @corners(
// CHECK: "qnn.resize_nearest"(%arg0) {coordinates = "align_corners", nearest = "round_prefer_ceil", ratio = "multiply", size = array<i64: 8, 5>
// CHECK-SAME: } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
func.func @corners(%input: tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8> {
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "align_corners", nearest = "round_prefer_ceil", ratio = "multiply"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return %y : tensor<1x8x5x3xi8>
}

// CHECK-LABEL: func.func @float(
func.func @float(%input: tensor<1x4x6x3xf32>) -> tensor<1x8x5x3xf32> {
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xf32>) -> tensor<1x8x5x3xf32>
  return %y : tensor<1x8x5x3xf32>
}
