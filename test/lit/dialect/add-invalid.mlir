// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @add_c1(%lhs: tensor<2x3xi8>, %rhs: tensor<2x4xi8>) {
  // expected-error @+1 {{'qnn.add' op operand shapes must broadcast, but got [2, 3] and [2, 4]}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x4xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_c2(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op lhs_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 128 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_c2_rhs(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.add' op rhs_zero_point must be in [0, 255], but got -4}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xui8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_c2_output(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op output_zero_point must be in [-128, 127], but got -129}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = -129 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_c3(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op output_min and output_max must be ordered and in [-128, 127], but got 10 and 9}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = 10 : i64, output_max = 9 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_c3_range(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op output_min and output_max must be ordered and in [0, 255], but got -128 and 127}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xui8>
  return
}

// -----

func.func @add_arithmetic(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op arithmetic must be one of "requantize_each", "shifted_fixed", "shifted_single", "shifted_double", "float_once", "fixed_once", "f32_divide", "f32_reciprocal", but got "exact"}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "exact", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_too_few_operands(%lhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op must have 2 operands, but got 1}}
  %y = "qnn.add"(%lhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_too_many_operands(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op must have 2 operands, but got 3}}
  %y = "qnn.add"(%lhs, %rhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_no_result(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op must have 1 result, but got 0}}
  "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @add_two_results(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op must have 1 result, but got 2}}
  %y:2 = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @add_missing_attribute(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op must have attribute 'lhs_scale' (an f64 in [2^-60, 2^30])}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64, output_scale = 0.75 : f64,
    output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64, arithmetic = "requantize_each",
    rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_unknown_attribute(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op has no attribute 'bogus'; it has 'lhs_scale', 'lhs_zero_point', 'rhs_scale', 'rhs_zero_point', 'output_scale', 'output_zero_point', 'output_min', 'output_max', 'arithmetic', 'rounding', 'multiplier'}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64", bogus = 1 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_attribute_kind(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op lhs_scale must be an f64 in [2^-60, 2^30], but got 1.000000e+00 : f32}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 1.0 : f32, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_memref(%lhs: memref<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op operand 'lhs' must be a non-empty static tensor of i8 or ui8, but got memref<2x3xi8>}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (memref<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_vector(%lhs: vector<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op operand 'lhs' must be a non-empty static tensor of i8 or ui8, but got vector<2x3xi8>}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (vector<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_unranked(%lhs: tensor<*xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op operand 'lhs' must be a non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<*xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_dynamic_shape(%lhs: tensor<?x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op operand 'lhs' must be a non-empty static tensor of i8 or ui8, but got tensor<?x3xi8>}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<?x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_no_elements(%lhs: tensor<0x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op operand 'lhs' must be a non-empty static tensor of i8 or ui8, but got tensor<0x3xi8>}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<0x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_element_type(%lhs: tensor<2x3xf64>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op operand 'lhs' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xf64>}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xf64>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_encoding(%lhs: tensor<2x3xi8, "encoding">, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op operand 'lhs' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8, "encoding">, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_too_large(%lhs: tensor<2147483648x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op operand 'lhs' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2147483648x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @add_result_shape(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.add' op result shape must be 2x3, but got 3x2}}
  %y = "qnn.add"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}
