// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @block_weight_c2(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op bits must be 2, 4 or 8, but got 3}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 3 : i64, block = 32 : i64} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_weight_c2_gather(%indices: tensor<3xi64>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_gather' op bits must be 2, 4 or 8, but got 0}}
  %y = "qnn.block_gather"(%indices, %weight, %scales) {bits = 0 : i64, block = 32 : i64} : (tensor<3xi64>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<3x64xf32>
  return
}

// -----

func.func @block_weight_c3(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op block must be a multiple of 16, or 64, but got 24}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 24 : i64} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_weight_c3_positive(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op block must be a multiple of 16, or 64, but got -16}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = -16 : i64} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_weight_c4(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x3xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op scales must be [5, 2], but got [5, 3]}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 32 : i64} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_weight_c4_rows(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<4x1xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op scales must be [5, 1], but got [4, 1]}}
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 128 : i64} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<4x1xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_weight_c5(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>, %points: tensor<5x2xui8>) {
  // expected-error @+1 {{'qnn.block_dense' op zero_points must be [5, 1], but got [5, 2]}}
  %y = "qnn.block_dense"(%data, %weight, %scales, %points) {bits = 4 : i64, block = 32 : i64} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x2xui8>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_weight_c5_f32(%data: tensor<2x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>, %points: tensor<5x1xf32>) {
  // expected-error @+1 {{'qnn.block_dense' op zero_points must be [5, 2], but got [5, 1]}}
  %y = "qnn.block_dense"(%data, %weight, %scales, %points) {bits = 4 : i64, block = 32 : i64} : (tensor<2x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x1xf32>) -> tensor<2x5xf32>
  return
}
