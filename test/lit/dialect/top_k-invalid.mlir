// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @top_k_c1(%input: tensor<2x5xi32>) {
  // expected-error @+1 {{'qnn.top_k' op axis must be in [0, 2), but got -1}}
  %y = "qnn.top_k"(%input) {axis = -1 : i64, count = 3 : i64} : (tensor<2x5xi32>) -> tensor<2x3xi64>
  return
}

// -----

func.func @top_k_c2(%input: tensor<2x5xi32>) {
  // expected-error @+1 {{'qnn.top_k' op count must be in [1, 5], but got 6}}
  %y = "qnn.top_k"(%input) {axis = 1 : i64, count = 6 : i64} : (tensor<2x5xi32>) -> tensor<2x6xi64>
  return
}
