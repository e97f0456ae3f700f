// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @f32_lstm_c4(
    %gates: tensor<7x2x12xf32>, %recurrence: tensor<3x12xf32>, %initial: tensor<2x6xf32>, %scales: tensor<3xf32>) {
  // expected-error @+1 {{'qnn.f32_lstm' op scales must have 12 entries, but got 3}}
  %y = "qnn.f32_lstm"(%gates, %recurrence, %initial, %scales)
    : (tensor<7x2x12xf32>, tensor<3x12xf32>, tensor<2x6xf32>, tensor<3xf32>) -> tensor<8x2x6xf32>
  return
}
