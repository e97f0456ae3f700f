// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @transpose_c2(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op permutation must order 4 dimensions, but got [0, 1, 2]}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 1, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_c2_twice(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op permutation must order 4 dimensions, but got [0, 1, 1, 2]}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 1, 1, 2>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_c2_negative(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op permutation must order 4 dimensions, but got [0, 1, 2, -1]}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 1, 2, -1>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}

// -----

func.func @transpose_c2_range(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.transpose' op permutation must order 4 dimensions, but got [0, 1, 2, 4]}}
  %y = "qnn.transpose"(%input) {permutation = array<i64: 0, 1, 2, 4>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x4x4xi8>
  return
}
