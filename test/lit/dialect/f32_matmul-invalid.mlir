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

// -----

func.func @f32_matmul_too_few_operands(%data: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op must have 2 operands, but got 1}}
  %y = "qnn.f32_matmul"(%data) : (tensor<2x3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @f32_matmul_too_many_operands(%data: tensor<2x3xf32>, %matrix: tensor<3x5xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op must have 2 operands, but got 3}}
  %y = "qnn.f32_matmul"(%data, %matrix, %data) : (tensor<2x3xf32>, tensor<3x5xf32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @f32_matmul_no_result(%data: tensor<2x3xf32>, %matrix: tensor<3x5xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op must have 1 result, but got 0}}
  "qnn.f32_matmul"(%data, %matrix) : (tensor<2x3xf32>, tensor<3x5xf32>) -> ()
  return
}

// -----

func.func @f32_matmul_unknown_attribute(%data: tensor<2x3xf32>, %matrix: tensor<3x5xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op has no attribute 'bogus'; it has none}}
  %y = "qnn.f32_matmul"(%data, %matrix) {bogus = 1 : i64} : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @f32_matmul_element_type(%data: tensor<2x3xi8>, %matrix: tensor<3x5xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op operand 'data' must be a non-empty static tensor of f32, but got tensor<2x3xi8>}}
  %y = "qnn.f32_matmul"(%data, %matrix) : (tensor<2x3xi8>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @f32_matmul_result_shape(%data: tensor<2x3xf32>, %matrix: tensor<3x5xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op result shape must be 2x5, but got 5x2}}
  %y = "qnn.f32_matmul"(%data, %matrix) : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<5x2xf32>
  return
}
