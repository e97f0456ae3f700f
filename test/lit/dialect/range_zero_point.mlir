// RUN: %roundtrip

// CHECK-LABEL: func.func @of_each_row(
// CHECK: "qnn.range_zero_point"(%arg0, %arg1) : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x1xf32>
func.func @of_each_row(%minimum: tensor<5x1xf32>, %maximum: tensor<5x1xf32>) -> tensor<5x1xf32> {
  %y = "qnn.range_zero_point"(%minimum, %maximum) : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x1xf32>
  return %y : tensor<5x1xf32>
}

// CHECK-LABEL: func.func @of_a_tensor(
// CHECK: "qnn.range_zero_point"(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
func.func @of_a_tensor(%minimum: tensor<f32>, %maximum: tensor<f32>) -> tensor<f32> {
  %y = "qnn.range_zero_point"(%minimum, %maximum) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
