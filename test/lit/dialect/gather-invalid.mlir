// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @gather_c1(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op result element type must be i8, but got ui8}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xi8>) -> tensor<4x3xui8>
  return
}

// -----

func.func @gather_c2(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op axis must be in [0, 2), but got 2}}
  %y = "qnn.gather"(%input) {axis = 2 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_c2_negative(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op axis must be in [0, 2), but got -1}}
  %y = "qnn.gather"(%input) {axis = -1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_c3(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op indices must be in [0, 6), but got 6}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 6, 7>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_c3_negative(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op indices must be in [0, 6), but got -1}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 0, -1, 1>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_c3_none(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op indices must have at least one entry, but got none}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_too_few_operands() {
  // expected-error @+1 {{'qnn.gather' op must have 1 operand, but got 0}}
  %y = "qnn.gather"() {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : () -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_too_many_operands(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op must have 1 operand, but got 2}}
  %y = "qnn.gather"(%input, %input) {
    axis = 1 : i64, indices = array<i64: 5, 0, 5>
  } : (tensor<4x6xi8>, tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_no_result(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op must have 1 result, but got 0}}
  "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xi8>) -> ()
  return
}

// -----

func.func @gather_two_results(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op must have 1 result, but got 2}}
  %y:2 = "qnn.gather"(%input) {
    axis = 1 : i64, indices = array<i64: 5, 0, 5>
  } : (tensor<4x6xi8>) -> (tensor<4x3xi8>, tensor<4x3xi8>)
  return
}

// -----

func.func @gather_missing_attribute(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op must have attribute 'axis' (an i64)}}
  %y = "qnn.gather"(%input) {indices = array<i64: 5, 0, 5>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_unknown_attribute(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op has no attribute 'bogus'; it has 'axis', 'indices'}}
  %y = "qnn.gather"(%input) {
    axis = 1 : i64, indices = array<i64: 5, 0, 5>, bogus = 1 : i64
  } : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_attribute_kind(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op axis must be an i64, but got dense<0> : tensor<4xi64>}}
  %y = "qnn.gather"(%input) {
    axis = dense<0> : tensor<4xi64>, indices = array<i64: 5, 0, 5>
  } : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_memref(%input: memref<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got memref<4x6xi8>}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (memref<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_vector(%input: vector<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got vector<4x6xi8>}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (vector<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.gather' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<*xi8>}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<*xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_dynamic_shape(%input: tensor<?x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<?x6xi8>}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<?x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_no_elements(%input: tensor<0x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<0x6xi8>}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<0x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_element_type(%input: tensor<4x6xf64>) {
  // expected-error @+1 {{'qnn.gather' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<4x6xf64>}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xf64>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_encoding(%input: tensor<4x6xi8, "encoding">) {
  // expected-error @+1 {{'qnn.gather' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 without encoding, but got tensor<4x6xi8, "encoding">}}
  %y = "qnn.gather"(%input) {
    axis = 1 : i64, indices = array<i64: 5, 0, 5>
  } : (tensor<4x6xi8, "encoding">) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_too_large(%input: tensor<2147483648x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 with at most 2147483647 elements, but got tensor<2147483648x6xi8>}}
  %y = "qnn.gather"(%input) {
    axis = 1 : i64, indices = array<i64: 5, 0, 5>
  } : (tensor<2147483648x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_result_shape(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op result shape must be 4x3, but got 4x6}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xi8>) -> tensor<4x6xi8>
  return
}
