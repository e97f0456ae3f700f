// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @i16_dense_c1(%data: tensor<3x5xi16>, %weight: tensor<8x4xi8>) {
  // expected-error @+1 {{'qnn.i16_dense' op weight depth must be 5, but got 4}}
  %y = "qnn.i16_dense"(%data, %weight) : (tensor<3x5xi16>, tensor<8x4xi8>) -> tensor<3x8xi64>
  return
}
