// RUN: %roundtrip

// CHECK-LABEL: func.func @sequence(
// CHECK: "qnn.f32_gru"(%arg0, %arg1, %arg2) : (tensor<7x2x9xf32>, tensor<3x9xf32>, tensor<2x3xf32>) -> tensor<8x2x3xf32>
func.func @sequence(%gates: tensor<7x2x9xf32>, %recurrence: tensor<3x9xf32>, %initial: tensor<2x3xf32>)
    -> tensor<8x2x3xf32> {
  %states = "qnn.f32_gru"(%gates, %recurrence, %initial)
    : (tensor<7x2x9xf32>, tensor<3x9xf32>, tensor<2x3xf32>) -> tensor<8x2x3xf32>
  return %states : tensor<8x2x3xf32>
}

// CHECK-LABEL: func.func @reset_after(
// CHECK: "qnn.f32_gru"(%arg0, %arg1, %arg2, %{{.*}}) {cell_activation = "tanh", clip = 2.000000e+00 : f64,
// CHECK-SAME: gate_activation = "sigmoid", reset_after = true, reverse = true}
func.func @reset_after(%gates: tensor<7x2x9xf32>, %recurrence: tensor<3x9xf32>, %initial: tensor<2x3xf32>)
    -> tensor<8x2x3xf32> {
  %bias = arith.constant dense<0.5> : tensor<3xf32>
  %states = "qnn.f32_gru"(%gates, %recurrence, %initial, %bias) {
    cell_activation = "tanh", clip = 2.0 : f64, gate_activation = "sigmoid", reset_after = true, reverse = true
  } : (tensor<7x2x9xf32>, tensor<3x9xf32>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<8x2x3xf32>
  return %states : tensor<8x2x3xf32>
}
