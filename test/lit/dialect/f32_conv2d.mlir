// RUN: %roundtrip

// CHECK-LABEL: func.func @whole(
// CHECK: "qnn.f32_conv2d"(%arg0, %{{.*}}) {dilation = array<i64: 1, 1>, groups = 1 : i64, strides = array<i64: 1, 1>}
// CHECK-SAME: (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
func.func @whole(%data: tensor<1x5x5x4xf32>) -> tensor<1x3x3x8xf32> {
  %weight = arith.constant dense<0.5> : tensor<8x3x3x4xf32>
  %y = "qnn.f32_conv2d"(%data, %weight) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, strides = array<i64: 1, 1>
  } : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return %y : tensor<1x3x3x8xf32>
}

// CHECK-LABEL: func.func @depthwise(
// CHECK: {dilation = array<i64: 1, 2>, groups = 4 : i64, rounded_products = true, strides = array<i64: 2, 1>}
func.func @depthwise(%data: tensor<1x5x5x4xf32>) -> tensor<1x2x1x4xf32> {
  %weight = arith.constant dense<0.5> : tensor<4x3x3x1xf32>
  %y = "qnn.f32_conv2d"(%data, %weight) {
    dilation = array<i64: 1, 2>, groups = 4 : i64, rounded_products = true, strides = array<i64: 2, 1>
  } : (tensor<1x5x5x4xf32>, tensor<4x3x3x1xf32>) -> tensor<1x2x1x4xf32>
  return %y : tensor<1x2x1x4xf32>
}

// CHECK-LABEL: func.func @from_a_bias(
// CHECK: (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>, tensor<8xf32>) -> tensor<1x3x3x8xf32>
func.func @from_a_bias(%data: tensor<1x5x5x4xf32>) -> tensor<1x3x3x8xf32> {
  %weight = arith.constant dense<0.5> : tensor<8x3x3x4xf32>
  %bias = arith.constant dense<0.25> : tensor<8xf32>
  %y = "qnn.f32_conv2d"(%data, %weight, %bias)
    : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>, tensor<8xf32>) -> tensor<1x3x3x8xf32>
  return %y : tensor<1x3x3x8xf32>
}
