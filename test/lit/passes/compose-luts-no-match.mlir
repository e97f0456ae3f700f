// RUN: %qopt %s --qnn-compose-luts --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-compose-luts | filecheck %s

// Covers R12: a second use or mismatched parameters keep functions apart.

// CHECK-LABEL: func.func @second_use(
// CHECK: qnn.sigmoid
// CHECK: qnn.tanh
func.func @second_use(%arg0: tensor<4xui8>) -> (tensor<4xui8>, tensor<4xui8>) {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  // expected-remark @+1 {{[compose-chain] 'qnn.tanh' needs the result of 'qnn.sigmoid' alone, but it has 2 uses}}
  %1 = "qnn.tanh"(%0) {
    entries = "half_away_divide", input_scale = 0.00390625 : f64, input_zero_point = 0 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %1, %0 : tensor<4xui8>, tensor<4xui8>
}

// CHECK-LABEL: func.func @mismatched_scale(
// CHECK: qnn.sigmoid
// CHECK: qnn.tanh
func.func @mismatched_scale(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  // expected-remark @+1 {{[compose-chain] 'qnn.tanh' input_scale must be 0.00390625, but got 0.5}}
  %1 = "qnn.tanh"(%0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// CHECK-LABEL: func.func @second_use_in_a_diamond(
// CHECK: qnn.sigmoid
// CHECK: qnn.mul
func.func @second_use_in_a_diamond(%arg0: tensor<4xui8>) -> (tensor<4xui8>, tensor<4xui8>) {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  // expected-remark @+1 {{[compose-dag] 'qnn.mul' needs the result of 'qnn.sigmoid' alone, but 'func.return' uses it too}}
  %1 = "qnn.mul"(%arg0, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %1, %0 : tensor<4xui8>, tensor<4xui8>
}

// CHECK-LABEL: func.func @mismatched_diamond(
// CHECK: qnn.sigmoid
// CHECK: qnn.mul
func.func @mismatched_diamond(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  // expected-remark @+1 {{[compose-dag] 'qnn.mul' input_scale must be 0.25, but got 0.5}}
  %1 = "qnn.mul"(%arg0, %0) {
    lhs_scale = 0.25 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// CHECK-LABEL: func.func @two_tensors(
// CHECK: qnn.sigmoid
// CHECK: qnn.mul
func.func @two_tensors(%arg0: tensor<4xui8>, %arg1: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.sigmoid"(%arg1) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  %1 = "qnn.mul"(%arg0, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// CHECK-LABEL: func.func @product_looked_into(
// CHECK: qnn.sigmoid
// CHECK-COUNT-2: qnn.mul
func.func @product_looked_into(%arg0: tensor<4xui8>) -> (tensor<4xui8>, tensor<4xui8>) {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  // expected-remark @+1 {{[compose-dag] 'qnn.mul' needs the result of 'qnn.sigmoid' alone, but 'qnn.mul' uses it too}}
  %1 = "qnn.mul"(%arg0, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  // expected-remark @+1 {{[compose-dag] 'qnn.mul' needs the result of 'qnn.mul' alone, but 'func.return' uses it too}}
  %2 = "qnn.mul"(%1, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %2, %1 : tensor<4xui8>, tensor<4xui8>
}

// CHECK-LABEL: func.func @product_of_other_meaning(
// CHECK: qnn.sigmoid
// CHECK-COUNT-2: qnn.mul
func.func @product_of_other_meaning(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  // expected-remark @+1 {{[compose-dag] 'qnn.mul' needs the result of 'qnn.sigmoid' alone, but 'qnn.mul' uses it too}}
  %1 = "qnn.mul"(%arg0, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  // expected-remark @+1 {{[compose-dag] 'qnn.mul' input_scale must be 0.5, but got 0.25}}
  %2 = "qnn.mul"(%1, %0) {
    lhs_scale = 0.25 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %2 : tensor<4xui8>
}
