// RUN: %roundtrip

// CHECK-LABEL: func.func @strided(
// CHECK: "qnn.dynamic_conv2d"(%arg0, %arg1, %arg2, %arg3, %arg4)
// CHECK-SAME: dilation = array<i64: 1, 2>, scale_last = true, strides = array<i64: 2, 2>, weight_scales = array<f64: 2.500000e-01>
func.func @strided(
  %data: tensor<1x5x5x4xui8>, %weight: tensor<6x3x3x4xi8>, %scale: tensor<f32>, %point: tensor<ui8>, %bias: tensor<6xf32>
) -> tensor<1x2x1x6xf32> {
  %y = "qnn.dynamic_conv2d"(%data, %weight, %scale, %point, %bias) {
    weight_scales = array<f64: 0.25>, strides = array<i64: 2, 2>, dilation = array<i64: 1, 2>, scale_last = true
  } : (tensor<1x5x5x4xui8>, tensor<6x3x3x4xi8>, tensor<f32>, tensor<ui8>, tensor<6xf32>) -> tensor<1x2x1x6xf32>
  return %y : tensor<1x2x1x6xf32>
}

// CHECK-LABEL: func.func @depthwise(
// CHECK: "qnn.dynamic_conv2d"
// CHECK-SAME: groups = 4 : i64, weight_scales = array<f64: 2.500000e-01>, weight_zero_points = array<i64: 3>
func.func @depthwise(
  %data: tensor<1x5x5x4xi8>, %weight: tensor<4x3x3x1xui8>, %scale: tensor<1xf32>, %point: tensor<1xi8>
) -> tensor<1x3x3x4xf32> {
  %y = "qnn.dynamic_conv2d"(%data, %weight, %scale, %point) {
    weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 3>, groups = 4 : i64
  } : (tensor<1x5x5x4xi8>, tensor<4x3x3x1xui8>, tensor<1xf32>, tensor<1xi8>) -> tensor<1x3x3x4xf32>
  return %y : tensor<1x3x3x4xf32>
}

// CHECK-LABEL: func.func @padded(
// CHECK: "qnn.dynamic_conv2d"
// CHECK-SAME: activation = "leaky_relu", alpha = 2.500000e-01 : f64, padding = array<i64: 0, 1, 2, 1>
func.func @padded(%data: tensor<1x5x5x4xi8>, %weight: tensor<2x3x3x4xi8>, %scale: tensor<f32>) -> tensor<1x5x5x2xf32> {
  %point = "qnn.constant"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
  %y = "qnn.dynamic_conv2d"(%data, %weight, %scale, %point) {
    padding = array<i64: 0, 1, 2, 1>, activation = "leaky_relu", alpha = 0.25 : f64
  } : (tensor<1x5x5x4xi8>, tensor<2x3x3x4xi8>, tensor<f32>, tensor<i8>) -> tensor<1x5x5x2xf32>
  return %y : tensor<1x5x5x2xf32>
}
