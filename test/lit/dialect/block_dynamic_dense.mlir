// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.block_dynamic_dense"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) {bits = 4 : i64, block = 32 : i64} : (tensor<7x64xi8>, tensor<5x32xui8>, tensor<7x1xf32>, tensor<7x1xi8>, tensor<5x2xf32>, tensor<5x1xui8>) -> tensor<7x5xf32>
func.func @rows(%data: tensor<7x64xi8>, %weight: tensor<5x32xui8>, %scale: tensor<7x1xf32>, %zero_point: tensor<7x1xi8>, %scales: tensor<5x2xf32>, %zero_points: tensor<5x1xui8>) -> tensor<7x5xf32> {
  %y = "qnn.block_dynamic_dense"(%data, %weight, %scale, %zero_point, %scales, %zero_points) {bits = 4 : i64, block = 32 : i64} : (tensor<7x64xi8>, tensor<5x32xui8>, tensor<7x1xf32>, tensor<7x1xi8>, tensor<5x2xf32>, tensor<5x1xui8>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}

// CHECK-LABEL: func.func @whole(
// CHECK: "qnn.block_dynamic_dense"(%arg0, %arg1, %arg2, %arg3, %arg4) {bits = 2 : i64, block = 9 : i64}
func.func @whole(%data: tensor<2x1x9xi8>, %weight: tensor<5x3xui8>, %scale: tensor<f32>, %zero_point: tensor<1xi8>, %scales: tensor<5x1xf32>) -> tensor<2x1x5xf32> {
  %y = "qnn.block_dynamic_dense"(%data, %weight, %scale, %zero_point, %scales) {bits = 2 : i64, block = 9 : i64} : (tensor<2x1x9xi8>, tensor<5x3xui8>, tensor<f32>, tensor<1xi8>, tensor<5x1xf32>) -> tensor<2x1x5xf32>
  return %y : tensor<2x1x5xf32>
}
