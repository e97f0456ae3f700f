// RUN: %qopt %s --split-input-file --verify-diagnostics

// What both searches for an extreme value share, on one of them.

func.func @arg_c1(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_max' op axis must be in [0, 3), but got 3}}
  %y = "qnn.arg_max"(%input) {axis = 3 : i64} : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_c1_negative(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.arg_max' op axis must be in [0, 3), but got -1}}
  %y = "qnn.arg_max"(%input) {axis = -1 : i64} : (tensor<2x3x4xi8>) -> tensor<2x4xi64>
  return
}

// -----

func.func @arg_c1_scalar(%input: tensor<i8>) {
  // expected-error @+1 {{'qnn.arg_max' op axis must be in [0, 0), but got 0}}
  %y = "qnn.arg_max"(%input) {axis = 0 : i64} : (tensor<i8>) -> tensor<2x4xi64>
  return
}
