// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @dynamic_dense_c1(%data: tensor<2x4xui8>, %weight: tensor<3x5xi8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @+1 {{'qnn.dynamic_dense' op weight depth must be 4, but got 5}}
  %y = "qnn.dynamic_dense"(%data, %weight, %s, %z)
    : (tensor<2x4xui8>, tensor<3x5xi8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dynamic_dense_c8(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %s: tensor<2xf32>, %z: tensor<ui8>) {
  // expected-error @+1 {{'qnn.dynamic_dense' op scale must have 1 element or the shape [2, 1], but got [2]}}
  %y = "qnn.dynamic_dense"(%data, %weight, %s, %z)
    : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<2xf32>, tensor<ui8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dynamic_dense_c8_point(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %s: tensor<f32>, %z: tensor<3x1xui8>) {
  // expected-error @+1 {{'qnn.dynamic_dense' op zero_point must have 1 element or the shape [2, 1], but got [3, 1]}}
  %y = "qnn.dynamic_dense"(%data, %weight, %s, %z)
    : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<f32>, tensor<3x1xui8>) -> tensor<2x3xf32>
  return
}
