// RUN: %qopt %s --qnn-tabulate-unary --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-tabulate-unary | filecheck %s

// What depends on the position or has no 8-bit result is no table of one tensor.

// CHECK-LABEL: func.func @per_channel(
// CHECK: qnn.requantize
func.func @per_channel(%arg0: tensor<4x2xui8>) -> tensor<4x2xui8> {
  // expected-remark @+1 {{[tabulate-requantize] 'qnn.requantize' must have the weight scale 1 and one zero point for the tensor}}
  %0 = "qnn.requantize"(%arg0) {
    axis = 1 : i64, input_scale = 0.5 : f64, input_zero_points = array<i64: 1, 2>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 20 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 1.0>
  } : (tensor<4x2xui8>) -> tensor<4x2xui8>
  return %0 : tensor<4x2xui8>
}

// CHECK-LABEL: func.func @growing(
// CHECK: qnn.add
func.func @growing(%arg0: tensor<2xui8>) -> tensor<4x2xui8> {
  %0 = "qnn.constant"() {value = dense<5> : tensor<4x2xui8>} : () -> tensor<4x2xui8>
  // expected-remark @+1 {{[tabulate-constant-operand] 'qnn.add' must not broadcast the operand that is not a constant}}
  %1 = "qnn.add"(%arg0, %0) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<2xui8>, tensor<4x2xui8>) -> tensor<4x2xui8>
  return %1 : tensor<4x2xui8>
}

// CHECK-LABEL: func.func @wide(
// CHECK: qnn.requantize
func.func @wide(%arg0: tensor<4xui8>) -> tensor<4xi16> {
  %0 = "qnn.requantize"(%arg0) {
    axis = 0 : i64, input_scale = 0.5 : f64, input_zero_points = array<i64: 10>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 20 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 1.0>
  } : (tensor<4xui8>) -> tensor<4xi16>
  return %0 : tensor<4xi16>
}

// CHECK-LABEL: func.func @uneven_constant(
// CHECK: qnn.add
func.func @uneven_constant(%arg0: tensor<2xui8>) -> tensor<2xui8> {
  %0 = "qnn.constant"() {value = dense<[1, 2]> : tensor<2xui8>} : () -> tensor<2xui8>
  %1 = "qnn.add"(%arg0, %0) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  return %1 : tensor<2xui8>
}
