// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @concat_c1(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op axis must be in [0, 2), but got 2}}
  %y = "qnn.concat"(%a, %b) {
    axis = 2 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c1_negative(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op axis must be in [0, 2), but got -1}}
  %y = "qnn.concat"(%a, %b) {
    axis = -1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c1_scalars(%a: tensor<i8>, %b: tensor<i8>) {
  // expected-error @+1 {{'qnn.concat' op axis must be in [0, 0), but got 0}}
  %y = "qnn.concat"(%a, %b) {
    axis = 0 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<i8>, tensor<i8>) -> tensor<2xi8>
  return
}

// -----

func.func @concat_c2(%a: tensor<2x3xi8>, %b: tensor<3x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op inputs must agree with [2, 3] but for axis 1, but got [3, 3]}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<3x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c2_rank(%a: tensor<2x3xi8>, %b: tensor<2x3x1xi8>) {
  // expected-error @+1 {{'qnn.concat' op inputs must agree with [2, 3] but for axis 1, but got [2, 3, 1]}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3x1xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c3(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op input_scales must have 2 entries, but got 1}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c3_zero_points(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op input_zero_points must have 2 entries, but got 3}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 0, 0, 0>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c4(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op input_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 0, 128>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c4_output(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op output_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 128 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_no_operands() {
  // expected-error @+1 {{'qnn.concat' op must have 1 to 16 operands, but got 0}}
  %y = "qnn.concat"() {
    axis = 1 : i64, input_scales = array<f64: 0.5>, input_zero_points = array<i64: 0>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : () -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_no_result(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op must have 1 result, but got 0}}
  "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @concat_missing_attribute(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op must have attribute 'axis' (an i64)}}
  %y = "qnn.concat"(%a, %b) {
    input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_unknown_attribute(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op has no attribute 'bogus'; it has 'axis', 'input_scales', 'input_zero_points', 'output_scale', 'output_zero_point', 'rounding', 'multiplier'}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    bogus = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_attribute_kind(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op input_zero_points must be an array<i64>, but got 1 : i64}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = 1 : i64, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_memref(%a: memref<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op operand 'inputs' must be a non-empty static tensor of i8 or ui8, but got memref<2x3xi8>}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (memref<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_dynamic_shape(%a: tensor<2x3xi8>, %b: tensor<2x?xi8>) {
  // expected-error @+1 {{'qnn.concat' op operand 'inputs' must be a non-empty static tensor of i8 or ui8, but got tensor<2x?xi8>}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x?xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_no_elements(%a: tensor<2x3xi8>, %b: tensor<2x0xi8>) {
  // expected-error @+1 {{'qnn.concat' op operand 'inputs' must be a non-empty static tensor of i8 or ui8, but got tensor<2x0xi8>}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x0xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_element_type(%a: tensor<2x3xi8>, %b: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.concat' op operand 'inputs' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xi32>}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi32>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_result_shape(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op result shape must be 2x6, but got 2x5}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x5xi8>
  return
}

// -----

func.func @concat_too_many_operands(%a: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op must have 1 to 16 operands, but got 17}}
  %y = "qnn.concat"(%a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1>
  } : (tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_segments(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op operandSegmentSizes must be array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, but got array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64",
    operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_no_segments(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op operandSegmentSizes must be array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, but got none}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}
