// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @dequantize_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op axis must be in [0, 2), but got 2}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 2 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_c1_negative(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op axis must be in [0, 2), but got -1}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = -1 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op scales must have 1 or 2 entries, but got 3}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 1.0, 1.0, 1.0>, zero_points = array<i64: 3>
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_c2_zero_points(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op zero_points must have 1 or 2 entries, but got 0}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64>
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}
