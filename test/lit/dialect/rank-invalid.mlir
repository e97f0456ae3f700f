// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @rank_c1(%input: tensor<2x5xi32>) {
  // expected-error @+1 {{'qnn.rank' op axis must be in [0, 2), but got -1}}
  %y = "qnn.rank"(%input) {axis = -1 : i64} : (tensor<2x5xi32>) -> tensor<2x5xi64>
  return
}
