// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @f32_product_c4(%data: tensor<2x3xf32>, %matrix: tensor<3x5xf32>, %bias: tensor<3xf32>) {
  // expected-error @+1 {{'qnn.f32_matmul' op bias must have 5 entries, but got 3}}
  %y = "qnn.f32_matmul"(%data, %matrix, %bias) : (tensor<2x3xf32>, tensor<3x5xf32>, tensor<3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @f32_product_c4_image(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>, %bias: tensor<4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op bias must have 8 entries, but got 4}}
  %y = "qnn.f32_conv2d"(%data, %weight, %bias)
    : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>, tensor<4xf32>) -> tensor<1x3x3x8xf32>
  return
}
