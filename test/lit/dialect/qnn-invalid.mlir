// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all ops share: counts, attributes and types. Every op is tried by test/dialect/test_fields.py.

func.func @qnn_nan(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op nan must be one of "max", "min", "zero_point", "zero", but got unit}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    nan = unit
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_input_scale_zero(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op input_scale must be an f64 in [2^-60, 2^30], but got 0.000000e+00 : f64}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.0 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_input_scale_nan(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op input_scale must be an f64 in [2^-60, 2^30], but got 0x7FF8000000000000 : f64}}
  %y = "qnn.relu"(%input) {
    input_scale = 0x7FF8000000000000 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_input_scale_f32(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op input_scale must be an f64 in [2^-60, 2^30], but got 5.000000e-01 : f32}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f32, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_too_few_operands() {
  // expected-error @+1 {{'qnn.relu' op must have 1 operand, but got 0}}
  %y = "qnn.relu"() {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : () -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_too_many_operands(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op must have 1 operand, but got 2}}
  %y = "qnn.relu"(%input, %input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_no_result(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op must have 1 result, but got 0}}
  "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @qnn_two_results(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op must have 1 result, but got 2}}
  %y:2 = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @qnn_missing_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op must have attribute 'input_zero_point' (an i64)}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_unknown_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op has no attribute 'bogus'; it has 'input_scale', 'input_zero_point', 'output_scale', 'output_zero_point', 'entries', 'nan'}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    bogus = 1 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_attribute_kind(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op input_zero_point must be an i64, but got 3 : i32}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i32, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_memref(%input: memref<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got memref<2x3xi8>}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (memref<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.relu' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<*xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_dynamic_shape(%input: tensor<?x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<?x3xi8>}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<?x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_no_elements(%input: tensor<0x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<0x3xi8>}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<0x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.relu' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xf64>}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xf64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_encoding(%input: tensor<2x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.relu' op operand 'input' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8, "encoding">) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_too_large(%input: tensor<2147483648x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op operand 'input' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2147483648x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_result_shape(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu' op result shape must be 2x3, but got 3x2}}
  %y = "qnn.relu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64
  } : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @qnn_concat_no_operands() {
  // expected-error @+1 {{'qnn.concat' op must have 1 to 16 operands, but got 0}}
  %y = "qnn.concat"() {
    axis = 1 : i64, input_scales = array<f64: 0.5>, input_zero_points = array<i64: 0>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : () -> tensor<2x6xi8>
  return
}

// -----

func.func @qnn_conv2d_too_few_operands(%data: tensor<1x4x4x2xui8>) {
  // expected-error @+1 {{'qnn.conv2d' op must have 2 or 3 operands, but got 1}}
  %y = "qnn.conv2d"(%data) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<1x4x4x2xui8>) -> tensor<1x3x3x3xi32>
  return
}

// -----

func.func @qnn_lut_table_short(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got dense<0> : tensor<255xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    table = dense<0> : tensor<255xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_lut_table_unit(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got unit}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    table = unit
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_elu_alpha_nan(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.elu' op alpha must be a finite f64, but got 0x7FF8000000000000 : f64}}
  %y = "qnn.elu"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    alpha = 0x7FF8000000000000 : f64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_quantize_scales_empty(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must be a non-empty array<f64> of positive scales up to 2^30, but got array<f64>}}
  %y = "qnn.quantize"(%input) {scales = array<f64>, zero_points = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_quantize_scales_zero(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must be a non-empty array<f64> of positive scales up to 2^30, but got array<f64: 1.000000e+00, 0.000000e+00>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 1.0, 0.0>, zero_points = array<i64: 3>
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @qnn_avg_pool2d_count_include_pad(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op count_include_pad must be a bool, but got 1 : i64}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64,
    count_include_pad = 1 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @qnn_constant_value_sparse() {
  // expected-error @+1 {{'qnn.constant' op value must be dense elements, but got sparse<0, 1> : tensor<3xi8>}}
  %y = "qnn.constant"() {value = sparse<[[0]], 1> : tensor<3xi8>} : () -> tensor<3xi8>
  return
}

// -----

func.func @qnn_conv2d_rank(%data: tensor<4x4x2xui8>, %weight: tensor<3x2x2x2xi8>) {
  // expected-error @+1 {{'qnn.conv2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<4x4x2xui8>}}
  %y = "qnn.conv2d"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>
  } : (tensor<4x4x2xui8>, tensor<3x2x2x2xi8>) -> tensor<1x3x3x3xi32>
  return
}
