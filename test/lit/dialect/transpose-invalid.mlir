// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @transpose_c1(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op result element type must be i8, but got ui8}}
  %y = "qnn.transpose"(%input) {
    permutation = array<i64: 0, 3, 1, 2>
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xui8>
  return
}

// -----

func.func @transpose_c2(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op permutation must order 4 dimensions, but got [0, 1, 2]}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 1, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_c2_twice(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op permutation must order 4 dimensions, but got [0, 1, 1, 2]}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 1, 1, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_c2_negative(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op permutation must order 4 dimensions, but got [0, 1, 2, -1]}}
  %y = "qnn.transpose"(%input) {
    permutation = array<i64: 0, 1, 2, -1>
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_c2_range(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op permutation must order 4 dimensions, but got [0, 1, 2, 4]}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 1, 2, 4>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_too_few_operands() {
  // expected-error @+1 {{'qnn.transpose' op must have 1 operand, but got 0}}
  %y = "qnn.transpose"() {permutation = array<i64: 0, 3, 1, 2>} : () -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_too_many_operands(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op must have 1 operand, but got 2}}
  %y = "qnn.transpose"(%input, %input) {
    permutation = array<i64: 0, 3, 1, 2>
  } : (tensor<1x4x4x2xi8>, tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_no_result(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op must have 1 result, but got 0}}
  "qnn.transpose"(%input) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xi8>) -> ()
  return
}

// -----

func.func @transpose_two_results(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op must have 1 result, but got 2}}
  %y:2 = "qnn.transpose"(%input) {
    permutation = array<i64: 0, 3, 1, 2>
  } : (tensor<1x4x4x2xi8>) -> (tensor<1x2x4x4xi8>, tensor<1x2x4x4xi8>)
  return
}

// -----

func.func @transpose_missing_attribute(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op must have attribute 'permutation' (an array<i64>)}}
  %y = "qnn.transpose"(%input) {} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_unknown_attribute(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op has no attribute 'bogus'; it has 'permutation'}}
  %y = "qnn.transpose"(%input) {
    permutation = array<i64: 0, 3, 1, 2>, bogus = 1 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_attribute_kind(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op permutation must be an array<i64>, but got dense<0> : tensor<4xi64>}}
  %y = "qnn.transpose"(%input) {
    permutation = dense<0> : tensor<4xi64>
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_memref(%input: memref<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got memref<1x4x4x2xi8>}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 3, 1, 2>} : (memref<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_vector(%input: vector<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got vector<1x4x4x2xi8>}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 3, 1, 2>} : (vector<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.transpose' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<*xi8>}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<*xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_dynamic_shape(%input: tensor<?x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<?x4x4x2xi8>}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<?x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_no_elements(%input: tensor<0x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<0x4x4x2xi8>}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<0x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_element_type(%input: tensor<1x4x4x2xf64>) {
  // expected-error @+1 {{'qnn.transpose' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<1x4x4x2xf64>}}
  %y = "qnn.transpose"(%input) {
    permutation = array<i64: 0, 3, 1, 2>
  } : (tensor<1x4x4x2xf64>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_encoding(%input: tensor<1x4x4x2xi8, "encoding">) {
  // expected-error @+1 {{'qnn.transpose' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 without encoding, but got tensor<1x4x4x2xi8, "encoding">}}
  %y = "qnn.transpose"(%input) {
    permutation = array<i64: 0, 3, 1, 2>
  } : (tensor<1x4x4x2xi8, "encoding">) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_too_large(%input: tensor<2147483648x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 with at most 2147483647 elements, but got tensor<2147483648x4x4x2xi8>}}
  %y = "qnn.transpose"(%input) {
    permutation = array<i64: 0, 3, 1, 2>
  } : (tensor<2147483648x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_result_shape(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op result shape must be 1x2x4x4, but got 1x4x4x2}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x4x4x2xi8>
  return
}
