// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @i16_matmul_c1(%data: tensor<5xi16>, %weight: tensor<5x8xi16>) {
  // expected-error @+1 {{'qnn.i16_matmul' op data must have at least 2 dimensions, but got 1}}
  %y = "qnn.i16_matmul"(%data, %weight) : (tensor<5xi16>, tensor<5x8xi16>) -> tensor<8xi64>
  return
}

// -----

func.func @i16_matmul_c2(%data: tensor<3x5xi16>, %weight: tensor<4x8xi16>) {
  // expected-error @+1 {{'qnn.i16_matmul' op weight depth must be 5, but got 4}}
  %y = "qnn.i16_matmul"(%data, %weight) : (tensor<3x5xi16>, tensor<4x8xi16>) -> tensor<3x8xi64>
  return
}

// -----

func.func @i16_matmul_c3(%data: tensor<2x3x5xi16>, %weight: tensor<3x5x8xi16>) {
  // expected-error @+1 {{'qnn.i16_matmul' op leading dimensions must broadcast, but got [2] and [3]}}
  %y = "qnn.i16_matmul"(%data, %weight) : (tensor<2x3x5xi16>, tensor<3x5x8xi16>) -> tensor<2x3x8xi64>
  return
}
