// RUN: %roundtrip

// Per tensor and per channel, several input types.

// CHECK-LABEL: func.func @per_tensor(
// CHECK: "qnn.dequantize"(%arg0) {axis = 0 : i64, scales = array<f64: 5.000000e-01>,
// CHECK-SAME: zero_points = array<i64: 3>
// CHECK-SAME: } : (tensor<2x3xi8>) -> tensor<2x3xf32>
func.func @per_tensor(%input: tensor<2x3xi8>) -> tensor<2x3xf32> {
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @per_channel(
func.func @per_channel(%input: tensor<2x3xi8>) -> tensor<2x3xf32> {
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5, 0.25, 2.0>, zero_points = array<i64: 1, 2, 3>, axis = 1 : i64
  } : (tensor<2x3xi8>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%input: tensor<2x3xui8>) -> tensor<2x3xf32> {
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>
  } : (tensor<2x3xui8>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @sixteen_unsigned_bits(
func.func @sixteen_unsigned_bits(%input: tensor<2x3xui16>) -> tensor<2x3xf32> {
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 65535>
  } : (tensor<2x3xui16>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @accumulators(
func.func @accumulators(%input: tensor<2x3xi32>) -> tensor<2x3xf32> {
  %y = "qnn.dequantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 0>
  } : (tensor<2x3xi32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%input: tensor<i8>) -> tensor<f32> {
  %y = "qnn.dequantize"(%input) {scales = array<f64: 0.5>, zero_points = array<i64: 3>} : (tensor<i8>) -> tensor<f32>
  return %y : tensor<f32>
}
