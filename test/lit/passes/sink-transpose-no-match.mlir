// RUN: %qopt %s --qnn-sink-transpose --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-sink-transpose | filecheck %s

// Covers R5: operands that are not transposed alike stay where they are; a conv is no element-wise op.

// CHECK-LABEL: func.func @different(
// CHECK: qnn.transpose
// CHECK: qnn.transpose
// CHECK: qnn.add
func.func @different(%arg0: tensor<1x4x4x4xui8>, %arg1: tensor<1x4x4x4xui8>) -> tensor<1x4x4x4xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x4x4x4xui8>) -> tensor<1x4x4x4xui8>
  %1 = "qnn.transpose"(%arg1) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x4xui8>) -> tensor<1x4x4x4xui8>
  // expected-remark @+1 {{[sink-through-binary] 'qnn.add' must have operands transposed alike, but got [[0, 2, 3, 1], [0, 3, 1, 2]]}}
  %2 = "qnn.add"(%0, %1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x4xui8>, tensor<1x4x4x4xui8>) -> tensor<1x4x4x4xui8>
  return %2 : tensor<1x4x4x4xui8>
}

// CHECK-LABEL: func.func @one_alone(
// CHECK: qnn.transpose
// CHECK: qnn.add
func.func @one_alone(%arg0: tensor<1x4x4x4xui8>, %arg1: tensor<1x4x4x4xui8>) -> tensor<1x4x4x4xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x4x4x4xui8>) -> tensor<1x4x4x4xui8>
  // expected-remark @+1 {{[sink-through-binary] 'qnn.add' must have all operands transposed or constant, of one rank}}
  %1 = "qnn.add"(%0, %arg1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x4xui8>, tensor<1x4x4x4xui8>) -> tensor<1x4x4x4xui8>
  return %1 : tensor<1x4x4x4xui8>
}

// CHECK-LABEL: func.func @constant_of_another_rank(
// CHECK: qnn.transpose
// CHECK: qnn.add
func.func @constant_of_another_rank(%arg0: tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  %1 = "qnn.constant"() {value = dense<[1, 2]> : tensor<2xui8>} : () -> tensor<2xui8>
  // expected-remark @+1 {{[sink-through-binary] 'qnn.add' must have all operands transposed or constant, of one rank}}
  %2 = "qnn.add"(%0, %1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<2xui8>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @conv(
// CHECK: qnn.transpose
// CHECK: qnn.conv2d
func.func @conv(%arg0: tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xi32> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %2 = "qnn.conv2d"(%0, %1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  return %2 : tensor<1x4x4x2xi32>
}

// CHECK-LABEL: func.func @accumulators(
// CHECK: qnn.dequantize
// CHECK: qnn.transpose
func.func @accumulators(%arg0: tensor<1x4x4x2xi32>) -> tensor<1x2x4x4xf32> {
  %0 = "qnn.dequantize"(%arg0) {scales = array<f64: 0.5>, zero_points = array<i64: 0>}
    : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xf32>
  // expected-remark @+1 {{[hoist-above-dequantize] 'qnn.transpose' must move values of 8 or 16 bits, but got i32}}
  %1 = "qnn.transpose"(%0) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xf32>) -> tensor<1x2x4x4xf32>
  return %1 : tensor<1x2x4x4xf32>
}

// CHECK-LABEL: func.func @channels(
// CHECK: qnn.dequantize
// CHECK: qnn.reshape
func.func @channels(%arg0: tensor<4x2xi8>) -> tensor<8xf32> {
  %0 = "qnn.dequantize"(%arg0) {axis = 1 : i64, scales = array<f64: 0.5, 0.25>, zero_points = array<i64: 0>}
    : (tensor<4x2xi8>) -> tensor<4x2xf32>
  // expected-remark @+1 {{[hoist-above-dequantize] 'qnn.reshape' must move values of one scale and zero point}}
  %1 = "qnn.reshape"(%0) {shape = array<i64: 8>} : (tensor<4x2xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @larger(
// CHECK: qnn.transpose
// CHECK: qnn.pad
func.func @larger(%arg0: tensor<1x2x4x4xui8>) -> tensor<1x5x6x5xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  // expected-remark @+1 {{[sink-through-unary] 'qnn.pad' a larger result must be read by what the transpose moves past, or by a transpose}}
  %1 = "qnn.pad"(%0) {
    high = array<i64: 0, 0, 0, 0>, low = array<i64: 0, 1, 2, 3>, value = 9 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x5x6x5xui8>
  return %1 : tensor<1x5x6x5xui8>
}

// CHECK-LABEL: func.func @heads(
// CHECK: qnn.transpose
// CHECK: qnn.reshape
// CHECK: qnn.transpose
func.func @heads(%arg0: tensor<1x4x2x6xf32>) -> tensor<1x24x2xf32> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x4x2x6xf32>) -> tensor<1x2x4x6xf32>
  // expected-remark @+1 {{[sink-through-reshape] 'qnn.reshape' must join dimensions that lie side by side before the transpose}}
  %1 = "qnn.reshape"(%0) {shape = array<i64: 1, 2, 24>} : (tensor<1x2x4x6xf32>) -> tensor<1x2x24xf32>
  %2 = "qnn.transpose"(%1) {permutation = array<i64: 0, 2, 1>} : (tensor<1x2x24xf32>) -> tensor<1x24x2xf32>
  return %2 : tensor<1x24x2xf32>
}

// CHECK-LABEL: func.func @along_rows(
// CHECK: qnn.transpose
// CHECK: qnn.f32_max
func.func @along_rows(%arg0: tensor<3x5x16xf32>) -> tensor<5x8x3xf32> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 1, 2, 0>} : (tensor<3x5x16xf32>) -> tensor<5x16x3xf32>
  // expected-remark @+1 {{[sink-through-unary] 'qnn.gather' a larger result must be read by what the transpose moves past, or by a transpose}}
  %1 = "qnn.gather"(%0) {axis = 1 : i64, indices = array<i64: 0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9, 10, 11, 11, 12, 13, 13, 14, 15, 15>}
    : (tensor<5x16x3xf32>) -> tensor<5x24x3xf32>
  %2 = "qnn.reshape"(%1) {shape = array<i64: 5, 8, 3, 3>} : (tensor<5x24x3xf32>) -> tensor<5x8x3x3xf32>
  // expected-remark @+1 {{[sink-through-windows] 'qnn.f32_max' must have fewer windows than elements, across rows of at least 16}}
  %3 = "qnn.f32_max"(%2) {axes = array<i64: 2>} : (tensor<5x8x3x3xf32>) -> tensor<5x8x3xf32>
  return %3 : tensor<5x8x3xf32>
}
