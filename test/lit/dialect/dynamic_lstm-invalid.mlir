// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @dynamic_lstm_c4(
    %gates: tensor<7x2x12xf32>, %recurrence: tensor<3x12xi8>, %initial: tensor<2x6xf32>, %scales: tensor<3xf32>) {
  // expected-error @+1 {{'qnn.dynamic_lstm' op scales must have 12 entries, but got 3}}
  %y = "qnn.dynamic_lstm"(%gates, %recurrence, %initial, %scales)
    : (tensor<7x2x12xf32>, tensor<3x12xi8>, tensor<2x6xf32>, tensor<3xf32>) -> tensor<8x2x6xf32>
  return
}

// -----

func.func @dynamic_lstm_c5_count(
    %gates: tensor<7x2x12xf32>, %recurrence: tensor<3x12xi8>, %initial: tensor<2x6xf32>, %scales: tensor<12xf32>) {
  // expected-error @+1 {{'qnn.dynamic_lstm' op weight_zero_points must have 1 or 12 entries, but got 2}}
  %y = "qnn.dynamic_lstm"(%gates, %recurrence, %initial, %scales) {weight_zero_points = array<i64: 0, 0>}
    : (tensor<7x2x12xf32>, tensor<3x12xi8>, tensor<2x6xf32>, tensor<12xf32>) -> tensor<8x2x6xf32>
  return
}

// -----

func.func @dynamic_lstm_c5_range(
    %gates: tensor<7x2x12xf32>, %recurrence: tensor<3x12xi8>, %initial: tensor<2x6xf32>, %scales: tensor<12xf32>) {
  // expected-error @+1 {{'qnn.dynamic_lstm' op weight_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.dynamic_lstm"(%gates, %recurrence, %initial, %scales) {weight_zero_points = array<i64: 128>}
    : (tensor<7x2x12xf32>, tensor<3x12xi8>, tensor<2x6xf32>, tensor<12xf32>) -> tensor<8x2x6xf32>
  return
}
