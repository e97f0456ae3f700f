// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @pad_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op result element type must be i8, but got ui8}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xui8>
  return
}

// -----

func.func @pad_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op low must be 2 integers of at least 0, but got [-1, 0]}}
  %y = "qnn.pad"(%input) {
    low = array<i64: -1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c2_high(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op high must be 2 integers of at least 0, but got [0, -2]}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, -2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c2_count(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op high must be 2 integers of at least 0, but got [0]}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c2_vector(%input: tensor<4xi8>) {
  // expected-error @+1 {{'qnn.pad' op low must be 1 integer of at least 0, but got [-9223372036854775808]}}
  %y = "qnn.pad"(%input) {
    low = array<i64: -9223372036854775808>, high = array<i64: 0>, value = 3 : i64
  } : (tensor<4xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c3(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op value must be in [-128, 127], but got 128}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 128 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c3_unsigned(%input: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.pad' op value must be in [0, 255], but got -1}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = -1 : i64
  } : (tensor<2x3xui8>) -> tensor<3x5xui8>
  return
}

// -----

func.func @pad_c3_float(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.pad' op value must be in [-16777216, 16777216], but got 16777217}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 16777217 : i64
  } : (tensor<2x3xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @pad_overflow(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op result shape must be 18446744073709551616x5, but got 3x5}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 9223372036854775807, 0>, high = array<i64: 9223372036854775807, 2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_too_few_operands() {
  // expected-error @+1 {{'qnn.pad' op must have 1 operand, but got 0}}
  %y = "qnn.pad"() {low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64} : () -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_too_many_operands(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op must have 1 operand, but got 2}}
  %y = "qnn.pad"(%input, %input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_no_result(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op must have 1 result, but got 0}}
  "qnn.pad"(%input) {low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64} : (tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @pad_two_results(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op must have 1 result, but got 2}}
  %y:2 = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> (tensor<3x5xi8>, tensor<3x5xi8>)
  return
}

// -----

func.func @pad_missing_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op must have attribute 'low' (an array<i64>)}}
  %y = "qnn.pad"(%input) {high = array<i64: 0, 2>, value = 3 : i64} : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_unknown_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op has no attribute 'bogus'; it has 'low', 'high', 'value'}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64, bogus = 1 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_attribute_kind(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op low must be an array<i64>, but got array<i32: 1, 0>}}
  %y = "qnn.pad"(%input) {
    low = array<i32: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_memref(%input: memref<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got memref<2x3xi8>}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (memref<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_vector(%input: vector<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got vector<2x3xi8>}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (vector<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.pad' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<*xi8>}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<*xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_dynamic_shape(%input: tensor<?x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<?x3xi8>}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<?x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_no_elements(%input: tensor<0x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<0x3xi8>}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<0x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.pad' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<2x3xf64>}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xf64>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_encoding(%input: tensor<2x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.pad' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xi8, "encoding">) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_too_large(%input: tensor<2147483648x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2147483648x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_result_shape(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op result shape must be 3x5, but got 2x3}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}
