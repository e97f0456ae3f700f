// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @quantize_c1(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op axis must be in [0, 2), but got 2}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 2 : i64
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_c1_negative(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op axis must be in [0, 2), but got -1}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = -1 : i64
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_c1_scalar(%input: tensor<f32>) {
  // expected-error @+1 {{'qnn.quantize' op axis must be in [0, 1), but got 1}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 1 : i64
  } : (tensor<f32>) -> tensor<i8>
  return
}

// -----

func.func @quantize_c2(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must have 1 or 2 entries, but got 3}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 1.0, 1.0, 1.0>, zero_points = array<i64: 3>
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_c2_zero_points(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op zero_points must have 1 or 2 entries, but got 3}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 0, 0, 0>
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_c2_no_zero_points(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op zero_points must have 1 or 2 entries, but got 0}}
  %y = "qnn.quantize"(%input) {scales = array<f64: 0.5>, zero_points = array<i64>} : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_c2_scalar(%input: tensor<f32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must have 1 entry, but got 2}}
  %y = "qnn.quantize"(%input) {scales = array<f64: 1.0, 1.0>, zero_points = array<i64: 3>} : (tensor<f32>) -> tensor<i8>
  return
}

// -----

func.func @quantize_c3(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 128>
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_c3_wide(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op zero_points must be in [-2147483648, 2147483647], but got 2147483648}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 2147483648>
  } : (tensor<2x3xf32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @quantize_c3_sixteen_unsigned_bits(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op zero_points must be in [0, 65535], but got -1}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: -1>
  } : (tensor<2x3xf32>) -> tensor<2x3xui16>
  return
}

// -----

func.func @quantize_c3_channel(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op zero_points must be in [-128, 127], but got -129}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 0, -129>
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}
