// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @softmax_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op axis must be in [0, 2), but got 2}}
  %y = "qnn.softmax"(%input) {
    axis = 2 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c1_negative(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op axis must be in [0, 2), but got -1}}
  %y = "qnn.softmax"(%input) {
    axis = -1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c1_scalar(%input: tensor<i8>) {
  // expected-error @+1 {{'qnn.softmax' op axis must be in [0, 0), but got 0}}
  %y = "qnn.softmax"(%input) {
    axis = 0 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<i8>) -> tensor<i8>
  return
}

// -----

func.func @softmax_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op output_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = 128 : i64, arithmetic = "float"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c3(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op output_scale and output_zero_point must be 0.00390625 and -128, but got 0.5 and -128}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.5 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c3_zero_point(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op output_scale and output_zero_point must be 0.00390625 and -128, but got 0.00390625 and 0}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = 0 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c3_element_type(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op result element type must be i8, but got ui8}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = 0 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return
}

// -----

func.func @softmax_c4(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op input_scale * beta must be greater than 2^-26, but got 1.4901161193847656e-08}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 1.4901161193847656e-08 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_beta(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op beta must be an f64 in [2^-60, 2^30], but got -1.000000e+00 : f64}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = -1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_arithmetic(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op arithmetic must be one of "tflite_fixed", "float", "ort_table", but got "exact"}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "exact"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_too_few_operands() {
  // expected-error @+1 {{'qnn.softmax' op must have 1 operand, but got 0}}
  %y = "qnn.softmax"() {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : () -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_too_many_operands(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op must have 1 operand, but got 2}}
  %y = "qnn.softmax"(%input, %input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_no_result(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op must have 1 result, but got 0}}
  "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @softmax_two_results(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op must have 1 result, but got 2}}
  %y:2 = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @softmax_missing_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op must have attribute 'axis' (an i64)}}
  %y = "qnn.softmax"(%input) {
    input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64, output_zero_point = -128 : i64,
    arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_unknown_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op has no attribute 'bogus'; it has 'axis', 'input_scale', 'beta', 'output_scale', 'output_zero_point', 'arithmetic'}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed", bogus = 1 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_attribute_kind(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op axis must be an i64, but got 1 : i32}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i32, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_memref(%input: memref<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got memref<2x3xi8>}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (memref<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_vector(%input: vector<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got vector<2x3xi8>}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (vector<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.softmax' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<*xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_dynamic_shape(%input: tensor<?x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<?x3xi8>}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<?x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_no_elements(%input: tensor<0x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<0x3xi8>}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<0x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.softmax' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xf64>}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xf64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_encoding(%input: tensor<2x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.softmax' op operand 'input' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8, "encoding">) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_too_large(%input: tensor<2147483648x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op operand 'input' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2147483648x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_result_shape(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op result shape must be 2x3, but got 3x2}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}
