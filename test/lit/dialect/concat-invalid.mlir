// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @concat_c1(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op axis must be in [0, 2), but got 2}}
  %y = "qnn.concat"(%a, %b) {
    axis = 2 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c1_negative(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op axis must be in [0, 2), but got -1}}
  %y = "qnn.concat"(%a, %b) {
    axis = -1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c1_scalars(%a: tensor<i8>, %b: tensor<i8>) {
  // expected-error @+1 {{'qnn.concat' op axis must be in [0, 0), but got 0}}
  %y = "qnn.concat"(%a, %b) {
    axis = 0 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<i8>, tensor<i8>) -> tensor<2xi8>
  return
}

// -----

func.func @concat_c2(%a: tensor<2x3xi8>, %b: tensor<3x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op inputs must agree with [2, 3] but for axis 1, but got [3, 3]}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<3x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c2_rank(%a: tensor<2x3xi8>, %b: tensor<2x3x1xi8>) {
  // expected-error @+1 {{'qnn.concat' op inputs must agree with [2, 3] but for axis 1, but got [2, 3, 1]}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3x1xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c3(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op input_scales must have 2 entries, but got 1}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5>, input_zero_points = array<i64: 1, -2>, output_scale = 0.5 : f64,
    output_zero_point = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c3_zero_points(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op input_zero_points must have 2 entries, but got 3}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 0, 0, 0>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c4(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op input_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 0, 128>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_c4_output(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op output_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 128 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_segments(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op operandSegmentSizes must be array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, but got array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64,
    operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}

// -----

func.func @concat_no_segments(%a: tensor<2x3xi8>, %b: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.concat' op operandSegmentSizes must be array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, but got none}}
  %y = "qnn.concat"(%a, %b) {
    axis = 1 : i64, input_scales = array<f64: 0.5, 0.25>, input_zero_points = array<i64: 1, -2>,
    output_scale = 0.5 : f64, output_zero_point = 1 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x6xi8>
  return
}
