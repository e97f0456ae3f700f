// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all reductions of f32 values share, on one of them.

func.func @f32_reduce_c1(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_sum' op axes must be distinct, ascending and in [0, 2), but got [2]}}
  %y = "qnn.f32_sum"(%input) {axes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f32_reduce_c1_none(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_sum' op axes must be distinct, ascending and in [0, 2), but got []}}
  %y = "qnn.f32_sum"(%input) {axes = array<i64>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}
