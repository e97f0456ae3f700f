// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @avg_pool2d_c1(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op kernel must be 2 integers of at least 1, but got [2, 0]}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_c1_strides(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op strides must be 2 integers of at least 1, but got [0, 1]}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 0, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_c1_padding(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op padding must be 4 integers of at least 0, but got [0, -1, 0, 0]}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, -1, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_c1_count(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op kernel must be 2 integers of at least 1, but got [2, 2, 2]}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_c2(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op input height must be at least 5 with padding, but got 4}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 5, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_c2_padding(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op padding must be smaller than the kernel [2, 2], but got [0, 0, 2, 0]}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 2, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_c3(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op result element type must be i8, but got ui8}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xui8>
  return
}

// -----

func.func @avg_pool2d_c4(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op output_min and output_max must be ordered and in [-128, 127], but got 10 and 9}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = 10 : i64, output_max = 9 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_c4_range(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op output_min and output_max must be ordered and in [-128, 127], but got -128 and 255}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 255 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_c5(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op zero_point must be in [-128, 127], but got 128}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 128 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_division(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op division must be one of "half_away", "half_away_centered", "truncate", but got "floor"}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "floor",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_count_include_pad(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op count_include_pad must be a bool, but got 1 : i64}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = 1 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_too_few_operands() {
  // expected-error @+1 {{'qnn.avg_pool2d' op must have 1 operand, but got 0}}
  %y = "qnn.avg_pool2d"() {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : () -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_too_many_operands(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op must have 1 operand, but got 2}}
  %y = "qnn.avg_pool2d"(%data, %data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>, tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_no_result(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op must have 1 result, but got 0}}
  "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> ()
  return
}

// -----

func.func @avg_pool2d_two_results(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op must have 1 result, but got 2}}
  %y:2 = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> (tensor<1x3x3x2xi8>, tensor<1x3x3x2xi8>)
  return
}

// -----

func.func @avg_pool2d_missing_attribute(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op must have attribute 'kernel' (an array<i64>)}}
  %y = "qnn.avg_pool2d"(%data) {
    strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, output_min = -128 : i64, output_max = 127 : i64,
    zero_point = 3 : i64, division = "half_away", count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_unknown_attribute(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op has no attribute 'bogus'; it has 'kernel', 'strides', 'padding', 'output_min', 'output_max', 'zero_point', 'division', 'count_include_pad'}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false, bogus = 1 : i64
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_attribute_kind(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op kernel must be an array<i64>, but got [2, 2]}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = [2, 2], strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, output_min = -128 : i64,
    output_max = 127 : i64, zero_point = 3 : i64, division = "half_away", count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_memref(%data: memref<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got memref<1x4x4x2xi8>}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (memref<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_vector(%data: vector<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got vector<1x4x4x2xi8>}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (vector<1x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_unranked(%data: tensor<*xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<*xi8>}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<*xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_dynamic_shape(%data: tensor<?x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<?x4x4x2xi8>}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<?x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_no_elements(%data: tensor<0x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<0x4x4x2xi8>}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<0x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_element_type(%data: tensor<1x4x4x2xf64>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<1x4x4x2xf64>}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xf64>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_encoding(%data: tensor<1x4x4x2xi8, "encoding">) {
  // expected-error @+1 {{'qnn.avg_pool2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8 without encoding, but got tensor<1x4x4x2xi8, "encoding">}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8, "encoding">) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_too_large(%data: tensor<2147483648x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x4x4x2xi8>}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<2147483648x4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_rank(%data: tensor<4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op operand 'data' must be a 4-d non-empty static tensor of i8 or ui8, but got tensor<4x4x2xi8>}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<4x4x2xi8>) -> tensor<1x3x3x2xi8>
  return
}

// -----

func.func @avg_pool2d_result_shape(%data: tensor<1x4x4x2xi8>) {
  // expected-error @+1 {{'qnn.avg_pool2d' op result shape must be 1x3x3x2, but got 1x2x2x2}}
  %y = "qnn.avg_pool2d"(%data) {
    kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    output_min = -128 : i64, output_max = 127 : i64, zero_point = 3 : i64, division = "half_away",
    count_include_pad = false
  } : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
  return
}
