// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @requantize_c1(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op axis must be in [0, 2), but got 2}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 2 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c1_negative(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op axis must be in [0, 2), but got -1}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = -1 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c2(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op weight_scales must have 1 or 2 entries, but got 3}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0, 1.0, 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c2_zero_points(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op input_zero_points must have 1 or 2 entries, but got 0}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c3(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op output_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = 128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_c3_unsigned(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op output_zero_point must be in [0, 255], but got -128}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xui8>
  return
}

// -----

func.func @requantize_rounding(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op rounding must be one of "fixed64_up", "fixed64_nearest", "fixed64_double", "fixed32_double", "f32_rne_zp_last", "f32_rne_zp_first", "f32_up_zp_first", "f32_nearest_zp_first", but got "up"}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "up", multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_multiplier(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op multiplier must be one of "f64", "f32_product", "f32", but got "f16"}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f16"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_too_few_operands() {
  // expected-error @+1 {{'qnn.requantize' op must have 1 operand, but got 0}}
  %y = "qnn.requantize"() {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : () -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_too_many_operands(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op must have 1 operand, but got 2}}
  %y = "qnn.requantize"(%input, %input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_no_result(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op must have 1 result, but got 0}}
  "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> ()
  return
}

// -----

func.func @requantize_two_results(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op must have 1 result, but got 2}}
  %y:2 = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @requantize_missing_attribute(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op must have attribute 'output_scale' (an f64 in [2^-60, 2^30])}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_unknown_attribute(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op has no attribute 'bogus'; it has 'input_scale', 'weight_scales', 'input_zero_points', 'output_scale', 'output_zero_point', 'axis', 'rounding', 'multiplier'}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64", bogus = 1 : i64
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_attribute_kind(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op output_scale must be an f64 in [2^-60, 2^30], but got 1 : i64}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 1 : i64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_memref(%input: memref<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got memref<2x3xi32>}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (memref<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_vector(%input: vector<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got vector<2x3xi32>}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (vector<2x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_unranked(%input: tensor<*xi32>) {
  // expected-error @+1 {{'qnn.requantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<*xi32>}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<*xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_dynamic_shape(%input: tensor<?x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<?x3xi32>}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<?x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_no_elements(%input: tensor<0x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<0x3xi32>}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<0x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.requantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<2x3xf64>}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xf64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_encoding(%input: tensor<2x3xi32, "encoding">) {
  // expected-error @+1 {{'qnn.requantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 without encoding, but got tensor<2x3xi32, "encoding">}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32, "encoding">) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_too_large(%input: tensor<2147483648x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 with at most 2147483647 elements, but got tensor<2147483648x3xi32>}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2147483648x3xi32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @requantize_result_shape(%input: tensor<2x3xi32>) {
  // expected-error @+1 {{'qnn.requantize' op result shape must be 2x3, but got 3x2}}
  %y = "qnn.requantize"(%input) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 1.0>, input_zero_points = array<i64: 0>,
    output_scale = 0.25 : f64, output_zero_point = -128 : i64, axis = 0 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<3x2xi8>
  return
}
