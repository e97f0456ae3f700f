// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @conv_transpose2d_c1(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 0, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c1_negative_strides(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op strides must be 2 integers of at least 1, but got [1, -1]}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, -1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c1_three_strides(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op strides must be 2 integers of at least 1, but got [1, 1, 1]}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c1_dilation(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op dilation must be 2 integers of at least 1, but got [1, 0]}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 0>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c1_padding(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op padding must be 4 integers of at least 0, but got [0, 0, -1, 0]}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0, -1, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c1_two_paddings(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op padding must be 4 integers of at least 0, but got [1, 1]}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c1_output_padding(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op output_padding must be 2 integers of at least 0, but got [0, -1]}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, -1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c2(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op groups must be at least 1, but got 0}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 0 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c2_divides(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op groups must divide 2 input and 3 output channels, but got 2}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 2 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c2_depth(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x1xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op weight depth must be 2, but got 1}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x1xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c3(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op result height must be at least 1 after padding is cut off, but got 0}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 4, 0, 1, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c3_dilated(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op result width must be at least 1 after padding is cut off, but got 0}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 0, 3, 0, 4>,
    dilation = array<i64: 1, 3>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_huge_dilation(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op result shape must be 1x9223372036854775811x5x3, but got 1x3x3x3}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 9223372036854775807, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c4(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op weight_scales must have 1 or 3 entries, but got 2}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 1.0, 1.0>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c4_zero_points(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op weight_zero_points must have 1 or 3 entries, but got 2}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c4_no_zero_points(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op weight_zero_points must have 1 or 3 entries, but got 0}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c5(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c5_weight(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op weight_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0, 128>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c5_unsigned_weight(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xui8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op weight_zero_points must be in [0, 255], but got -1}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: -1>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xui8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c6(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<4xi32>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op bias must have 3 entries, but got 4}}
  %y = "qnn.conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<4xi32>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_bias_rank(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<1x3xi32>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'bias' must be a 1-d non-empty static tensor of i32, but got tensor<1x3xi32>}}
  %y = "qnn.conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<1x3xi32>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_bias_type(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi64>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'bias' must be a 1-d non-empty static tensor of i32, but got tensor<3xi64>}}
  %y = "qnn.conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi64>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_weight_type(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi32>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'weight' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<3x2x2x2xi32>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi32>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_c3_huge(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op result height must be at least 1 after padding is cut off, but got -18446744073709551609}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,

    output_padding = array<i64: 0, 0>, padding = array<i64: 9223372036854775807, 0, 9223372036854775807, 0>, dilation = array<i64: 1, 1>,
    groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_result_type(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op result 'output' must be a non-empty static tensor of i32, but got tensor<1x3x3x3xi8>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @conv_transpose2d_too_few_operands(%data: tensor<1x4x4x2xui8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op must have 2 or 3 operands, but got 1}}
  %y = "qnn.conv_transpose2d"(%data) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_too_many_operands(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op must have 2 or 3 operands, but got 4}}
  %y = "qnn.conv_transpose2d"(%data, %weight, %weight, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3x2x2x2xi8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_no_result(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op must have 1 result, but got 0}}
  "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> ()
  return
}

// -----

func.func @conv_transpose2d_two_results(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op must have 1 result, but got 2}}
  %y:2 = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> (tensor<1x3x3x3xi32>, tensor<1x3x3x3xi32>)
  return
}

// -----

func.func @conv_transpose2d_missing_attribute(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op must have attribute 'input_scale' (an f64 in [2^-60, 2^30])}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>,
    groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_unknown_attribute(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op has no attribute 'bogus'; it has 'input_scale', 'input_zero_point', 'weight_scales', 'weight_zero_points', 'strides', 'padding', 'output_padding', 'dilation', 'groups'}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64, bogus = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_attribute_kind(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op strides must be an array<i64>, but got dense<1> : tensor<2xi64>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = dense<1> : tensor<2xi64>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_memref(%data: memref<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got memref<1x4x4x2xui8>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (memref<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_vector(%data: vector<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got vector<1x4x4x2xui8>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (vector<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_unranked(%data: tensor<*xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<*xui8>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<*xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_dynamic_shape(%data: tensor<?x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<?x4x4x2xui8>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<?x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_no_elements(%data: tensor<0x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<0x4x4x2xui8>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<0x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_element_type(%data: tensor<1x4x4x2xf64>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<1x4x4x2xf64>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xf64>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_encoding(%data: tensor<1x4x4x2xui8, "encoding">, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8 without encoding, but got tensor<1x4x4x2xui8, "encoding">}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8, "encoding">, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_too_large(%data: tensor<2147483648x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x4x4x2xui8>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<2147483648x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_rank(%data: tensor<4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<4x4x2xui8>}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @conv_transpose2d_result_shape(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv_transpose2d' op result shape must be 1x3x3x3, but got 1x3x3x4}}
  %y = "qnn.conv_transpose2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>,
    output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x4xi32>
  return
}
