// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @dense_c1(%data: tensor<2x4xui8>, %weight: tensor<3x5xi8>) {
  // expected-error @+1 {{'qnn.dense' op weight depth must be 4, but got 5}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x5xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_c1_scalar(%data: tensor<ui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op data must have at least 1 dimension, but got 0}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<ui8>, tensor<3x4xi8>) -> tensor<3xi32>
  return
}

// -----

func.func @dense_c4(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op weight_scales must have 1 or 3 entries, but got 2}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 1.0, 1.0>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_c4_zero_points(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op weight_zero_points must have 1 or 3 entries, but got 2}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_c4_no_zero_points(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op weight_zero_points must have 1 or 3 entries, but got 0}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_c5(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op input_zero_point must be in [0, 255], but got -1}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = -1 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_c5_weight(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op weight_zero_points must be in [-128, 127], but got 128}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0, 0, 128>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_c5_unsigned_weight(%data: tensor<2x4xui8>, %weight: tensor<3x4xui8>) {
  // expected-error @+1 {{'qnn.dense' op weight_zero_points must be in [0, 255], but got -1}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: -1>
  } : (tensor<2x4xui8>, tensor<3x4xui8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_c6(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<4xi32>) {
  // expected-error @+1 {{'qnn.dense' op bias must have 3 entries, but got 4}}
  %y = "qnn.dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<4xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_bias_rank(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<1x3xi32>) {
  // expected-error @+1 {{'qnn.dense' op operand 'bias' must be a 1-d non-empty static tensor of i32, but got tensor<1x3xi32>}}
  %y = "qnn.dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<1x3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_bias_type(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>, %bias: tensor<3xi64>) {
  // expected-error @+1 {{'qnn.dense' op operand 'bias' must be a 1-d non-empty static tensor of i32, but got tensor<3xi64>}}
  %y = "qnn.dense"(%data, %weight, %bias) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3xi64>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_weight_rank(%data: tensor<2x4xui8>, %weight: tensor<3x2x2xi8>) {
  // expected-error @+1 {{'qnn.dense' op operand 'weight' must be a 2-d non-empty static tensor of i8 or ui8, but got tensor<3x2x2xi8>}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x2x2xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_too_few_operands(%data: tensor<2x4xui8>) {
  // expected-error @+1 {{'qnn.dense' op must have 2 or 3 operands, but got 1}}
  %y = "qnn.dense"(%data) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_too_many_operands(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op must have 2 or 3 operands, but got 4}}
  %y = "qnn.dense"(%data, %weight, %weight, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>, tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_no_result(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op must have 1 result, but got 0}}
  "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> ()
  return
}

// -----

func.func @dense_two_results(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op must have 1 result, but got 2}}
  %y:2 = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> (tensor<2x3xi32>, tensor<2x3xi32>)
  return
}

// -----

func.func @dense_missing_attribute(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op must have attribute 'weight_scales' (a non-empty array<f64> of positive scales up to 2^30)}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_unknown_attribute(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op has no attribute 'bogus'; it has 'input_scale', 'input_zero_point', 'weight_scales', 'weight_zero_points'}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, bogus = 1 : i64
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_attribute_kind(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op weight_scales must be a non-empty array<f64> of positive scales up to 2^30, but got 2.500000e-01 : f64}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = 0.25 : f64,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_memref(%data: memref<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got memref<2x4xui8>}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (memref<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_vector(%data: vector<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got vector<2x4xui8>}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (vector<2x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_unranked(%data: tensor<*xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<*xui8>}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<*xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_dynamic_shape(%data: tensor<?x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<?x4xui8>}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<?x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_no_elements(%data: tensor<0x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<0x4xui8>}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<0x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_element_type(%data: tensor<2x4xf64>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op operand 'data' must be a non-empty static tensor of i8 or ui8, but got tensor<2x4xf64>}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xf64>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_encoding(%data: tensor<2x4xui8, "encoding">, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op operand 'data' must be a non-empty static tensor of i8 or ui8 without encoding, but got tensor<2x4xui8, "encoding">}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8, "encoding">, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_too_large(%data: tensor<2147483648x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op operand 'data' must be a non-empty static tensor of i8 or ui8 with at most 2147483647 elements, but got tensor<2147483648x4xui8>}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2147483648x4xui8>, tensor<3x4xi8>) -> tensor<2x3xi32>
  return
}

// -----

func.func @dense_result_shape(%data: tensor<2x4xui8>, %weight: tensor<3x4xi8>) {
  // expected-error @+1 {{'qnn.dense' op result shape must be 2x3, but got 2x4}}
  %y = "qnn.dense"(%data, %weight) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x4xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
  return
}
