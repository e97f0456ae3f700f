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
    scales = array<f64: 1.0, 1.0, 1.0>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_c2_zero_points(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op zero_points must have 1 or 2 entries, but got 0}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64>, axis = 0 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_result_type(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op result 'output' must be a non-empty static tensor of f32, but got tensor<2x3xf16>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf16>
  return
}

// -----

func.func @dequantize_scales_nan(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op scales must be a non-empty array<f64> of positive scales up to 2^30, but got array<f64: 0x7FF8000000000000>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0x7FF8000000000000>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_too_few_operands() {
  // expected-error @+1 {{'qnn.dequantize' op must have 1 operand, but got 0}}
  %y = "qnn.dequantize"() {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : () -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_too_many_operands(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op must have 1 operand, but got 2}}
  %y = "qnn.dequantize"(%input, %input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_no_result(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op must have 1 result, but got 0}}
  "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @dequantize_two_results(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op must have 1 result, but got 2}}
  %y:2 = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xi8>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @dequantize_missing_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op must have attribute 'zero_points' (an array<i64>)}}
  %y = "qnn.dequantize"(%input) {scales = array<f64: 0.5>, axis = 0 : i64} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_unknown_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op has no attribute 'bogus'; it has 'scales', 'zero_points', 'axis'}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, bogus = 1 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_attribute_kind(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op zero_points must be an array<i64>, but got 0 : i64}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = 0 : i64, axis = 0 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_memref(%input: memref<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got memref<2x3xi8>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (memref<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_vector(%input: vector<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got vector<2x3xi8>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (vector<2x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<*xi8>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<*xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_dynamic_shape(%input: tensor<?x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<?x3xi8>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<?x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_no_elements(%input: tensor<0x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<0x3xi8>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<0x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.dequantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<2x3xf64>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xf64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_unsigned_element_type(%input: tensor<2x3xui32>) {
  // expected-error @+1 {{'qnn.dequantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<2x3xui32>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xui32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_encoding(%input: tensor<2x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.dequantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xi8, "encoding">) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_too_large(%input: tensor<2147483648x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op operand 'input' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2147483648x3xi8>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dequantize_result_shape(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.dequantize' op result shape must be 2x3, but got 3x2}}
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xi8>) -> tensor<3x2xf32>
  return
}
