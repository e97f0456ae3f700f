// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @conv2d_c1(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, strides = array<i64: 0, 1>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c1_negative_strides(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op strides must be 2 integers of at least 1, but got [1, -1]}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    strides = array<i64: 1, -1>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c1_three_strides(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op strides must be 2 integers of at least 1, but got [1, 1, 1]}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    strides = array<i64: 1, 1, 1>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c1_dilation(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op dilation must be 2 integers of at least 1, but got [1, 0]}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    dilation = array<i64: 1, 0>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c1_padding(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op padding must be 4 integers of at least 0, but got [0, 0, -1, 0]}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 0, 0, -1, 0>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c1_two_paddings(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op padding must be 4 integers of at least 0, but got [1, 1]}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, padding = array<i64: 1, 1>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c2(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op groups must be at least 1, but got 0}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, groups = 0 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c2_divides(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op groups must divide 2 input and 3 output channels, but got 2}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>, groups = 2 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c2_depth(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x1xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op weight depth must be 2, but got 1}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x1xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c3(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x5x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op input height must be at least 5 with padding, but got 4}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<1x4x4x2xui8>, tensor<3x5x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c3_dilated(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op input width must be at least 6 with padding, but got 5}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 0, 0, 0, 1>, dilation = array<i64: 1, 5>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_c3_overflow(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op input height must be at least 9223372036854775808 with padding, but got 4}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    dilation = array<i64: 9223372036854775807, 1>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv2d_huge_padding(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op result shape must be 1x18446744073709551617x3x3, but got 1x3x3x3}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 9223372036854775807, 0, 9223372036854775807, 0>
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}
