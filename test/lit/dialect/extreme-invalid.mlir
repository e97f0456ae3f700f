// RUN: %qopt %s --split-input-file --verify-diagnostics

// What both extremes over axes share, on one of them.

func.func @extreme_c1(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be distinct, ascending and in [0, 4), but got [1, 1]}}
  %y = "qnn.reduce_max"(%input) {axes = array<i64: 1, 1>} : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @extreme_c1_none(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op axes must be distinct, ascending and in [0, 4), but got []}}
  %y = "qnn.reduce_max"(%input) {axes = array<i64>} : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @extreme_c2(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.reduce_max' op result element type must be i8, but got ui8}}
  %y = "qnn.reduce_max"(%input) {axes = array<i64: 1, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2xui8>
  return
}
