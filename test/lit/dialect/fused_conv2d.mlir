// RUN: %roundtrip

// What is special to this op. Covers R11: every scale and zero point is on the op.

// CHECK-LABEL: func.func @requantize_only(
// CHECK: "qnn.fused_conv2d"(%arg0, %arg1, %arg2) {epilogue = [{requantize = {rounding = "fixed64_up"}}],
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = 128 : i64, output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = 5 : i64, weight_scales = array<f64: 2.500000e-01>} : (tensor<1x4x4x2xui8>,
// CHECK-SAME: tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
func.func @requantize_only(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) -> tensor<1x3x3x3xi8> {
  %y = "qnn.fused_conv2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return %y : tensor<1x3x3x3xi8>
}

// CHECK-LABEL: func.func @residual(
func.func @residual(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>, %residual: tensor<1x3x3x3xi8>) -> tensor<1x3x3x3xi8> {
  %y = "qnn.fused_conv2d"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.25 : f64, zero_point = 5 : i64}}, {add = {residual_scale = 0.125 : f64, residual_zero_point = -7 : i64}}, {clamp = {min = 1 : i64, max = 100 : i64}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>, tensor<1x3x3x3xi8>) -> tensor<1x3x3x3xi8>
  return %y : tensor<1x3x3x3xi8>
}

// CHECK-LABEL: func.func @per_channel(
// CHECK: "qnn.fused_conv2d"(%arg0, %arg1, %arg2) {epilogue = [{requantize = {multiplier = "f32",
// CHECK-SAME: rounding = "f32_rne_zp_last"}}], input_scale = 5.000000e-01 : f64, input_zero_point = 128 : i64,
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = 5 : i64,
// CHECK-SAME: weight_scales = array<f64: 5.000000e-01, 2.500000e-01, 1.250000e-01>,
// CHECK-SAME: weight_zero_points = array<i64: 1, -2, 3>} : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>,
// CHECK-SAME: tensor<3xi32>) -> tensor<1x3x3x3xi8>
func.func @per_channel(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) -> tensor<1x3x3x3xi8> {
  %y = "qnn.fused_conv2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.5, 0.25, 0.125>,
    weight_zero_points = array<i64: 1, -2, 3>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "f32_rne_zp_last", multiplier = "f32"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return %y : tensor<1x3x3x3xi8>
}

// CHECK-LABEL: func.func @depthwise(
// CHECK: "qnn.fused_conv2d"(%arg0, %arg1, %arg2) {dilation = array<i64: 2, 2>,
// CHECK-SAME: epilogue = [{requantize = {rounding = "fixed64_up"}}], groups = 4 : i64,
// CHECK-SAME: input_scale = 5.000000e-01 : f64, input_zero_point = -1 : i64, output_scale = 2.500000e-01 : f64,
// CHECK-SAME: output_zero_point = 5 : i64, padding = array<i64: 2, 2, 2, 2>, strides = array<i64: 2, 2>,
// CHECK-SAME: weight_scales = array<f64: 2.500000e-01>} : (tensor<1x5x5x4xi8>, tensor<4x3x3x1xi8>,
// CHECK-SAME: tensor<4xi32>) -> tensor<1x3x3x4xi8>
func.func @depthwise(%data: tensor<1x5x5x4xi8>, %weight: tensor<4x3x3x1xi8>, %bias: tensor<4xi32>) -> tensor<1x3x3x4xi8> {
  %y = "qnn.fused_conv2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, weight_scales = array<f64: 0.25>,
    strides = array<i64: 2, 2>, padding = array<i64: 2, 2, 2, 2>, dilation = array<i64: 2, 2>, groups = 4 : i64,
    output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x5x5x4xi8>, tensor<4x3x3x1xi8>, tensor<4xi32>) -> tensor<1x3x3x4xi8>
  return %y : tensor<1x3x3x4xi8>
}
