// RUN: %qopt %s --split-input-file --verify-diagnostics

// What reductions to the type of the input share, on one of quantized values and one of integers.

func.func @same_type_reduce_c1(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be distinct, ascending and in [0, 4), but got [1, 1]}}
  %y = "qnn.reduce_max"(%input) {axes = array<i64: 1, 1>} : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @same_type_reduce_c1_none(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be distinct, ascending and in [0, 4), but got []}}
  %y = "qnn.reduce_max"(%input) {axes = array<i64>} : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @same_type_reduce_c2(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op result element type must be i8, but got ui8}}
  %y = "qnn.reduce_max"(%input) {axes = array<i64: 1, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2xui8>
  return
}

// -----

func.func @same_type_reduce_c1_of_integers(%input: tensor<2x3xi64>) {
  // expected-error @+1 {{'qnn.int_sum' op axes must be distinct, ascending and in [0, 2), but got [2]}}
  %y = "qnn.int_sum"(%input) {axes = array<i64: 2>} : (tensor<2x3xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @same_type_reduce_c2_of_integers(%input: tensor<2x3xi64>) {
  // expected-error @+1 {{'qnn.int_sum' op result element type must be i64, but got i32}}
  %y = "qnn.int_sum"(%input) {axes = array<i64: 1>} : (tensor<2x3xi64>) -> tensor<2xi32>
  return
}

// -----

func.func @same_type_reduce_c2_of_bytes(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.int_sum' op result element type must be i32, but got i64}}
  %y = "qnn.int_sum"(%input) {axes = array<i64: 1>} : (tensor<2x3xi8>) -> tensor<2xi64>
  return
}
