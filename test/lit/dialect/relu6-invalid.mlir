// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @relu6_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op input_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_c1_unsigned_input(%input: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.relu6' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xui8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_c1_output(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op output_zero_point must be in [-128, 127], but got -129}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -129 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_c1_unsigned_output(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op output_zero_point must be in [0, 255], but got 256}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = 256 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return
}

// -----

func.func @relu6_entries(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op entries must be one of "half_away_divide", "half_away_reciprocal", "half_even_divide", "half_away_double", but got "half_up"}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_up", nan = "max"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_nan(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op nan must be one of "max", "min", "zero_point", but got unit}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = unit
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_too_few_operands() {
  // expected-error @+1 {{'qnn.relu6' op must have 1 operand, but got 0}}
  %y = "qnn.relu6"() {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : () -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_too_many_operands(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op must have 1 operand, but got 2}}
  %y = "qnn.relu6"(%input, %input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_no_result(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op must have 1 result, but got 0}}
  "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @relu6_two_results(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op must have 1 result, but got 2}}
  %y:2 = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @relu6_missing_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op must have attribute 'input_zero_point' (an i64)}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_unknown_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op has no attribute 'bogus'; it has 'input_scale', 'input_zero_point', 'output_scale', 'output_zero_point', 'entries', 'nan'}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max", bogus = 1 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_attribute_kind(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op input_zero_point must be an i64, but got 3 : i32}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i32, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_memref(%input: memref<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got memref<2x3xi8>}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (memref<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_vector(%input: vector<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got vector<2x3xi8>}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (vector<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.relu6' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<*xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_dynamic_shape(%input: tensor<?x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<?x3xi8>}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<?x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_no_elements(%input: tensor<0x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<0x3xi8>}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<0x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.relu6' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xf64>}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xf64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_encoding(%input: tensor<2x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.relu6' op operand 'input' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8, "encoding">) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_too_large(%input: tensor<2147483648x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op operand 'input' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2147483648x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @relu6_result_shape(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.relu6' op result shape must be 2x3, but got 3x2}}
  %y = "qnn.relu6"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, entries = "half_away_divide", nan = "max"
  } : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}
