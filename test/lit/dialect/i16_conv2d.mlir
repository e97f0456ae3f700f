// RUN: %roundtrip

// CHECK-LABEL: func.func @padded(
// CHECK: "qnn.i16_conv2d"(%arg0, %{{.*}}, %{{.*}}) {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>}
// CHECK-SAME: (tensor<1x5x5x4xi16>, tensor<8x3x3x4xi8>, tensor<8xi64>) -> tensor<1x5x5x8xi64>
func.func @padded(%data: tensor<1x5x5x4xi16>) -> tensor<1x5x5x8xi64> {
  %weight = arith.constant dense<3> : tensor<8x3x3x4xi8>
  %bias = arith.constant dense<100000> : tensor<8xi64>
  %y = "qnn.i16_conv2d"(%data, %weight, %bias) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>
  } : (tensor<1x5x5x4xi16>, tensor<8x3x3x4xi8>, tensor<8xi64>) -> tensor<1x5x5x8xi64>
  return %y : tensor<1x5x5x8xi64>
}

// CHECK-LABEL: func.func @depthwise(
func.func @depthwise(%data: tensor<1x5x5x4xi16>) -> tensor<1x2x1x4xi32> {
  %weight = arith.constant dense<3> : tensor<4x3x3x1xi8>
  %y = "qnn.i16_conv2d"(%data, %weight) {
    dilation = array<i64: 1, 2>, groups = 4 : i64, strides = array<i64: 2, 1>
  } : (tensor<1x5x5x4xi16>, tensor<4x3x3x1xi8>) -> tensor<1x2x1x4xi32>
  return %y : tensor<1x2x1x4xi32>
}
