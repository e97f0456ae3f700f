// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @arg_min_c1(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op axis must be in [0, 3), but got 3}}
  %y = "qnn.arg_min"(%input) {
    axis = 3 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_c1_negative(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op axis must be in [0, 3), but got -1}}
  %y = "qnn.arg_min"(%input) {
    axis = -1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_c1_scalar(%input: tensor<i8>) {
  // expected-error @+1 {{'qnn.arg_min' op axis must be in [0, 0), but got 0}}
  %y = "qnn.arg_min"(%input) {
    axis = 0 : i64, keep_dims = false, last = false
  } : (tensor<i8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_result_element_type(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op result 'output' must be a non-empty static tensor of i32 or i64, but got tensor<2x4xi8>}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> tensor<2x4xi8>
  return
}

// -----

func.func @arg_min_too_few_operands() {
  // expected-error @+1 {{'qnn.arg_min' op must have 1 operand, but got 0}}
  %y = "qnn.arg_min"() {
    axis = 1 : i64, keep_dims = false, last = false
  } : () -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_too_many_operands(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op must have 1 operand, but got 2}}
  %y = "qnn.arg_min"(%input, %input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>, tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_no_result(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op must have 1 result, but got 0}}
  "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> ()
  return
}

// -----

func.func @arg_min_two_results(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op must have 1 result, but got 2}}
  %y:2 = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> (tensor<2x4xi64>, tensor<2x4xi64>)
  return
}

// -----

func.func @arg_min_missing_attribute(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op must have attribute 'axis' (an i64)}}
  %y = "qnn.arg_min"(%input) {
    keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_unknown_attribute(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op has no attribute 'bogus'; it has 'axis', 'keep_dims', 'last'}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false, bogus = 1 : i64
  } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_attribute_kind(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op axis must be an i64, but got unit}}
  %y = "qnn.arg_min"(%input) {
    axis = unit, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_memref(%input: memref<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got memref<2x3x4xi8>}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (memref<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_vector(%input: vector<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got vector<2x3x4xi8>}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (vector<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<*xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_dynamic_shape(%input: tensor<?x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<?x3x4xi8>}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<?x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_no_elements(%input: tensor<0x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<0x3x4xi8>}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<0x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_element_type(%input: tensor<2x3x4xf64>) {
  // expected-error @+1 {{'qnn.arg_min' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3x4xf64>}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xf64>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_encoding(%input: tensor<2x3x4xi8, "encoding">) {
  // expected-error @+1 {{'qnn.arg_min' op operand 'input' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x3x4xi8, "encoding">}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8, "encoding">) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_too_large(%input: tensor<2147483648x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op operand 'input' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x3x4xi8>}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2147483648x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_min_result_shape(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_min' op result shape must be 2x4, but got 9x2x4}}
  %y = "qnn.arg_min"(%input) {
    axis = 1 : i64, keep_dims = false, last = false
  } : (tensor<2x3x4xi8>) -> tensor<9x2x4xi64>
  return
}
