// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all pools share, on one of them.

func.func @pool_c1(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.max_pool2d' op kernel must be 2 integers of at least 1, but got [2, 0]}}
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 2, 0>, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @pool_c1_strides(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.max_pool2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 0, 1>, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @pool_c1_padding(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.max_pool2d' op padding must be 4 integers of at least 0, but got [0, -1, 0, 0]}}
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 2, 2>, padding = array<i64: 0, -1, 0, 0>, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @pool_c2(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.max_pool2d' op input height must be at least 5 with padding, but got 4}}
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 5, 2>, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @pool_c2_padding(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.max_pool2d' op padding must be smaller than the kernel [2, 2], but got [0, 0, 2, 0]}}
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 2, 2>, padding = array<i64: 0, 0, 2, 0>, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @pool_c3(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.max_pool2d' op result element type must be i8, but got ui8}}
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 2, 2>, output_min = -128 : i64, output_max = 127 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xui8>
  return
}

// -----

func.func @pool_c4(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.max_pool2d' op output_min and output_max must be ordered and in [-128, 127], but got 10 and 9}}
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 2, 2>, output_min = 10 : i64, output_max = 9 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @pool_c4_range(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.max_pool2d' op output_min and output_max must be ordered and in [-128, 127], but got -128 and 255}}
  %y = "qnn.max_pool2d"(%data) {
    kernel = array<i64: 2, 2>, output_min = -128 : i64, output_max = 255 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}
