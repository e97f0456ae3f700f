// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @i16_conv2d_c1(%data: tensor<1x5x5x4xi16>, %weight: tensor<8x3x3x4xi8>) {
  // expected-error @+1 {{'qnn.i16_conv2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.i16_conv2d"(%data, %weight) {
    strides = array<i64: 0, 1>
  } : (tensor<1x5x5x4xi16>, tensor<8x3x3x4xi8>) -> tensor<1x3x3x8xi64>
  return
}

// -----

func.func @i16_conv2d_c2(%data: tensor<1x5x5x4xi16>, %weight: tensor<8x3x3x4xi8>) {
  // expected-error @+1 {{'qnn.i16_conv2d' op groups must divide 4 input and 8 output channels, but got 3}}
  %y = "qnn.i16_conv2d"(%data, %weight) {
    groups = 3 : i64
  } : (tensor<1x5x5x4xi16>, tensor<8x3x3x4xi8>) -> tensor<1x3x3x8xi64>
  return
}

// -----

func.func @i16_conv2d_c3(%data: tensor<1x5x5x4xi16>, %weight: tensor<8x3x3x4xi8>) {
  // expected-error @+1 {{'qnn.i16_conv2d' op input height must be at least 7 with padding, but got 6}}
  %y = "qnn.i16_conv2d"(%data, %weight) {
    dilation = array<i64: 3, 1>, padding = array<i64: 1, 0, 0, 0>
  } : (tensor<1x5x5x4xi16>, tensor<8x3x3x4xi8>) -> tensor<1x3x3x8xi64>
  return
}
