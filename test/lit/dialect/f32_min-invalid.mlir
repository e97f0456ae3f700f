// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @f32_min_c1(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op axes must be distinct, ascending and in [0, 2), but got [2]}}
  %y = "qnn.f32_min"(%input) {axes = array<i64: 2>, keep_dims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_c1_none(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op axes must be distinct, ascending and in [0, 2), but got []}}
  %y = "qnn.f32_min"(%input) {axes = array<i64>, keep_dims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_c1_twice(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op axes must be distinct, ascending and in [0, 2), but got [1, 1]}}
  %y = "qnn.f32_min"(%input) {axes = array<i64: 1, 1>, keep_dims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_c1_negative(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op axes must be distinct, ascending and in [0, 2), but got [-1]}}
  %y = "qnn.f32_min"(%input) {axes = array<i64: -1>, keep_dims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_too_few_operands() {
  // expected-error @+1 {{'qnn.f32_min' op must have 1 operand, but got 0}}
  %y = "qnn.f32_min"() {axes = array<i64: 1>, keep_dims = false} : () -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_too_many_operands(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op must have 1 operand, but got 2}}
  %y = "qnn.f32_min"(%input, %input) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_no_result(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op must have 1 result, but got 0}}
  "qnn.f32_min"(%input) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3xf32>) -> ()
  return
}

// -----

func.func @f32_min_missing_attribute(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op must have attribute 'axes' (an array<i64>)}}
  %y = "qnn.f32_min"(%input) {keep_dims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_unknown_attribute(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op has no attribute 'bogus'; it has 'axes', 'keep_dims'}}
  %y = "qnn.f32_min"(%input) {axes = array<i64: 1>, keep_dims = false, bogus = 1 : i64} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_attribute_kind(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op axes must be an array<i64>, but got [1]}}
  %y = "qnn.f32_min"(%input) {axes = [1], keep_dims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_element_type(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.f32_min' op operand 'input' must be a non-empty static tensor of f32, but got tensor<2x3xi8>}}
  %y = "qnn.f32_min"(%input) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3xi8>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_min_result_type(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op result 'output' must be a non-empty static tensor of f32, but got tensor<2xi32>}}
  %y = "qnn.f32_min"(%input) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3xf32>) -> tensor<2xi32>
  return
}

// -----

func.func @f32_min_result_shape(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_min' op result shape must be 2, but got 3}}
  %y = "qnn.f32_min"(%input) {axes = array<i64: 1>, keep_dims = false} : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}
