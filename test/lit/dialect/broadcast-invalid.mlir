// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @broadcast_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op shape must be one to which [2, 3] broadcasts, but got [4, 3]}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 4, 3>} : (tensor<2x3xi8>) -> tensor<4x3xi8>
  return
}

// -----

func.func @broadcast_c2_fewer_dimensions(%input: tensor<1x3xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op shape must be one to which [1, 3] broadcasts, but got [3]}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 3>} : (tensor<1x3xi8>) -> tensor<3xi8>
  return
}

// -----

func.func @broadcast_c2_zero(%input: tensor<1xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op shape must be one to which [1] broadcasts, but got [0]}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: 0>} : (tensor<1xi8>) -> tensor<1xi8>
  return
}

// -----

func.func @broadcast_c2_negative(%input: tensor<1xi8>) {
  // expected-error @+1 {{'qnn.broadcast' op shape must be one to which [1] broadcasts, but got [-2, 1]}}
  %y = "qnn.broadcast"(%input) {shape = array<i64: -2, 1>} : (tensor<1xi8>) -> tensor<2x1xi8>
  return
}
