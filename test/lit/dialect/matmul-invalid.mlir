// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @matmul_c1(%data: tensor<4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op data must have at least 2 dimensions, but got 1}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c1_weight(%data: tensor<2x4xui8>, %weight: tensor<4xi8>) {
  // expected-error @+1 {{'qnn.matmul' op weight must have at least 2 dimensions, but got 1}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c2(%data: tensor<2x4xui8>, %weight: tensor<5x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op weight depth must be 4, but got 5}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<5x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c3(%data: tensor<2x2x4xui8>, %weight: tensor<3x4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op leading dimensions must broadcast, but got [2] and [3]}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x2x4xui8>, tensor<3x4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c4(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op weight_scales must have 1 or 3 entries, but got 2}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 1.0, 1.0>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c4_zero_points(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op weight_zero_points must have 1 or 3 entries, but got 2}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c4_no_zero_points(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op weight_zero_points must have 1 or 3 entries, but got 0}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c5(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c5_weight(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op weight_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0, 128>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c5_unsigned_weight(%data: tensor<2x4xui8>, %weight: tensor<4x3xui8>) {
  // expected-error @+1 {{'qnn.matmul' op weight_zero_points must be in [0, 255], but got -1}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: -1>
  } : (tensor<2x4xui8>, tensor<4x3xui8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_c6(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<4xi32>) {
  // expected-error @+1 {{'qnn.matmul' op bias must have 3 entries, but got 4}}
  %y = "qnn.matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<4xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_bias_rank(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<1x3xi32>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'bias' must be a 1-d non-empty static tensor of i32, but got tensor<1x3xi32>}}
  %y = "qnn.matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<1x3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_bias_type(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>, %bias: tensor<3xi64>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'bias' must be a 1-d non-empty static tensor of i32, but got tensor<3xi64>}}
  %y = "qnn.matmul"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<3xi64>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_too_few_operands(%data: tensor<2x4xui8>) {
  // expected-error @+1 {{'qnn.matmul' op must have 2 or 3 operands, but got 1}}
  %y = "qnn.matmul"(%data) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_too_many_operands(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op must have 2 or 3 operands, but got 4}}
  %y = "qnn.matmul"(%data, %weight, %weight, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<4x3xi8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_no_result(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op must have 1 result, but got 0}}
  "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> ()
  return
}

// -----

func.func @matmul_two_results(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op must have 1 result, but got 2}}
  %y:2 = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> (tensor<2x3xi32>, tensor<2x3xi32>)
  return
}

// -----

func.func @matmul_missing_attribute(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op must have attribute 'weight_scales' (a non-empty array<f64> of positive scales up to 2^30)}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_unknown_attribute(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op has no attribute 'bogus'; it has 'input_scale', 'input_zero_point', 'weight_scales', 'weight_zero_points'}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, bogus = 1 : i64
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_attribute_kind(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op weight_scales must be a non-empty array<f64> of positive scales up to 2^30, but got 2.500000e-01 : f64}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = 0.25 : f64,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_memref(%data: memref<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got memref<2x4xui8>}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (memref<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_vector(%data: vector<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got vector<2x4xui8>}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (vector<2x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_unranked(%data: tensor<*xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<*xui8>}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<*xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_dynamic_shape(%data: tensor<?x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<?x4xui8>}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<?x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_no_elements(%data: tensor<0x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<0x4xui8>}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<0x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_element_type(%data: tensor<2x4xf64>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<2x4xf64>}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xf64>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_encoding(%data: tensor<2x4xui8, "encoding">, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'data' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x4xui8, "encoding">}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8, "encoding">, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_too_large(%data: tensor<2147483648x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op operand 'data' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x4xui8>}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2147483648x4xui8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @matmul_result_shape(%data: tensor<2x4xui8>, %weight: tensor<4x3xi8>) {
  // expected-error @+1 {{'qnn.matmul' op result shape must be 2x3, but got 2x4}}
  %y = "qnn.matmul"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<4x3xi8>) -> tensor<2x4xi32>
  return
}
