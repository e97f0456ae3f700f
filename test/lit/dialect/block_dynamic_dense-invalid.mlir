// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @block_dynamic_dense_c1(%data: tensor<2x64xi8>, %weight: tensor<5x31xui8>, %scale: tensor<1xf32>, %zero_point: tensor<1xi8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dynamic_dense' op weight must have 32 bytes a row, but got 31}}
  %y = "qnn.block_dynamic_dense"(%data, %weight, %scale, %zero_point, %scales) {bits = 4 : i64, block = 32 : i64} : (tensor<2x64xi8>, tensor<5x31xui8>, tensor<1xf32>, tensor<1xi8>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_dynamic_dense_c6(%data: tensor<2x64xi8>, %weight: tensor<5x32xui8>, %scale: tensor<2xf32>, %zero_point: tensor<1xi8>, %scales: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dynamic_dense' op scale must have 1 element or the shape [2, 1], but got [2]}}
  %y = "qnn.block_dynamic_dense"(%data, %weight, %scale, %zero_point, %scales) {bits = 4 : i64, block = 32 : i64} : (tensor<2x64xi8>, tensor<5x32xui8>, tensor<2xf32>, tensor<1xi8>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_dynamic_dense_c7(%data: tensor<2x64xi8>, %weight: tensor<5x32xui8>, %scale: tensor<1xf32>, %zero_point: tensor<1xi8>, %scales: tensor<5x2xf32>, %zero_points: tensor<5x2xf32>) {
  // expected-error @+1 {{'qnn.block_dynamic_dense' op zero_points must be ui8, but got f32}}
  %y = "qnn.block_dynamic_dense"(%data, %weight, %scale, %zero_point, %scales, %zero_points) {bits = 4 : i64, block = 32 : i64} : (tensor<2x64xi8>, tensor<5x32xui8>, tensor<1xf32>, tensor<1xi8>, tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @block_dynamic_dense_c7_block(%data: tensor<2x32784xi8>, %weight: tensor<5x8196xui8>, %scale: tensor<1xf32>, %zero_point: tensor<1xi8>, %scales: tensor<5x1xf32>) {
  // expected-error @+1 {{'qnn.block_dynamic_dense' op a block of data must have at most 32768 weights, but got 32784}}
  %y = "qnn.block_dynamic_dense"(%data, %weight, %scale, %zero_point, %scales) {bits = 2 : i64, block = 32784 : i64} : (tensor<2x32784xi8>, tensor<5x8196xui8>, tensor<1xf32>, tensor<1xi8>, tensor<5x1xf32>) -> tensor<2x5xf32>
  return
}
