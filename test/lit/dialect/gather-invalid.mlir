// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @gather_c2(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op axis must be in [0, 2), but got 2}}
  %y = "qnn.gather"(%input) {axis = 2 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_c2_negative(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op axis must be in [0, 2), but got -1}}
  %y = "qnn.gather"(%input) {axis = -1 : i64, indices = array<i64: 5, 0, 5>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_c3(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op indices must be in [0, 6), but got 6}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 5, 6, 7>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_c3_negative(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op indices must be in [0, 6), but got -1}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64: 0, -1, 1>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @gather_c3_none(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.gather' op indices must have at least one entry, but got none}}
  %y = "qnn.gather"(%input) {axis = 1 : i64, indices = array<i64>} : (tensor<4x6xi8>) -> tensor<4x3xi8>
  return
}
