// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.dynamic_scatter"(%arg0, %arg1, %arg2) : (tensor<4x6xf32>, tensor<3xi64>, tensor<3x6xf32>) -> tensor<4x6xf32>
func.func @rows(%data: tensor<4x6xf32>, %indices: tensor<3xi64>, %updates: tensor<3x6xf32>) -> tensor<4x6xf32> {
  %y = "qnn.dynamic_scatter"(%data, %indices, %updates) : (tensor<4x6xf32>, tensor<3xi64>, tensor<3x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @sums(
// CHECK: "qnn.dynamic_scatter"(%arg0, %arg1, %arg2) {reduction = "add"}
func.func @sums(%data: tensor<4x6xf32>, %indices: tensor<3xi64>, %updates: tensor<3x6xf32>) -> tensor<4x6xf32> {
  %y = "qnn.dynamic_scatter"(%data, %indices, %updates) {reduction = "add"} : (tensor<4x6xf32>, tensor<3xi64>, tensor<3x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
