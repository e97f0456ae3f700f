// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @resize_bilinear_c1(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op result element type must be i8, but got ui8}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xui8>
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

// -----

func.func @resize_bilinear_c2_zero(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op size must be 2 integers of at least 1, but got [0, 5]}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 0, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

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

func.func @resize_bilinear_arithmetic(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op arithmetic must be one of "tflite_fixed", "xnnpack_fixed", "tflite_float", "onnx_float", but got "fixed"}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "fixed"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_rank(%input: tensor<4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or f32, but got tensor<4x6x3xi8>}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_too_few_operands() {
  // expected-error @+1 {{'qnn.resize_bilinear' op must have 1 operand, but got 0}}
  %y = "qnn.resize_bilinear"() {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : () -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_too_many_operands(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op must have 1 operand, but got 2}}
  %y = "qnn.resize_bilinear"(%input, %input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>, tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_no_result(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op must have 1 result, but got 0}}
  "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> ()
  return
}

// -----

func.func @resize_bilinear_two_results(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op must have 1 result, but got 2}}
  %y:2 = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> (tensor<1x8x5x3xi8>, tensor<1x8x5x3xi8>)
  return
}

// -----

func.func @resize_bilinear_missing_attribute(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op must have attribute 'size' (an array<i64>)}}
  %y = "qnn.resize_bilinear"(%input) {
    coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_unknown_attribute(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op has no attribute 'bogus'; it has 'size', 'coordinates', 'arithmetic'}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed", bogus = 1 : i64
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_attribute_kind(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op size must be an array<i64>, but got dense<0> : tensor<4xi64>}}
  %y = "qnn.resize_bilinear"(%input) {
    size = dense<0> : tensor<4xi64>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_memref(%input: memref<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or f32, but got memref<1x4x6x3xi8>}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (memref<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_vector(%input: vector<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or f32, but got vector<1x4x6x3xi8>}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (vector<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or f32, but got tensor<*xi8>}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<*xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_dynamic_shape(%input: tensor<?x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or f32, but got tensor<?x4x6x3xi8>}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<?x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_no_elements(%input: tensor<0x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or f32, but got tensor<0x4x6x3xi8>}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<0x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_element_type(%input: tensor<1x4x6x3xf64>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or f32, but got tensor<1x4x6x3xf64>}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xf64>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_encoding(%input: tensor<1x4x6x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.resize_bilinear' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or f32 without encoding, but got tensor<1x4x6x3xi8, "encoding">}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8, "encoding">) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_too_large(%input: tensor<2147483648x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or f32 with at most 2147483647 elements, but got tensor<2147483648x4x6x3xi8>}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<2147483648x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_bilinear_result_shape(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_bilinear' op result shape must be 1x8x5x3, but got 1x4x6x3}}
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", arithmetic = "tflite_fixed"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x4x6x3xi8>
  return
}
