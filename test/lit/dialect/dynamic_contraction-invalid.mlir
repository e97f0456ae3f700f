// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @dynamic_contraction_c4(
  %data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %s: tensor<f32>, %z: tensor<ui8>
) {
  // expected-error @+1 {{'qnn.dynamic_dense' op weight_scales must have 1 or 3 entries, but got 2}}
  %y = "qnn.dynamic_dense"(%data, %weight, %s, %z) {weight_scales = array<f64: 0.5, 0.5>}
    : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dynamic_contraction_c10(
  %data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %s: tensor<f32>, %z: tensor<ui8>
) {
  // expected-error @+1 {{'qnn.dynamic_dense' op alpha must be 0 for activation relu, but got 0.5}}
  %y = "qnn.dynamic_dense"(%data, %weight, %s, %z) {activation = "relu", alpha = 0.5 : f64}
    : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dynamic_contraction_c5(
  %data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %s: tensor<f32>, %z: tensor<ui8>
) {
  // expected-error @+1 {{'qnn.dynamic_dense' op weight_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.dynamic_dense"(%data, %weight, %s, %z) {weight_zero_points = array<i64: 128>}
    : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dynamic_contraction_c6(
  %data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %s: tensor<f32>, %z: tensor<i8>
) {
  // expected-error @+1 {{'qnn.dynamic_dense' op zero_point element type must be ui8, but got i8}}
  %y = "qnn.dynamic_dense"(%data, %weight, %s, %z)
    : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<f32>, tensor<i8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dynamic_contraction_c7(
  %data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %s: tensor<f32>, %z: tensor<ui8>, %bias: tensor<4xf32>
) {
  // expected-error @+1 {{'qnn.dynamic_dense' op bias must have 3 entries, but got 4}}
  %y = "qnn.dynamic_dense"(%data, %weight, %s, %z, %bias)
    : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<f32>, tensor<ui8>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}
