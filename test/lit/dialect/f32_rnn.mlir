// RUN: %roundtrip

// CHECK-LABEL: func.func @sequence(
// CHECK: "qnn.f32_rnn"(%arg0, %arg1, %arg2) {activation = "relu", clip = 0.000000e+00 : f64, reverse = true}
// CHECK-SAME: (tensor<7x2x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<8x2x3xf32>
func.func @sequence(%gates: tensor<7x2x3xf32>, %recurrence: tensor<3x3xf32>, %initial: tensor<2x3xf32>)
    -> tensor<8x2x3xf32> {
  %states = "qnn.f32_rnn"(%gates, %recurrence, %initial) {activation = "relu", clip = 0.0 : f64, reverse = true}
    : (tensor<7x2x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<8x2x3xf32>
  return %states : tensor<8x2x3xf32>
}
