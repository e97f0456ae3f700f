// RUN: %roundtrip

// CHECK-LABEL: func.func @sequence(
// CHECK: "qnn.dynamic_lstm"(%arg0, %arg1, %arg2, %arg3)
// CHECK-SAME: (tensor<7x2x12xf32>, tensor<3x12xi8>, tensor<2x6xf32>, tensor<12xf32>) -> tensor<8x2x6xf32>
func.func @sequence(%gates: tensor<7x2x12xf32>, %recurrence: tensor<3x12xi8>, %initial: tensor<2x6xf32>,
    %scales: tensor<12xf32>) -> tensor<8x2x6xf32> {
  %states = "qnn.dynamic_lstm"(%gates, %recurrence, %initial, %scales)
    : (tensor<7x2x12xf32>, tensor<3x12xi8>, tensor<2x6xf32>, tensor<12xf32>) -> tensor<8x2x6xf32>
  return %states : tensor<8x2x6xf32>
}

// CHECK-LABEL: func.func @backwards(
// CHECK: cell_activation = "relu", clip = 5.000000e-01 : f64, gate_activation = "sigmoid", output_activation = "tanh"
// CHECK-SAME: reverse = true, weight_zero_points = array<i64: 128>
// CHECK-SAME: tensor<3x12xui8>
func.func @backwards(%gates: tensor<7x2x12xf32>, %recurrence: tensor<3x12xui8>, %initial: tensor<2x6xf32>,
    %scales: tensor<12xf32>) -> tensor<8x2x6xf32> {
  %states = "qnn.dynamic_lstm"(%gates, %recurrence, %initial, %scales) {
    cell_activation = "relu", clip = 0.5 : f64, gate_activation = "sigmoid", output_activation = "tanh", reverse = true,
    weight_zero_points = array<i64: 128>
  } : (tensor<7x2x12xf32>, tensor<3x12xui8>, tensor<2x6xf32>, tensor<12xf32>) -> tensor<8x2x6xf32>
  return %states : tensor<8x2x6xf32>
}
