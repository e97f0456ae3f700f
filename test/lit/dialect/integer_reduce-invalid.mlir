// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all reductions of plain integers share, on one of them.

func.func @integer_reduce_c1(%input: tensor<2x3xi64>) {
  // expected-error @+1 {{'qnn.int_sum' op axes must be distinct, ascending and in [0, 2), but got [2]}}
  %y = "qnn.int_sum"(%input) {axes = array<i64: 2>} : (tensor<2x3xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @integer_reduce_c2(%input: tensor<2x3xi64>) {
  // expected-error @+1 {{'qnn.int_sum' op result element type must be i64, but got i32}}
  %y = "qnn.int_sum"(%input) {axes = array<i64: 1>} : (tensor<2x3xi64>) -> tensor<2xi32>
  return
}
