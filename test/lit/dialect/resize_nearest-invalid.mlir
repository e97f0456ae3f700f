// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @resize_nearest_c1(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op result element type must be i8, but got ui8}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xui8>
  return
}

// -----

func.func @resize_nearest_c2(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op size must be 2 integers of at least 1, but got [8]}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_c2_zero(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op size must be 2 integers of at least 1, but got [0, 5]}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 0, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_coordinates(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op coordinates must be one of "asymmetric", "half_pixel", "pytorch_half_pixel", "tf_half_pixel", "align_corners", but got "corner"}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "corner", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_nearest(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op nearest must be one of "floor", "ceil", "round_prefer_floor", "round_prefer_ceil", but got "up"}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "up", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_rank(%input: tensor<4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<4x6x3xi8>}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_too_few_operands() {
  // expected-error @+1 {{'qnn.resize_nearest' op must have 1 operand, but got 0}}
  %y = "qnn.resize_nearest"() {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : () -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_too_many_operands(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op must have 1 operand, but got 2}}
  %y = "qnn.resize_nearest"(%input, %input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>, tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_no_result(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op must have 1 result, but got 0}}
  "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> ()
  return
}

// -----

func.func @resize_nearest_two_results(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op must have 1 result, but got 2}}
  %y:2 = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> (tensor<1x8x5x3xi8>, tensor<1x8x5x3xi8>)
  return
}

// -----

func.func @resize_nearest_missing_attribute(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op must have attribute 'size' (an array<i64>)}}
  %y = "qnn.resize_nearest"(%input) {
    coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_unknown_attribute(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op has no attribute 'bogus'; it has 'size', 'coordinates', 'nearest', 'ratio'}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide", bogus = 1 : i64
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_attribute_kind(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op size must be an array<i64>, but got dense<0> : tensor<4xi64>}}
  %y = "qnn.resize_nearest"(%input) {
    size = dense<0> : tensor<4xi64>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_memref(%input: memref<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got memref<1x4x6x3xi8>}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (memref<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_vector(%input: vector<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got vector<1x4x6x3xi8>}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (vector<1x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<*xi8>}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<*xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_dynamic_shape(%input: tensor<?x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<?x4x6x3xi8>}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<?x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_no_elements(%input: tensor<0x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<0x4x6x3xi8>}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<0x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_element_type(%input: tensor<1x4x6x3xf64>) {
  // expected-error @+1 {{'qnn.resize_nearest' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32, but got tensor<1x4x6x3xf64>}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xf64>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_encoding(%input: tensor<1x4x6x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.resize_nearest' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 without encoding, but got tensor<1x4x6x3xi8, "encoding">}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8, "encoding">) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_too_large(%input: tensor<2147483648x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op operand 'input' must be a 4-d non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 or i64 or f32 with at most 2147483647 elements, but got tensor<2147483648x4x6x3xi8>}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<2147483648x4x6x3xi8>) -> tensor<1x8x5x3xi8>
  return
}

// -----

func.func @resize_nearest_result_shape(%input: tensor<1x4x6x3xi8>) {
  // expected-error @+1 {{'qnn.resize_nearest' op result shape must be 1x8x5x3, but got 1x4x6x3}}
  %y = "qnn.resize_nearest"(%input) {
    size = array<i64: 8, 5>, coordinates = "half_pixel", nearest = "floor", ratio = "divide"
  } : (tensor<1x4x6x3xi8>) -> tensor<1x4x6x3xi8>
  return
}
