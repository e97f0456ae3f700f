// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @cumsum_c1(%input: tensor<2x5xi64>) {
  // expected-error @+1 {{'qnn.cumsum' op result element type must be i64, but got i32}}
  %y = "qnn.cumsum"(%input) {axis = 1 : i64} : (tensor<2x5xi64>) -> tensor<2x5xi32>
  return
}

// -----

func.func @cumsum_c2(%input: tensor<2x5xi64>) {
  // expected-error @+1 {{'qnn.cumsum' op axis must be in [0, 2), but got 2}}
  %y = "qnn.cumsum"(%input) {axis = 2 : i64} : (tensor<2x5xi64>) -> tensor<2x5xi64>
  return
}
