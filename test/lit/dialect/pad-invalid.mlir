// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @pad_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op low must be 2 integers of at least 0, but got [-1, 0]}}
  %y = "qnn.pad"(%input) {
    low = array<i64: -1, 0>, high = array<i64: 0, 2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c2_high(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op high must be 2 integers of at least 0, but got [0, -2]}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, -2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c2_count(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op high must be 2 integers of at least 0, but got [0]}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c2_vector(%input: tensor<4xi8>) {
  // expected-error @+1 {{'qnn.pad' op low must be 1 integer of at least 0, but got [-9223372036854775808]}}
  %y = "qnn.pad"(%input) {
    low = array<i64: -9223372036854775808>, high = array<i64: 0>, value = 3 : i64
  } : (tensor<4xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c3(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op value must be in [-128, 127], but got 128}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 128 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}

// -----

func.func @pad_c3_unsigned(%input: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.pad' op value must be in [0, 255], but got -1}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = -1 : i64
  } : (tensor<2x3xui8>) -> tensor<3x5xui8>
  return
}

// -----

func.func @pad_c3_float(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.pad' op value must be in [-16777216, 16777216], but got 16777217}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 16777217 : i64
  } : (tensor<2x3xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @pad_overflow(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.pad' op result shape must be 18446744073709551616x5, but got 3x5}}
  %y = "qnn.pad"(%input) {
    low = array<i64: 9223372036854775807, 0>, high = array<i64: 9223372036854775807, 2>, value = 3 : i64
  } : (tensor<2x3xi8>) -> tensor<3x5xi8>
  return
}
