// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @int_sum_c2(%input: tensor<2x3xi64>) {
  // expected-error @+1 {{'qnn.int_sum' op result element type must be i64, but got i32}}
  %y = "qnn.int_sum"(%input) {axes = array<i64: 1>} : (tensor<2x3xi64>) -> tensor<2xi32>
  return
}

// -----

func.func @int_sum_c2_bytes(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.int_sum' op result element type must be i32, but got i64}}
  %y = "qnn.int_sum"(%input) {axes = array<i64: 1>} : (tensor<2x3xi8>) -> tensor<2xi64>
  return
}
