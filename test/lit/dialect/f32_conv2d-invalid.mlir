// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @f32_conv2d_c1(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.f32_conv2d"(%data, %weight) {
    strides = array<i64: 0, 1>
  } : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_c2(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op groups must divide 4 input and 8 output channels, but got 3}}
  %y = "qnn.f32_conv2d"(%data, %weight) {
    groups = 3 : i64
  } : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_c3(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x4xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op input height must be at least 7 with padding, but got 5}}
  %y = "qnn.f32_conv2d"(%data, %weight) {
    dilation = array<i64: 3, 1>
  } : (tensor<1x5x5x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x3x3x8xf32>
  return
}

// -----

func.func @f32_conv2d_c5(%data: tensor<1x5x5x4xf32>, %weight: tensor<8x3x3x2xf32>, %bias: tensor<8xf32>) {
  // expected-error @+1 {{'qnn.f32_conv2d' op bias must go with one group, but got 2}}
  %y = "qnn.f32_conv2d"(%data, %weight, %bias) {groups = 2 : i64}
    : (tensor<1x5x5x4xf32>, tensor<8x3x3x2xf32>, tensor<8xf32>) -> tensor<1x3x3x8xf32>
  return
}
