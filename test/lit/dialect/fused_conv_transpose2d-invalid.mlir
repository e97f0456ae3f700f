// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all fused ops share is tested in fused-invalid.mlir, the stages in stages/.

func.func @fused_conv_transpose2d_c1(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    strides = array<i64: 0, 1>, padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64, epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c2(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op groups must be at least 1, but got 0}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, groups = 0 : i64, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c3(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op result height must be at least 1 after padding is cut off, but got 0}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 4, 0, 1, 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}
