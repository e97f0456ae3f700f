// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @resize_bilinear_c3(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op input of arithmetic tflite_float must be ui8 or f32, but got i8}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_float"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_c3_fixed(%input: tensor<1x4x6x3xf32>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op input of arithmetic tflite_fixed must be i8 or ui8, but got f32}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xf32>) -> tensor<1x8x5x3xf32>
  return
}

// -----

func.func @resize_bilinear_c4(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op coordinates of arithmetic tflite_fixed must be one of asymmetric, half_pixel, align_corners, but got tf_half_pixel}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "tf_half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_c2(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op size must be 2 integers of at least 1, but got [8]}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}
