// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.cumsum"(%arg0) {axis = 1 : i64} : (tensor<2x5xi64>) -> tensor<2x5xi64>
func.func @rows(%input: tensor<2x5xi64>) -> tensor<2x5xi64> {
  %y = "qnn.cumsum"(%input) {axis = 1 : i64} : (tensor<2x5xi64>) -> tensor<2x5xi64>
  return %y : tensor<2x5xi64>
}

// CHECK-LABEL: func.func @from_the_end(
// CHECK: "qnn.cumsum"(%arg0) {axis = 0 : i64, exclusive = true, reverse = true} : (tensor<2x5xf32>) -> tensor<2x5xf32>
func.func @from_the_end(%input: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %y = "qnn.cumsum"(%input) {axis = 0 : i64, exclusive = true, reverse = true} : (tensor<2x5xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}
