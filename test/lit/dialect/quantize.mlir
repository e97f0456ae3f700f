// RUN: %roundtrip

// Per tensor and per channel, every result type, every rounding.

// CHECK-LABEL: func.func @per_tensor(
// CHECK: "qnn.quantize"(%arg0) {axis = 0 : i64, nan = "zero_point", rounding = "half_even",
// CHECK-SAME: scales = array<f64: 5.000000e-01>, scaling = "divide", zero_points = array<i64: 3>
// CHECK-SAME: } : (tensor<2x3xf32>) -> tensor<2x3xi8>
func.func @per_tensor(%input: tensor<2x3xf32>) -> tensor<2x3xi8> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @per_channel(
func.func @per_channel(%input: tensor<2x3xf32>) -> tensor<2x3xi8> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5, 0.25, 2.0>, zero_points = array<i64: 1, 2, -3>, axis = 1 : i64
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%input: tensor<2x3xf32>) -> tensor<2x3xui8> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 255>, rounding = "half_away", scaling = "reciprocal",
    nan = "max"
  } : (tensor<2x3xf32>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @wide(
func.func @wide(%input: tensor<2x3xf32>) -> tensor<2x3xi32> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 0>, rounding = "half_up", nan = "min"
  } : (tensor<2x3xf32>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

// CHECK-LABEL: func.func @sixteen_bits(
func.func @sixteen_bits(%input: tensor<2x3xf32>) -> tensor<2x3xi16> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: -32768>
  } : (tensor<2x3xf32>) -> tensor<2x3xi16>
  return %y : tensor<2x3xi16>
}

// CHECK-LABEL: func.func @sixteen_unsigned_bits(
func.func @sixteen_unsigned_bits(%input: tensor<2x3xf32>) -> tensor<2x3xui16> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 65535>
  } : (tensor<2x3xf32>) -> tensor<2x3xui16>
  return %y : tensor<2x3xui16>
}

// CHECK-LABEL: func.func @scalar(
func.func @scalar(%input: tensor<f32>) -> tensor<i8> {
  %y = "qnn.quantize"(%input) {scales = array<f64: 0.5>, zero_points = array<i64: 3>} : (tensor<f32>) -> tensor<i8>
  return %y : tensor<i8>
}

// CHECK-LABEL: func.func @tiny_channel_scale(
func.func @tiny_channel_scale(%input: tensor<2x3xf32>) -> tensor<2x3xi8> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 1.0, 1.0e-300, 1.0>, zero_points = array<i64: 3>, axis = 1 : i64
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
