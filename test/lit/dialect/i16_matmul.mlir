// RUN: %roundtrip

// CHECK-LABEL: func.func @batches(
// CHECK: "qnn.i16_matmul"(%arg0, %arg1) : (tensor<2x3x5xi16>, tensor<1x5x8xi16>) -> tensor<2x3x8xi64>
func.func @batches(%data: tensor<2x3x5xi16>, %weight: tensor<1x5x8xi16>) -> tensor<2x3x8xi64> {
  %y = "qnn.i16_matmul"(%data, %weight) : (tensor<2x3x5xi16>, tensor<1x5x8xi16>) -> tensor<2x3x8xi64>
  return %y : tensor<2x3x8xi64>
}
