// RUN: %qopt %s --qnn-decompose-fused --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-decompose-fused | filecheck %s

// What is not fused stays as it is, and so does a rounding that no qnn.quantize has.

// CHECK-LABEL: func.func @separate(
// CHECK: qnn.conv2d
// CHECK-NEXT: {{.*}}qnn.requantize
// CHECK-NEXT: return
func.func @separate(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @zero_point_first(
// CHECK: qnn.fused_conv2d
func.func @zero_point_first(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  // expected-remark @+1 {{[decompose-fused] 'qnn.fused_conv2d' must have rounding f32_rne_zp_last, that of qnn.quantize, but got f32_rne_zp_first}}
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{dequantize},
      {activation = {function = "silu"}},
      {quantize = {rounding = "f32_rne_zp_first"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @product_beyond(
// CHECK: qnn.fused_conv2d
func.func @product_beyond(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  // expected-remark @+1 {{[decompose-fused] 'qnn.fused_conv2d' must have products of scales in (0, 2^30], but got 2147483648.0}}
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 1073741824.0 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 2.0, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{dequantize}, {activation = {function = "silu"}}, {quantize}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}
