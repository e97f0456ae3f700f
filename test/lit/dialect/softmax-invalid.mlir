// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @softmax_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op axis must be in [0, 2), but got 2}}
  %y = "qnn.softmax"(%input) {
    axis = 2 : i64, input_scale = 0.5 : f64, output_scale = 0.00390625 : f64, output_zero_point = -128 : i64,
    arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c1_negative(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op axis must be in [0, 2), but got -1}}
  %y = "qnn.softmax"(%input) {
    axis = -1 : i64, input_scale = 0.5 : f64, output_scale = 0.00390625 : f64, output_zero_point = -128 : i64,
    arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c1_scalar(%input: tensor<i8>) {
  // expected-error @+1 {{'qnn.softmax' op axis must be in [0, 0), but got 0}}
  %y = "qnn.softmax"(%input) {
    axis = 0 : i64, input_scale = 0.5 : f64, output_scale = 0.00390625 : f64, output_zero_point = -128 : i64,
    arithmetic = "tflite_fixed"
  } : (tensor<i8>) -> tensor<i8>
  return
}

// -----

func.func @softmax_c2(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op output_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, output_scale = 0.00390625 : f64, output_zero_point = 128 : i64,
    arithmetic = "float"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c3(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op output_scale and output_zero_point must be 0.00390625 and -128, but got 0.5 and -128}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, output_scale = 0.5 : f64, output_zero_point = -128 : i64,
    arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c3_zero_point(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op output_scale and output_zero_point must be 0.00390625 and -128, but got 0.00390625 and 0}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @softmax_c3_element_type(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op result element type must be i8, but got ui8}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return
}

// -----

func.func @softmax_c4(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.softmax' op input_scale * beta must be greater than 2^-26, but got 1.4901161193847656e-08}}
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 1.4901161193847656e-08 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}
