// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @l2_normalize_c1(%input: tensor<i8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op last dimension must be in [1, 33025], but got 0}}
  %y = "qnn.l2_normalize"(%input) {input_zero_point = 3 : i64} : (tensor<i8>) -> tensor<i8>
  return
}

// -----

func.func @l2_normalize_c1_long(%input: tensor<33026xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op last dimension must be in [1, 33025], but got 33026}}
  %y = "qnn.l2_normalize"(%input) {input_zero_point = 3 : i64} : (tensor<33026xi8>) -> tensor<33026xi8>
  return
}

// -----

func.func @l2_normalize_c2(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op result element type must be i8, but got ui8}}
  %y = "qnn.l2_normalize"(%input) {input_zero_point = 3 : i64} : (tensor<2x3x4xi8>) -> tensor<2x3x4xui8>
  return
}

// -----

func.func @l2_normalize_c3(%input: tensor<2x3x4xi8>) {
  // expected-error @+1 {{'qnn.l2_normalize' op input_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.l2_normalize"(%input) {input_zero_point = 128 : i64} : (tensor<2x3x4xi8>) -> tensor<2x3x4xi8>
  return
}
