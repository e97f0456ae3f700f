// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @block_dense_c1(%data: tensor<2x65xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op weight must have 33 bytes a row, but got 32}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 32 : i64} : (tensor<2x65xf32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_dense_c1_scalar(%data: tensor<f32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op data must have at least 1 dimension, but got 0}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 32 : i64} : (tensor<f32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @block_dense_c6(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op order scale_last must have 1 block, but got 2}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 32 : i64, order = "scale_last"} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_dense_c7(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>, %points: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op zero_points must be ui8, but got f32}}
  %y = "qnn.block_dense"(%data, %weight, %scales, %points) {bits = 4 : i64, block = 32 : i64, activations = "i8_block"} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_dense_c7_size(%data: tensor<2x65552xf32>, %weight: tensor<5x16388xui8>, %scales: tensor<5x1xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op a block of data must have at most 65536 weights, but got 65552}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 2 : i64, block = 65552 : i64, activations = "i8_block"} : (tensor<2x65552xf32>, tensor<5x16388xui8>, tensor<5x1xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_dense_c8(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op activation_block must be 0, or a multiple of 16 that divides 32, but got 64}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 32 : i64, activations = "i8_block", activation_block = 64 : i64} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_dense_c8_step(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x1xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op activation_block must be 0, or a multiple of 16, but got 8}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 64 : i64, activations = "i8_block", activation_block = 8 : i64} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x1xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_dense_c9(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op rounded_products must go with f32 and terms, but got f32 and blocks}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 32 : i64, order = "blocks", rounded_products = true} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}
