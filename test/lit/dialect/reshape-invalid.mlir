// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @reshape_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 6 elements, but got [3, 3]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 3>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_c2_negative(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 6 elements, but got [-3, -2]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: -3, -2>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_c2_minus_one(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 6 elements, but got [3, -1]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, -1>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_c2_zero(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 6 elements, but got [0]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 0>} : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}

// -----

func.func @reshape_c2_overflow(%input: tensor<4xi8>) {
  // expected-error @+1 {{'qnn.reshape' op shape must have 4 elements, but got [4294967296, 4294967296, 4]}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 4294967296, 4294967296, 4>} : (tensor<4xi8>) -> tensor<3x2xi8>
  return
}
