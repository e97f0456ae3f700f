// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @f32_gru_c4(
    %gates: tensor<7x2x9xf32>, %recurrence: tensor<3x9xf32>, %initial: tensor<2x3xf32>, %bias: tensor<3xf32>) {
  // expected-error @+1 {{'qnn.f32_gru' op bias must stand with reset_after}}
  %y = "qnn.f32_gru"(%gates, %recurrence, %initial, %bias)
    : (tensor<7x2x9xf32>, tensor<3x9xf32>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<8x2x3xf32>
  return
}

// -----

func.func @f32_gru_c4_entries(
    %gates: tensor<7x2x9xf32>, %recurrence: tensor<3x9xf32>, %initial: tensor<2x3xf32>, %bias: tensor<9xf32>) {
  // expected-error @+1 {{'qnn.f32_gru' op bias must have 3 entries, but got 9}}
  %y = "qnn.f32_gru"(%gates, %recurrence, %initial, %bias) {reset_after = true}
    : (tensor<7x2x9xf32>, tensor<3x9xf32>, tensor<2x3xf32>, tensor<9xf32>) -> tensor<8x2x3xf32>
  return
}
