// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @f32_matmul_c1(%data: tensor<3xf32>, %matrix: tensor<3x5xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op data must have at least 2 dimensions, but got 1}}
  %y = "qnn.f32_matmul"(%data, %matrix) : (tensor<3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @f32_matmul_c1_matrix(%data: tensor<2x3xf32>, %matrix: tensor<3xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op matrix must have 2 dimensions, or [] and 2, but got [3]}}
  %y = "qnn.f32_matmul"(%data, %matrix) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @f32_matmul_c1_leading(%data: tensor<7x2x3xf32>, %matrix: tensor<4x3x5xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op matrix must have 2 dimensions, or [7] and 2, but got [4, 3, 5]}}
  %y = "qnn.f32_matmul"(%data, %matrix) : (tensor<7x2x3xf32>, tensor<4x3x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @f32_matmul_c2(%data: tensor<2x3xf32>, %matrix: tensor<4x5xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op matrix must have 3 rows, but got 4}}
  %y = "qnn.f32_matmul"(%data, %matrix) : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}
