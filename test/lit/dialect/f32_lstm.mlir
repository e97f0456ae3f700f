// RUN: %roundtrip

// CHECK-LABEL: func.func @sequence(
// CHECK: "qnn.f32_lstm"(%arg0, %arg1, %arg2) : (tensor<7x2x12xf32>, tensor<3x12xf32>, tensor<2x6xf32>) -> tensor<8x2x6xf32>
func.func @sequence(%gates: tensor<7x2x12xf32>, %recurrence: tensor<3x12xf32>, %initial: tensor<2x6xf32>)
    -> tensor<8x2x6xf32> {
  %states = "qnn.f32_lstm"(%gates, %recurrence, %initial)
    : (tensor<7x2x12xf32>, tensor<3x12xf32>, tensor<2x6xf32>) -> tensor<8x2x6xf32>
  return %states : tensor<8x2x6xf32>
}

// CHECK-LABEL: func.func @backwards(
// CHECK: cell_activation = "relu", clip = 5.000000e-01 : f64, gate_activation = "sigmoid", output_activation = "tanh"
// CHECK-SAME: reverse = true
func.func @backwards(%gates: tensor<7x2x12xf32>, %recurrence: tensor<3x12xf32>, %initial: tensor<2x6xf32>)
    -> tensor<8x2x6xf32> {
  %states = "qnn.f32_lstm"(%gates, %recurrence, %initial) {
    cell_activation = "relu", clip = 0.5 : f64, gate_activation = "sigmoid", output_activation = "tanh", reverse = true
  } : (tensor<7x2x12xf32>, tensor<3x12xf32>, tensor<2x6xf32>) -> tensor<8x2x6xf32>
  return %states : tensor<8x2x6xf32>
}
