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
<<<<<<< HEAD

// -----

func.func @quantize_scales_empty(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must be a non-empty array<f64> of positive scales up to 2^30, but got array<f64>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even", scaling = "divide",
    nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_scales_zero(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must be a non-empty array<f64> of positive scales up to 2^30, but got array<f64: 1.000000e+00, 0.000000e+00>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 1.0, 0.0>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_scales_nan(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must be a non-empty array<f64> of positive scales up to 2^30, but got array<f64: 0x7FF8000000000000>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0x7FF8000000000000>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_scales_infinite(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must be a non-empty array<f64> of positive scales up to 2^30, but got array<f64: 0x7FF0000000000000>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0x7FF0000000000000>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_scales_f32(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must be a non-empty array<f64> of positive scales up to 2^30, but got array<f32: 5.000000e-01>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f32: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_scales_list(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scales must be a non-empty array<f64> of positive scales up to 2^30, but got [5.000000e-01]}}
  %y = "qnn.quantize"(%input) {
    scales = [0.5], zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even", scaling = "divide",
    nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_zero_points_i32(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op zero_points must be an array<i64>, but got array<i32: 0>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i32: 0>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_rounding(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op rounding must be one of "half_even", "half_away", "half_up", but got "up"}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "up", scaling = "divide",
    nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_scaling(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op scaling must be one of "divide", "reciprocal", "reciprocal_f32", but got "multiply"}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "multiply", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_result_type(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op result 'output' must be a non-empty static tensor of i8 or ui8 or i16 or ui16 or i32, but got tensor<2x3xi64>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi64>
  return
}

// -----

func.func @quantize_too_few_operands() {
  // expected-error @+1 {{'qnn.quantize' op must have 1 operand, but got 0}}
  %y = "qnn.quantize"() {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : () -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_too_many_operands(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op must have 1 operand, but got 2}}
  %y = "qnn.quantize"(%input, %input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_no_result(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op must have 1 result, but got 0}}
  "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> ()
  return
}

// -----

func.func @quantize_two_results(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op must have 1 result, but got 2}}
  %y:2 = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @quantize_missing_attribute(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op must have attributes 'scales' (a non-empty array<f64> of positive scales up to 2^30), 'zero_points' (an array<i64>)}}
  %y = "qnn.quantize"(%input) {
    rounding = "half_even", scaling = "divide",
    nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_unknown_attribute(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op has no attribute 'bogus'; it has 'scales', 'zero_points', 'axis', 'rounding', 'scaling', 'nan'}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point", bogus = 1 : i64
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_attribute_kind(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op axis must be an i64, but got 0 : index}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : index, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_memref(%input: memref<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op operand 'input' must be a non-empty static tensor of f32, but got memref<2x3xf32>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (memref<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_vector(%input: vector<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op operand 'input' must be a non-empty static tensor of f32, but got vector<2x3xf32>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (vector<2x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_unranked(%input: tensor<*xf32>) {
  // expected-error @+1 {{'qnn.quantize' op operand 'input' must be a non-empty static tensor of f32, but got tensor<*xf32>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<*xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_dynamic_shape(%input: tensor<?x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op operand 'input' must be a non-empty static tensor of f32, but got tensor<?x3xf32>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<?x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_no_elements(%input: tensor<0x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op operand 'input' must be a non-empty static tensor of f32, but got tensor<0x3xf32>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<0x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.quantize' op operand 'input' must be a non-empty static tensor of f32, but got tensor<2x3xf64>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_encoding(%input: tensor<2x3xf32, "encoding">) {
  // expected-error @+1 {{'qnn.quantize' op operand 'input' must be a non-empty static tensor of f32 without encoding, but got tensor<2x3xf32, "encoding">}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32, "encoding">) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_too_large(%input: tensor<2147483648x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op operand 'input' must be a non-empty static tensor of f32 with at most 2147483647 elements, but got tensor<2147483648x3xf32>}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2147483648x3xf32>) -> tensor<2x3xi8>
  return
}

// -----

func.func @quantize_result_shape(%input: tensor<2x3xf32>) {
  // expected-error @+1 {{'qnn.quantize' op result shape must be 2x3, but got 3x2}}
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<3x2xi8>
  return
}
=======
>>>>>>> negatives
