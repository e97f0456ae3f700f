// RUN: %qopt %s --qnn-raise-qdq --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-raise-qdq | filecheck %s

// Covers R4: a float region that no integer op stands for stays as it is.

// CHECK-LABEL: func.func @uneven_constant(
// CHECK: arith.mulf
func.func @uneven_constant(%arg0: tensor<2xui8>) -> tensor<2xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<2xui8>) -> tensor<2xf32>
  %1 = "qnn.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %2 = arith.mulf %0, %1 : tensor<2xf32>
  // expected-remark @+1 {{[raise-to-table] 'qnn.quantize' must depend on constants with equal elements alone, but the elements of one differ}}
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<2xf32>) -> tensor<2xui8>
  return %3 : tensor<2xui8>
}

// CHECK-LABEL: func.func @per_channel(
// CHECK: math.tanh
func.func @per_channel(%arg0: tensor<4x2xui8>) -> tensor<4x2xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 1 : i64, scales = array<f64: 0.5, 0.25>, zero_points = array<i64: 0, 0>
  } : (tensor<4x2xui8>) -> tensor<4x2xf32>
  %1 = math.tanh %0 : tensor<4x2xf32>
  // expected-remark @+1 {{[raise-to-table] 'qnn.quantize' must have one scale and one zero point for each tensor}}
  %2 = "qnn.quantize"(%1) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4x2xf32>) -> tensor<4x2xui8>
  return %2 : tensor<4x2xui8>
}

// CHECK-LABEL: func.func @run_time_float(
// CHECK: arith.mulf
func.func @run_time_float(%arg0: tensor<4xui8>, %arg1: tensor<4xf32>) -> tensor<4xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %1 = arith.mulf %0, %arg1 : tensor<4xf32>
  // expected-remark @+1 {{[raise-to-table] 'qnn.quantize' must depend on dequantized values through element-wise float ops alone, but there is a function argument}}
  %2 = "qnn.quantize"(%1) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4xf32>) -> tensor<4xui8>
  return %2 : tensor<4xui8>
}

// CHECK-LABEL: func.func @other_float_op(
// CHECK: math.tan
func.func @other_float_op(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %1 = math.tan %0 : tensor<4xf32>
  %2 = math.tanh %1 : tensor<4xf32>
  // expected-remark @+1 {{[raise-to-table] 'qnn.quantize' must depend on dequantized values through element-wise float ops alone, but there is 'math.tan'}}
  %3 = "qnn.quantize"(%2) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4xf32>) -> tensor<4xui8>
  return %3 : tensor<4xui8>
}

// CHECK-LABEL: func.func @accumulators(
// CHECK: math.tanh
func.func @accumulators(%arg0: tensor<4xi32>) -> tensor<4xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xi32>) -> tensor<4xf32>
  %1 = math.tanh %0 : tensor<4xf32>
  // expected-remark @+1 {{[raise-to-table] 'qnn.quantize' must quantize to 8 bits what was dequantized from 8 bits}}
  %2 = "qnn.quantize"(%1) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4xf32>) -> tensor<4xui8>
  return %2 : tensor<4xui8>
}

// CHECK-LABEL: func.func @three_tensors(
// CHECK: arith.addf
func.func @three_tensors(%arg0: tensor<4xui8>, %arg1: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %1 = "qnn.dequantize"(%arg1) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %2 = arith.addf %0, %1 : tensor<4xf32>
  %3 = "qnn.clip"(%arg0) {max = 9 : i64, min = 3 : i64} : (tensor<4xui8>) -> tensor<4xui8>
  %4 = "qnn.dequantize"(%3) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %5 = arith.addf %2, %4 : tensor<4xf32>
  // expected-remark @+1 {{[raise-to-binary] 'qnn.quantize' must depend on one or two dequantized tensors, but got 3}}
  %6 = "qnn.quantize"(%5) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4xf32>) -> tensor<4xui8>
  return %6 : tensor<4xui8>
}

// CHECK-LABEL: func.func @no_integer_op(
// CHECK: arith.addf
func.func @no_integer_op(%arg0: tensor<4xui8>, %arg1: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.dequantize"(%arg0) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %1 = "qnn.dequantize"(%arg1) {
    axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 10>
  } : (tensor<4xui8>) -> tensor<4xf32>
  %2 = math.absf %1 : tensor<4xf32>
  %3 = arith.addf %0, %2 : tensor<4xf32>
  // expected-remark @+1 {{[raise-to-binary] 'qnn.quantize' must equal an integer add or mul on all 65536 pairs of quantized values, but the closest misses}}
  %4 = "qnn.quantize"(%3) {
    axis = 0 : i64, nan = "zero_point", rounding = "half_even", scales = array<f64: 0.25>, scaling = "divide",
    zero_points = array<i64: 100>
  } : (tensor<4xf32>) -> tensor<4xui8>
  return %4 : tensor<4xui8>
}
