// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @mean_c1(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op axes must be distinct, ascending and in [0, 4), but got [1, 1]}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 1>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_c1_order(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op axes must be distinct, ascending and in [0, 4), but got [2, 1]}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 2, 1>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_c1_negative(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op axes must be distinct, ascending and in [0, 4), but got [-1]}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: -1>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_c1_range(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op axes must be distinct, ascending and in [0, 4), but got [4]}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 4>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_c1_none(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op axes must be distinct, ascending and in [0, 4), but got []}}
  %y = "qnn.mean"(%input) {
    axes = array<i64>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_c1_scalar(%input: tensor<i8>) {
  // expected-error @+1 {{'qnn.mean' op axes must be distinct, ascending and in [0, 0), but got [0]}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 0>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<i8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_c2(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op input_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 128 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_c2_unsigned_input(%input: tensor<1x4x4x2xui8>) {
  // expected-error @+1 {{'qnn.mean' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = -1 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xui8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_c2_output(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op output_zero_point must be in [-128, 127], but got -129}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -129 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_c2_unsigned_output(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op output_zero_point must be in [0, 255], but got 256}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = 256 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xui8>
  return
}

// -----

func.func @mean_too_few_operands() {
  // expected-error @+1 {{'qnn.mean' op must have 1 operand, but got 0}}
  %y = "qnn.mean"() {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : () -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_too_many_operands(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op must have 1 operand, but got 2}}
  %y = "qnn.mean"(%input, %input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>, tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_no_result(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op must have 1 result, but got 0}}
  "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> ()
  return
}

// -----

func.func @mean_two_results(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op must have 1 result, but got 2}}
  %y:2 = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> (tensor<1x2xi8>, tensor<1x2xi8>)
  return
}

// -----

func.func @mean_missing_attribute(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op must have attribute 'axes' (an array<i64>)}}
  %y = "qnn.mean"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_unknown_attribute(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op has no attribute 'bogus'; it has 'axes', 'keep_dims', 'input_scale', 'input_zero_point', 'output_scale', 'output_zero_point', 'rounding', 'multiplier'}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64",
    bogus = 1 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_attribute_kind(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op keep_dims must be a bool, but got unit}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = unit, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_memref(%input: memref<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got memref<1x4x4x2xi8>}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (memref<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_vector(%input: vector<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got vector<1x4x4x2xi8>}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (vector<1x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.mean' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<*xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_dynamic_shape(%input: tensor<?x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<?x4x4x2xi8>}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<?x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_no_elements(%input: tensor<0x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<0x4x4x2xi8>}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<0x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_element_type(%input: tensor<1x4x4x2xf64>) {
  // expected-error @+1 {{'qnn.mean' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<1x4x4x2xf64>}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xf64>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_encoding(%input: tensor<1x4x4x2xi8, "encoding">) {
  // expected-error @+1 {{'qnn.mean' op operand 'input' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<1x4x4x2xi8, "encoding">}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8, "encoding">) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_too_large(%input: tensor<2147483648x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op operand 'input' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x4x4x2xi8>}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<2147483648x4x4x2xi8>) -> tensor<1x2xi8>
  return
}

// -----

func.func @mean_result_shape(%input: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.mean' op result shape must be 1x2, but got 1x1x1x2}}
  %y = "qnn.mean"(%input) {
    axes = array<i64: 1, 2>, keep_dims = false, input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    output_scale = 0.25 : f64, output_zero_point = -4 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x2xi8>) -> tensor<1x1x1x2xi8>
  return
}
