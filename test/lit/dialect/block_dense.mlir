// RUN: %roundtrip

// CHECK-LABEL: func.func @four_bits(
// CHECK: "qnn.block_dense"(%arg0, %arg1, %arg2, %arg3) {bits = 4 : i64, block = 32 : i64} : (tensor<7x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x1xui8>) -> tensor<7x5xf32>
func.func @four_bits(%data: tensor<7x64xf32>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>, %zero_points: tensor<5x1xui8>) -> tensor<7x5xf32> {
  %y = "qnn.block_dense"(%data, %weight, %scales, %zero_points) {bits = 4 : i64, block = 32 : i64} : (tensor<7x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x1xui8>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}

// CHECK-LABEL: func.func @integers(
// CHECK: {activation_block = 16 : i64, activation_scale = "f16", activations = "i8_block", bits = 8 : i64, block = 32 : i64, order = "blocks"}
func.func @integers(%data: tensor<1x33xf32>, %weight: tensor<5x33xui8>, %scales: tensor<5x2xf32>) -> tensor<1x5xf32> {
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 8 : i64, block = 32 : i64, activations = "i8_block", activation_block = 16 : i64, activation_scale = "f16", order = "blocks"} : (tensor<1x33xf32>, tensor<5x33xui8>, tensor<5x2xf32>) -> tensor<1x5xf32>
  return %y : tensor<1x5xf32>
}

// CHECK-LABEL: func.func @rounded(
// CHECK: {bits = 8 : i64, block = 33 : i64, rounded_products = true}
func.func @rounded(%data: tensor<1x33xf32>, %weight: tensor<5x33xui8>, %scales: tensor<5x1xf32>) -> tensor<1x5xf32> {
  %y = "qnn.block_dense"(%data, %weight, %scales) {bits = 8 : i64, block = 33 : i64, rounded_products = true} : (tensor<1x33xf32>, tensor<5x33xui8>, tensor<5x1xf32>) -> tensor<1x5xf32>
  return %y : tensor<1x5xf32>
}

// CHECK-LABEL: func.func @channels(
// CHECK: {bits = 2 : i64, block = 9 : i64, order = "scale_last"}
func.func @channels(%data: tensor<2x1x9xf32>, %weight: tensor<5x3xui8>, %scales: tensor<5x1xf32>, %zero_points: tensor<5x1xf32>) -> tensor<2x1x5xf32> {
  %y = "qnn.block_dense"(%data, %weight, %scales, %zero_points) {bits = 2 : i64, block = 9 : i64, order = "scale_last"} : (tensor<2x1x9xf32>, tensor<5x3xui8>, tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<2x1x5xf32>
  return %y : tensor<2x1x5xf32>
}
