// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @lut_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op input_zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_c1_unsigned_input(%input: tensor<2x3xui8>) {
  // expected-error @+1 {{'qnn.lut' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xui8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_c1_output(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op output_zero_point must be in [-128, 127], but got -129}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -129 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_c1_unsigned_output(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op output_zero_point must be in [0, 255], but got 256}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64, output_zero_point = 256 : i64,
    table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return
}

// -----

func.func @lut_table_short(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got dense<0> : tensor<255xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<255xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_table_long(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got dense<0> : tensor<257xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<257xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_table_rank(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got dense<0> : tensor<16x16xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<16x16xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_table_vector(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got dense<0> : vector<256xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : vector<256xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_table_element_type(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got dense<0> : tensor<256xui8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xui8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_table_unit(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got unit}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = unit
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_table_array(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got array<i8: 0>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = array<i8: 0>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_table_resource(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op table must be a dense tensor<256xi8>, but got dense_resource<blob> : tensor<256xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense_resource<blob> : tensor<256xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_too_few_operands() {
  // expected-error @+1 {{'qnn.lut' op must have 1 operand, but got 0}}
  %y = "qnn.lut"() {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : () -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_too_many_operands(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op must have 1 operand, but got 2}}
  %y = "qnn.lut"(%input, %input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_no_result(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op must have 1 result, but got 0}}
  "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8>) -> ()
  return
}

// -----

func.func @lut_two_results(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op must have 1 result, but got 2}}
  %y:2 = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8>) -> (tensor<2x3xi8>, tensor<2x3xi8>)
  return
}

// -----

func.func @lut_missing_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op must have attribute 'input_zero_point' (an i64)}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_unknown_attribute(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op has no attribute 'bogus'; it has 'input_scale', 'input_zero_point', 'output_scale', 'output_zero_point', 'table'}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>, bogus = 1 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_attribute_kind(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op input_zero_point must be an i64, but got true}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = true, output_scale = 0.25 : f64, output_zero_point = -128 : i64,
    table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_memref(%input: memref<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got memref<2x3xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (memref<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_vector(%input: vector<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got vector<2x3xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (vector<2x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_unranked(%input: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.lut' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<*xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_dynamic_shape(%input: tensor<?x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<?x3xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<?x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_no_elements(%input: tensor<0x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<0x3xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<0x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_element_type(%input: tensor<2x3xf64>) {
  // expected-error @+1 {{'qnn.lut' op operand 'input' must be a non-empty static tensor of i8 or ui8, but got tensor<2x3xf64>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xf64>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_encoding(%input: tensor<2x3xi8, "encoding">) {
  // expected-error @+1 {{'qnn.lut' op operand 'input' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x3xi8, "encoding">}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8, "encoding">) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_too_large(%input: tensor<2147483648x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op operand 'input' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x3xi8>}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2147483648x3xi8>) -> tensor<2x3xi8>
  return
}

// -----

func.func @lut_result_shape(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.lut' op result shape must be 2x3, but got 3x2}}
  %y = "qnn.lut"(%input) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64, output_scale = 0.25 : f64,
    output_zero_point = -128 : i64, table = dense<0> : tensor<256xi8>
  } : (tensor<2x3xi8>) -> tensor<3x2xi8>
  return
}
