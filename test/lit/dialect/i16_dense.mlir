// RUN: %roundtrip

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.i16_dense"(%arg0, %{{.*}}, %{{.*}}) : (tensor<2x3x5xi16>, tensor<8x5xi8>, tensor<8xi32>) -> tensor<2x3x8xi32>
func.func @rows(%data: tensor<2x3x5xi16>) -> tensor<2x3x8xi32> {
  %weight = arith.constant dense<3> : tensor<8x5xi8>
  %bias = arith.constant dense<-7> : tensor<8xi32>
  %y = "qnn.i16_dense"(%data, %weight, %bias) : (tensor<2x3x5xi16>, tensor<8x5xi8>, tensor<8xi32>) -> tensor<2x3x8xi32>
  return %y : tensor<2x3x8xi32>
}
