// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @reduce_max_c1(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be distinct, ascending and in [0, 4), but got [1, 1]}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 1>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_c1_order(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be distinct, ascending and in [0, 4), but got [2, 1]}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 2, 1>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_c1_negative(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be distinct, ascending and in [0, 4), but got [-1]}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: -1>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_c1_range(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be distinct, ascending and in [0, 4), but got [4]}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 4>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_c1_none(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be distinct, ascending and in [0, 4), but got []}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_c2(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op result element type must be i8, but got ui8}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xui8>
  return
}

// -----

func.func @reduce_max_too_few_operands() {
  // expected-error @+1 {{'qnn.reduce_max' op must have 1 operand, but got 0}}
  %y = "qnn.reduce_max"() {
    axes = array<i64: 1, 2>, keep_dims = false
  } : () -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_too_many_operands(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op must have 1 operand, but got 2}}
  %y = "qnn.reduce_max"(%input, %input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<1x4x4x2xi8>, tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_no_result(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op must have 1 result, but got 0}}
  "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> ()
  return
}

// -----

func.func @reduce_max_two_results(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op must have 1 result, but got 2}}
  %y:2 = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> (tensor<1x2xi8>, tensor<1x2xi8>)
  return
}

// -----

func.func @reduce_max_missing_attribute(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op must have attribute 'axes' (an array<i64>)}}
  %y = "qnn.reduce_max"(%input) {
    keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_unknown_attribute(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op has no attribute 'bogus'; it has 'axes', 'keep_dims'}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, bogus = 1 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_attribute_kind(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be an array<i64>, but got unit}}
  %y = "qnn.reduce_max"(%input) {
    axes = unit, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_memref(%input: memref<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got memref<1x4x4x2xi8>}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (memref<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_vector(%input: vector<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got vector<1x4x4x2xi8>}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (vector<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<*xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_dynamic_shape(%input: tensor<?x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<?x4x4x2xi8>}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<?x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_no_elements(%input: tensor<0x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<0x4x4x2xi8>}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<0x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_element_type(%input: tensor<1x4x4x2xf64>) {
  // expected-error @+1 {{'qnn.reduce_max' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<1x4x4x2xf64>}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<1x4x4x2xf64>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_encoding(%input: tensor<1x4x4x2xi8, "encoding">) {
  // expected-error @+1 {{'qnn.reduce_max' op operand 'input' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<1x4x4x2xi8, "encoding">}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<1x4x4x2xi8, "encoding">) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_too_large(%input: tensor<2147483648x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op operand 'input' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x4x4x2xi8>}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<2147483648x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @reduce_max_result_shape(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op result shape must be 1x2, but got 9x1x2}}
  %y = "qnn.reduce_max"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false
  } : (tensor<1x4x4x2xi8>) -> tensor<9x1x2xi8>
  return
}
