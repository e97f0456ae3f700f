// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.block_gather"(%arg0, %arg1, %arg2, %arg3) {bits = 4 : i64, block = 32 : i64} : (tensor<2x3xi64>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x1xui8>) -> tensor<2x3x64xf32>
func.func @rows(%indices: tensor<2x3xi64>, %weight: tensor<5x32xui8>, %scales: tensor<5x2xf32>, %zero_points: tensor<5x1xui8>) -> tensor<2x3x64xf32> {
  %y = "qnn.block_gather"(%indices, %weight, %scales, %zero_points) {bits = 4 : i64, block = 32 : i64} : (tensor<2x3xi64>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<5x1xui8>) -> tensor<2x3x64xf32>
  return %y : tensor<2x3x64xf32>
}

// CHECK-LABEL: func.func @one_row(
func.func @one_row(%index: tensor<i32>, %weight: tensor<5x9xui8>, %scales: tensor<5x1xf32>) -> tensor<9xf32> {
  %y = "qnn.block_gather"(%index, %weight, %scales) {bits = 8 : i64, block = 9 : i64} : (tensor<i32>, tensor<5x9xui8>, tensor<5x1xf32>) -> tensor<9xf32>
  return %y : tensor<9xf32>
}
