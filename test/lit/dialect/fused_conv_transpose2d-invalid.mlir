// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all fused ops share is tested in fused-invalid.mlir, the stages in stages/.

func.func @fused_conv_transpose2d_c1(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    strides = array<i64: 0, 1>, padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c1_negative_strides(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op strides must be 2 integers of at least 1, but got [1, -1]}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    strides = array<i64: 1, -1>, padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c1_three_strides(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op strides must be 2 integers of at least 1, but got [1, 1, 1]}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    strides = array<i64: 1, 1, 1>, padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c1_dilation(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op dilation must be 2 integers of at least 1, but got [1, 0]}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 0>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c1_padding(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op padding must be 4 integers of at least 0, but got [0, 0, -1, 0]}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 0, 0, -1, 0>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c1_two_paddings(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op padding must be 4 integers of at least 0, but got [1, 1]}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c1_output_padding(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op output_padding must be 2 integers of at least 0, but got [0, -1]}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_padding = array<i64: 0, -1>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
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

func.func @fused_conv_transpose2d_c2_divides(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op groups must divide 2 input and 3 output channels, but got 2}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, groups = 2 : i64, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c2_depth(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x1xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op weight depth must be 2, but got 1}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x1xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
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

// -----

func.func @fused_conv_transpose2d_c3_dilated(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op result width must be at least 1 after padding is cut off, but got 0}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 0, 3, 0, 4>, dilation = array<i64: 1, 3>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_huge_dilation(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op result shape must be 1x9223372036854775811x5x3, but got 1x3x3x3}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    dilation = array<i64: 9223372036854775807, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c4(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op weight_scales must have 1 or 3 entries, but got 2}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 1.0, 1.0>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c4_zero_points(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op weight_zero_points must have 1 or 3 entries, but got 2}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0>, padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c4_no_zero_points(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op weight_zero_points must have 1 or 3 entries, but got 0}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64>, padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c5(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c5_weight(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op weight_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0, 128>, padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c5_unsigned_weight(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xui8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op weight_zero_points must be in [0, 255], but got -1}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: -1>, padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64,
    output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xui8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_c6(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<4xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op bias must have 3 entries, but got 4}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<4xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_bias_rank(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<1x3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op operand 'bias' must be a 1-d non-empty static tensor of i32 or f32, but got tensor<1x3xi32>}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<1x3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_bias_type(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi64>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op operand 'bias' must be a 1-d non-empty static tensor of i32 or f32, but got tensor<3xi64>}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi64>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_r6_wide_result(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op result 'output' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<1x3x3x3xi32>}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @fused_conv_transpose2d_r6_wide_data(%data: tensor<1x4x4x2xi16>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<1x4x4x2xi16>}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xi16>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_r6_wide_residual(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>, %residual: tensor<1x3x3x3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op operand 'residual' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<1x3x3x3xi32>}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias, %residual) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.25 : f64, zero_point = 5 : i64}},
      {add = {residual_scale = 0.125 : f64, residual_zero_point = -7 : i64}},
      {clamp = {min = 1 : i64, max = 100 : i64}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>, tensor<1x3x3x3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_rank(%data: tensor<4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<4x4x2xui8>}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x3xi8>
  return
}

// -----

func.func @fused_conv_transpose2d_result_shape(%data: tensor<1x4x4x2xui8>, %weight: tensor<3x2x2x2xi8>, %bias: tensor<3xi32>) {
  // expected-error @+1 {{'qnn.fused_conv_transpose2d' op result shape must be 1x3x3x3, but got 1x3x3x4}}
  %y = "qnn.fused_conv_transpose2d"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    padding = array<i64: 1, 1, 1, 1>, output_scale = 0.25 : f64, output_zero_point = 5 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<3x2x2x2xi8>, tensor<3xi32>) -> tensor<1x3x3x4xi8>
  return
}
