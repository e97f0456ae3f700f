// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all recurrent cells share, on one of them.

func.func @f32_recurrent_c1(%gates: tensor<7x2x4xf32>, %recurrence: tensor<3x4xf32>, %initial: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_rnn' op recurrence must be [H, 1 * H] for 4 gates, but got [3, 4]}}
  %y = "qnn.f32_rnn"(%gates, %recurrence, %initial)
    : (tensor<7x2x4xf32>, tensor<3x4xf32>, tensor<2x3xf32>) -> tensor<8x2x3xf32>
  return
}

// -----

func.func @f32_recurrent_c2(%gates: tensor<7x2x3xf32>, %recurrence: tensor<3x3xf32>, %initial: tensor<2x6xf32>) {
  // expected-error @+1 {{'qnn.f32_rnn' op initial must be [2, 3], but got [2, 6]}}
  %y = "qnn.f32_rnn"(%gates, %recurrence, %initial)
    : (tensor<7x2x3xf32>, tensor<3x3xf32>, tensor<2x6xf32>) -> tensor<8x2x3xf32>
  return
}

// -----

func.func @f32_recurrent_c3(%gates: tensor<7x2x3xf32>, %recurrence: tensor<3x3xf32>, %initial: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_rnn' op clip must be at least 0, but got -1.0}}
  %y = "qnn.f32_rnn"(%gates, %recurrence, %initial) {clip = -1.0 : f64}
    : (tensor<7x2x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<8x2x3xf32>
  return
}
