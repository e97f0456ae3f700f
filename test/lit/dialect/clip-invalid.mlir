// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @clip_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op min and max must be ordered and in [-128, 127], but got 3 and 2}}
  %y = "qnn.clip"(%input) {min = 3 : i64, max = 2 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_c1_range(%input: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.clip' op min and max must be ordered and in [0, 255], but got -3 and 100}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<2x3xui8>) -> tensor<2x3xui8>
  return
}

// -----

func.func @clip_c1_extremes(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op min and max must be ordered and in [-128, 127], but got -9223372036854775808 and 9223372036854775807}}
  %y = "qnn.clip"(%input) {
    min = -9223372036854775808 : i64, max = 9223372036854775807 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op result element type must be i8, but got ui8}}
  %y = "qnn.clip"(%input) {min = 0 : i64, max = 100 : i64} : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return
}

// -----

func.func @clip_too_few_operands() {
  // expected-error @+1 {{'qnn.clip' op must have 1 operand, but got 0}}
  %y = "qnn.clip"() {min = -3 : i64, max = 100 : i64} : () -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_too_many_operands(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op must have 1 operand, but got 2}}
  %y = "qnn.clip"(%input, %input) {
    min = -3 : i64, max = 100 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_no_result(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op must have 1 result, but got 0}}
  "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @clip_two_results(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op must have 1 result, but got 2}}
  %y:2 = "qnn.clip"(%input) {
    min = -3 : i64, max = 100 : i64
  } : (tensor<2x3xi8>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @clip_missing_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op must have attribute 'min' (an i64)}}
  %y = "qnn.clip"(%input) {max = 100 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_unknown_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op has no attribute 'bogus'; it has 'min', 'max'}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64, bogus = 1 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_attribute_kind(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op min must be an i64, but got -3 : si64}}
  %y = "qnn.clip"(%input) {min = -3 : si64, max = 100 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_memref(%input: memref<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got memref<2x3xi8>}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (memref<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_vector(%input: vector<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got vector<2x3xi8>}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (vector<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.clip' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<*xi8>}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<*xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_dynamic_shape(%input: tensor<?x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<?x3xi8>}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<?x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_no_elements(%input: tensor<0x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<0x3xi8>}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<0x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.clip' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<2x3xf64>}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<2x3xf64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_encoding(%input: tensor<2x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.clip' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<2x3xi8, "encoding">) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_too_large(%input: tensor<2147483648x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<2147483648x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @clip_result_shape(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.clip' op result shape must be 2x3, but got 3x2}}
  %y = "qnn.clip"(%input) {min = -3 : i64, max = 100 : i64} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}
