// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @l2_normalize_c1(%input: tensor<i8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op last dimension must be in [1, 33025], but got 0}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<i8>) -> tensor<i8>
  return
}

// -----

func.func @l2_normalize_c1_long(%input: tensor<33026xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op last dimension must be in [1, 33025], but got 33026}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<33026xi8>) -> tensor<33026xi8>
  return
}

// -----

func.func @l2_normalize_c2(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op result element type must be i8, but got ui8}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<2x3x4xi8>) -> tensor<2x3x4xui8>
  return
}

// -----

func.func @l2_normalize_c3(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op input_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 128 : i64
  } : (tensor<2x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_too_few_operands() {
  // expected-error @+1 {{'qnn.l2_normalize' op must have 1 operand, but got 0}}
  %y = "qnn.l2_normalize"() {
    input_zero_point = 3 : i64
  } : () -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_too_many_operands(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op must have 1 operand, but got 2}}
  %y = "qnn.l2_normalize"(%input, %input) {
    input_zero_point = 3 : i64
  } : (tensor<2x3x4xi8>, tensor<2x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_no_result(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op must have 1 result, but got 0}}
  "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<2x3x4xi8>) -> ()
  return
}

// -----

func.func @l2_normalize_two_results(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op must have 1 result, but got 2}}
  %y:2 = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<2x3x4xi8>) -> (tensor<2x3x4xi8>, tensor<2x3x4xi8>)
  return
}

// -----

func.func @l2_normalize_missing_attribute(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op must have attribute 'input_zero_point' (an i64)}}
  %y = "qnn.l2_normalize"(%input) {
    
  } : (tensor<2x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_unknown_attribute(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op has no attribute 'bogus'; it has 'input_zero_point'}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64, bogus = 1 : i64
  } : (tensor<2x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_attribute_kind(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op input_zero_point must be an i64, but got unit}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = unit
  } : (tensor<2x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_memref(%input: memref<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got memref<2x3x4xi8>}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (memref<2x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_vector(%input: vector<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got vector<2x3x4xi8>}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (vector<2x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<*xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_dynamic_shape(%input: tensor<?x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<?x3x4xi8>}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<?x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_no_elements(%input: tensor<0x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<0x3x4xi8>}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<0x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_element_type(%input: tensor<2x3x4xf64>) {
  // expected-error @+1 {{'qnn.l2_normalize' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3x4xf64>}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<2x3x4xf64>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_encoding(%input: tensor<2x3x4xi8, "encoding">) {
  // expected-error @+1 {{'qnn.l2_normalize' op operand 'input' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x3x4xi8, "encoding">}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<2x3x4xi8, "encoding">) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_too_large(%input: tensor<2147483648x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op operand 'input' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x3x4xi8>}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<2147483648x3x4xi8>) -> tensor<2x3x4xi8>
  return
}

// -----

func.func @l2_normalize_result_shape(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op result shape must be 2x3x4, but got 9x2x3x4}}
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<2x3x4xi8>) -> tensor<9x2x3x4xi8>
  return
}
