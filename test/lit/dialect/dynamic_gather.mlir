// RUN: %roundtrip

// The dimensions of the indices replace the one that is gathered; any element type.

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.dynamic_gather"(%arg0, %arg1) {axis = 1 : i64} : (tensor<4x6x5xi8>, tensor<2x3xi64>) -> tensor<4x2x3x5xi8>
func.func @rows(%data: tensor<4x6x5xi8>, %indices: tensor<2x3xi64>) -> tensor<4x2x3x5xi8> {
  %y = "qnn.dynamic_gather"(%data, %indices) {axis = 1 : i64} : (tensor<4x6x5xi8>, tensor<2x3xi64>) -> tensor<4x2x3x5xi8>
  return %y : tensor<4x2x3x5xi8>
}

// CHECK-LABEL: func.func @one(
func.func @one(%data: tensor<4x6xf32>, %index: tensor<i32>) -> tensor<6xf32> {
  %y = "qnn.dynamic_gather"(%data, %index) : (tensor<4x6xf32>, tensor<i32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}
