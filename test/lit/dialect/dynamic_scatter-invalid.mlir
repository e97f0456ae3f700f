// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @dynamic_scatter_c1(%data: tensor<4x6xf32>, %indices: tensor<3xi64>, %updates: tensor<3x6xi32>) {
  // expected-error @+1 {{'qnn.dynamic_scatter' op updates and result must have elements of type f32, but got i32}}
  %y = "qnn.dynamic_scatter"(%data, %indices, %updates) : (tensor<4x6xf32>, tensor<3xi64>, tensor<3x6xi32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @dynamic_scatter_c2(%data: tensor<f32>, %indices: tensor<3xi64>, %updates: tensor<3xf32>) {
  // expected-error @+1 {{'qnn.dynamic_scatter' op data must have at least 1 dimension, but got 0}}
  %y = "qnn.dynamic_scatter"(%data, %indices, %updates) : (tensor<f32>, tensor<3xi64>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @dynamic_scatter_c3(%data: tensor<4x6xf32>, %indices: tensor<3xi64>, %updates: tensor<2x6xf32>) {
  // expected-error @+1 {{'qnn.dynamic_scatter' op updates must have the shape [3, 6], but got [2, 6]}}
  %y = "qnn.dynamic_scatter"(%data, %indices, %updates) : (tensor<4x6xf32>, tensor<3xi64>, tensor<2x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @dynamic_scatter_c4(%data: tensor<4x6xi1>, %indices: tensor<3xi64>, %updates: tensor<3x6xi1>) {
  // expected-error @+1 {{'qnn.dynamic_scatter' op reduction of elements of type i1 must be none, but got add}}
  %y = "qnn.dynamic_scatter"(%data, %indices, %updates) {reduction = "add"} : (tensor<4x6xi1>, tensor<3xi64>, tensor<3x6xi1>) -> tensor<4x6xi1>
  return
}
