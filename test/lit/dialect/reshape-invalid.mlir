// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @reshape_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op result element type must be i8, but got ui8}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> tensor<3x2xui8>
  return
}

// -----

func.func @reshape_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 6 elements, but got [3, 3]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 3>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_c2_negative(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 6 elements, but got [-3, -2]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: -3, -2>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_c2_minus_one(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 6 elements, but got [3, -1]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, -1>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_c2_zero(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 6 elements, but got [0]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 0>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_c2_overflow(%input: tensor<4xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 4 elements, but got [4294967296, 4294967296, 4]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 4294967296, 4294967296, 4>} : (tensor<4xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_too_few_operands() {
  // expected-error @+1 {{'qnn.reshape' op must have 1 operand, but got 0}}
  %y = "qnn.reshape"() {shape = array<i64: 3, 2>} : () -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_too_many_operands(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op must have 1 operand, but got 2}}
  %y = "qnn.reshape"(%input, %input) {
    shape = array<i64: 3, 2>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_no_result(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op must have 1 result, but got 0}}
  "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @reshape_two_results(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op must have 1 result, but got 2}}
  %y:2 = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> (tensor<3x2xi8>, tensor<3x2xi8>)
  return
}

// -----

func.func @reshape_missing_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op must have attribute 'shape' (an array<i64>)}}
  %y = "qnn.reshape"(%input) {} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_unknown_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op has no attribute 'bogus'; it has 'shape'}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>, bogus = 1 : i64} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_attribute_kind(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must be an array<i64>, but got [3, 2]}}
  %y = "qnn.reshape"(%input) {shape = [3, 2]} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_memref(%input: memref<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got memref<2x3xi8>}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (memref<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_vector(%input: vector<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got vector<2x3xi8>}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (vector<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.reshape' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<*xi8>}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<*xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_dynamic_shape(%input: tensor<?x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<?x3xi8>}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<?x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_no_elements(%input: tensor<0x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<0x3xi8>}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<0x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.reshape' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<2x3xf64>}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xf64>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_encoding(%input: tensor<2x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.reshape' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8, "encoding">) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_too_large(%input: tensor<2147483648x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<2147483648x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_result_shape(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op result shape must be 3x2, but got 2x3}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}
