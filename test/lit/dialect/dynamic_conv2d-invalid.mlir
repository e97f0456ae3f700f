// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @dynamic_conv2d_c1(%data: tensor<1x5x5x4xui8>, %weight: tensor<6x3x3x4xi8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{'qnn.dynamic_conv2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.dynamic_conv2d"(%data, %weight, %s, %z) {strides = array<i64: 0, 1>}
    : (tensor<1x5x5x4xui8>, tensor<6x3x3x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x3x6xf32>
  return
}

// -----

func.func @dynamic_conv2d_c2(%data: tensor<1x5x5x4xui8>, %weight: tensor<6x3x3x4xi8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{'qnn.dynamic_conv2d' op weight depth must be 2, but got 4}}
  %y = "qnn.dynamic_conv2d"(%data, %weight, %s, %z) {groups = 2 : i64}
    : (tensor<1x5x5x4xui8>, tensor<6x3x3x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x3x6xf32>
  return
}

// -----

func.func @dynamic_conv2d_c3(%data: tensor<1x2x5x4xui8>, %weight: tensor<6x3x3x4xi8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{'qnn.dynamic_conv2d' op input height must be at least 3 with padding, but got 2}}
  %y = "qnn.dynamic_conv2d"(%data, %weight, %s, %z)
    : (tensor<1x2x5x4xui8>, tensor<6x3x3x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x3x6xf32>
  return
}

// -----

func.func @dynamic_conv2d_c8(%data: tensor<1x5x5x4xui8>, %weight: tensor<6x3x3x4xi8>, %s: tensor<2xf32>, %z: tensor<ui8>) {
  // expected-error @+1 {{'qnn.dynamic_conv2d' op scale must have 1 element, but got 2}}
  %y = "qnn.dynamic_conv2d"(%data, %weight, %s, %z)
    : (tensor<1x5x5x4xui8>, tensor<6x3x3x4xi8>, tensor<2xf32>, tensor<ui8>) -> tensor<1x3x3x6xf32>
  return
}

// -----

func.func @dynamic_conv2d_c8_point(%data: tensor<1x5x5x4xui8>, %weight: tensor<6x3x3x4xi8>, %s: tensor<f32>, %z: tensor<3xui8>) {
  // expected-error @+1 {{'qnn.dynamic_conv2d' op zero_point must have 1 element, but got 3}}
  %y = "qnn.dynamic_conv2d"(%data, %weight, %s, %z)
    : (tensor<1x5x5x4xui8>, tensor<6x3x3x4xi8>, tensor<f32>, tensor<3xui8>) -> tensor<1x3x3x6xf32>
  return
}

// -----

func.func @dynamic_conv2d_c9(%data: tensor<1x5x5x4xui8>, %weight: tensor<6x3x3x4xi8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{'qnn.dynamic_conv2d' op with padding [1, 1, 1, 1] zero_point must be constant}}
  %y = "qnn.dynamic_conv2d"(%data, %weight, %s, %z) {padding = array<i64: 1, 1, 1, 1>}
    : (tensor<1x5x5x4xui8>, tensor<6x3x3x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<1x5x5x6xf32>
  return
}
