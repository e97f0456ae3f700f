// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @slice_c1(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op result element type must be i8, but got f32}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_c2(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op begin must be 2 integers of at least 0, but got [-1, 0]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: -1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c2_count(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op begin must be 2 integers of at least 0, but got [1]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c2_size(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op size must be 2 integers of at least 1, but got [0, 3]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 0, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c2_strides(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op strides must be 2 integers of at least 1, but got [1, -2]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, -2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c3(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op last element must lie in a tensor of shape [4, 6], but got [4, 4]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 3, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c3_strides(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op last element must lie in a tensor of shape [4, 6], but got [2, 6]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 3>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c3_overflow(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op last element must lie in a tensor of shape [4, 6], but got [9223372036854775808, 4]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 9223372036854775807, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_too_few_operands() {
  // expected-error @+1 {{'qnn.slice' op must have 1 operand, but got 0}}
  %y = "qnn.slice"() {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : () -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_too_many_operands(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op must have 1 operand, but got 2}}
  %y = "qnn.slice"(%input, %input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>, tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_no_result(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op must have 1 result, but got 0}}
  "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> ()
  return
}

// -----

func.func @slice_two_results(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op must have 1 result, but got 2}}
  %y:2 = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @slice_missing_attribute(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op must have attribute 'begin' (an array<i64>)}}
  %y = "qnn.slice"(%input) {size = array<i64: 2, 3>, strides = array<i64: 1, 2>} : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_unknown_attribute(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op has no attribute 'bogus'; it has 'begin', 'size', 'strides'}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>, bogus = 1 : i64
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_attribute_kind(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op begin must be an array<i64>, but got dense<0> : tensor<4xi64>}}
  %y = "qnn.slice"(%input) {
    begin = dense<0> : tensor<4xi64>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_memref(%input: memref<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got memref<4x6xi8>}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (memref<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_vector(%input: vector<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got vector<4x6xi8>}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (vector<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.slice' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<*xi8>}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<*xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_dynamic_shape(%input: tensor<?x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<?x6xi8>}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<?x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_no_elements(%input: tensor<0x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<0x6xi8>}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<0x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_element_type(%input: tensor<4x6xf64>) {
  // expected-error @+1 {{'qnn.slice' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<4x6xf64>}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xf64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_encoding(%input: tensor<4x6xi8, "encoding">) {
  // expected-error @+1 {{'qnn.slice' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 without encoding, but got tensor<4x6xi8, "encoding">}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8, "encoding">) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_too_large(%input: tensor<2147483648x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 with at most 2147483647 elements, but got tensor<2147483648x6xi8>}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<2147483648x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_result_shape(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op result shape must be 2x3, but got 4x6}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<4x6xi8>
  return
}
