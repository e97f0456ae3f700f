// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @i16_layer_norm_c1(%input: tensor<i16>, %weight: tensor<1xi16>, %bias: tensor<1xi32>) {
  // expected-error @+1 {{'qnn.i16_layer_norm' op input must have a last dimension, but got 0 dimensions}}
  %y = "qnn.i16_layer_norm"(%input, %weight, %bias) {scale = 3.0e-05 : f64, variance_guard = 2 : i64}
    : (tensor<i16>, tensor<1xi16>, tensor<1xi32>) -> tensor<i16>
  return
}

// -----

func.func @i16_layer_norm_c2(%input: tensor<2x5xi16>, %weight: tensor<5xi16>, %bias: tensor<4xi32>) {
  // expected-error @+1 {{'qnn.i16_layer_norm' op weight and bias must have 5 entries, but got 5 and 4}}
  %y = "qnn.i16_layer_norm"(%input, %weight, %bias) {scale = 3.0e-05 : f64, variance_guard = 2 : i64}
    : (tensor<2x5xi16>, tensor<5xi16>, tensor<4xi32>) -> tensor<2x5xi16>
  return
}

// -----

func.func @i16_layer_norm_c3(%input: tensor<2x5xi16>, %weight: tensor<5xi16>, %bias: tensor<5xi32>) {
  // expected-error @+1 {{'qnn.i16_layer_norm' op variance_guard must be in [1, 536870911], but got 0}}
  %y = "qnn.i16_layer_norm"(%input, %weight, %bias) {scale = 3.0e-05 : f64, variance_guard = 0 : i64}
    : (tensor<2x5xi16>, tensor<5xi16>, tensor<5xi32>) -> tensor<2x5xi16>
  return
}
