// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @slice_c2(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op begin must be 2 integers of at least 0, but got [-1, 0]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: -1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c2_count(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op begin must be 2 integers of at least 0, but got [1]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c2_size(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op size must be 2 integers of at least 1, but got [0, 3]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 0, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c2_strides(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op strides must be 2 integers of at least 1, but got [1, -2]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, -2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c3(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op last element must lie in a tensor of shape [4, 6], but got [4, 4]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 3, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c3_strides(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op last element must lie in a tensor of shape [4, 6], but got [2, 6]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 1, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 3>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @slice_c3_overflow(%input: tensor<4x6xi8>) {
  // expected-error @+1 {{'qnn.slice' op last element must lie in a tensor of shape [4, 6], but got [9223372036854775808, 4]}}
  %y = "qnn.slice"(%input) {
    begin = array<i64: 9223372036854775807, 0>, size = array<i64: 2, 3>, strides = array<i64: 1, 2>
  } : (tensor<4x6xi8>) -> tensor<2x3xi8>
  return
}
