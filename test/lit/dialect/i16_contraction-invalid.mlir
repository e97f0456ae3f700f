// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @i16_contraction_c4(%data: tensor<3x5xi16>, %weight: tensor<8x5xi8>, %bias: tensor<8xi32>) {
  // expected-error @+1 {{'qnn.i16_dense' op bias element type must be i64, but got i32}}
  %y = "qnn.i16_dense"(%data, %weight, %bias) : (tensor<3x5xi16>, tensor<8x5xi8>, tensor<8xi32>) -> tensor<3x8xi64>
  return
}

// -----

func.func @i16_contraction_c5(%data: tensor<3x5xi16>, %weight: tensor<8x5xi8>, %bias: tensor<7xi64>) {
  // expected-error @+1 {{'qnn.i16_dense' op bias must have 8 entries, but got 7}}
  %y = "qnn.i16_dense"(%data, %weight, %bias) : (tensor<3x5xi16>, tensor<8x5xi8>, tensor<7xi64>) -> tensor<3x8xi64>
  return
}
