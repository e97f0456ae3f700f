// RUN: %roundtrip

// CHECK-LABEL: func.func @one_matrix(
// CHECK: "qnn.f32_matmul"(%arg0, %arg1) : (tensor<2x7x3xf32>, tensor<3x5xf32>) -> tensor<2x7x5xf32>
func.func @one_matrix(%data: tensor<2x7x3xf32>, %matrix: tensor<3x5xf32>) -> tensor<2x7x5xf32> {
  %y = "qnn.f32_matmul"(%data, %matrix) : (tensor<2x7x3xf32>, tensor<3x5xf32>) -> tensor<2x7x5xf32>
  return %y : tensor<2x7x5xf32>
}

// CHECK-LABEL: func.func @as_many(
func.func @as_many(%data: tensor<2x7x3xf32>, %matrix: tensor<2x3x5xf32>) -> tensor<2x7x5xf32> {
  %y = "qnn.f32_matmul"(%data, %matrix) : (tensor<2x7x3xf32>, tensor<2x3x5xf32>) -> tensor<2x7x5xf32>
  return %y : tensor<2x7x5xf32>
}

// CHECK-LABEL: func.func @plain(
// CHECK: "qnn.f32_matmul"(%arg0, %arg1) {rounded_products = true} : (tensor<7x3xf32>
func.func @plain(%data: tensor<7x3xf32>, %matrix: tensor<3x5xf32>) -> tensor<7x5xf32> {
  %y = "qnn.f32_matmul"(%data, %matrix) {rounded_products = true} : (tensor<7x3xf32>, tensor<3x5xf32>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}

// CHECK-LABEL: func.func @from_a_bias(
// CHECK: "qnn.f32_matmul"(%arg0, %arg1, %{{.*}}) : (tensor<7x3xf32>, tensor<3x5xf32>, tensor<5xf32>) -> tensor<7x5xf32>
func.func @from_a_bias(%data: tensor<7x3xf32>, %matrix: tensor<3x5xf32>) -> tensor<7x5xf32> {
  %bias = arith.constant dense<0.5> : tensor<5xf32>
  %y = "qnn.f32_matmul"(%data, %matrix, %bias) : (tensor<7x3xf32>, tensor<3x5xf32>, tensor<5xf32>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}
