// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @conv_transpose2d_c1(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    strides = array<i64: 0, 1>, padding = array<i64: 1, 1, 1, 1>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c1_output_padding(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op output_padding must be 2 integers of at least 0, but got [0, -1]}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_padding = array<i64: 0, -1>, padding = array<i64: 1, 1, 1, 1>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c2(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op groups must be at least 1, but got 0}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, groups = 0 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c3(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op result height must be at least 1 after padding is cut off, but got 0}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 4, 0, 1, 0>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_huge_dilation(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op result shape must be 1x9223372036854775811x5x3, but got 1x3x3x3}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    dilation = array<i64: 9223372036854775807, 1>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c3_huge(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op result height must be at least 1 after padding is cut off, but got -18446744073709551609}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 9223372036854775807, 0, 9223372036854775807, 0>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}
