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
// CHECK: "qnn.quantize"(%arg0) {axis = 1 : i64, nan = "zero_point", rounding = "half_even",
// CHECK-SAME: scales = array<f64: 5.000000e-01, 2.500000e-01, 2.000000e+00>, scaling = "divide",
// CHECK-SAME: zero_points = array<i64: 1, 2, -3>
// CHECK-SAME: } : (tensor<2x3xf32>) -> tensor<2x3xi8>
func.func @per_channel(%input: tensor<2x3xf32>) -> tensor<2x3xi8> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5, 0.25, 2.0>, zero_points = array<i64: 1, 2, -3>, axis = 1 : i64,
    rounding = "half_even", scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @unsigned(
// CHECK: "qnn.quantize"(%arg0) {axis = 0 : i64, nan = "max", rounding = "half_away",
// CHECK-SAME: scales = array<f64: 5.000000e-01>, scaling = "reciprocal", zero_points = array<i64: 255>
// CHECK-SAME: } : (tensor<2x3xf32>) -> tensor<2x3xui8>
func.func @unsigned(%input: tensor<2x3xf32>) -> tensor<2x3xui8> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 255>, axis = 0 : i64, rounding = "half_away",
    scaling = "reciprocal", nan = "max"
  } : (tensor<2x3xf32>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @wide(
// CHECK: "qnn.quantize"(%arg0) {axis = 0 : i64, nan = "min", rounding = "half_up",
// CHECK-SAME: scales = array<f64: 5.000000e-01>, scaling = "divide", zero_points = array<i64: 0>
// CHECK-SAME: } : (tensor<2x3xf32>) -> tensor<2x3xi32>
func.func @wide(%input: tensor<2x3xf32>) -> tensor<2x3xi32> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 0>, axis = 0 : i64, rounding = "half_up",
    scaling = "divide", nan = "min"
  } : (tensor<2x3xf32>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

// CHECK-LABEL: func.func @sixteen_bits(
// CHECK: "qnn.quantize"(%arg0) {axis = 0 : i64, nan = "zero_point", rounding = "half_even",
// CHECK-SAME: scales = array<f64: 5.000000e-01>, scaling = "divide", zero_points = array<i64: -32768>
// CHECK-SAME: } : (tensor<2x3xf32>) -> tensor<2x3xi16>
func.func @sixteen_bits(%input: tensor<2x3xf32>) -> tensor<2x3xi16> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: -32768>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi16>
  return %y : tensor<2x3xi16>
}

// CHECK-LABEL: func.func @sixteen_unsigned_bits(
// CHECK: "qnn.quantize"(%arg0) {axis = 0 : i64, nan = "zero_point", rounding = "half_even",
// CHECK-SAME: scales = array<f64: 5.000000e-01>, scaling = "divide", zero_points = array<i64: 65535>
// CHECK-SAME: } : (tensor<2x3xf32>) -> tensor<2x3xui16>
func.func @sixteen_unsigned_bits(%input: tensor<2x3xf32>) -> tensor<2x3xui16> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 65535>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xui16>
  return %y : tensor<2x3xui16>
}

// CHECK-LABEL: func.func @scalar(
// CHECK: "qnn.quantize"(%arg0) {axis = 0 : i64, nan = "zero_point", rounding = "half_even",
// CHECK-SAME: scales = array<f64: 5.000000e-01>, scaling = "divide", zero_points = array<i64: 3>
// CHECK-SAME: } : (tensor<f32>) -> tensor<i8>
func.func @scalar(%input: tensor<f32>) -> tensor<i8> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 0.5>, zero_points = array<i64: 3>, axis = 0 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<f32>) -> tensor<i8>
  return %y : tensor<i8>
}

// CHECK-LABEL: func.func @tiny_channel_scale(
// CHECK: "qnn.quantize"(%arg0) {axis = 1 : i64, nan = "zero_point", rounding = "half_even",
// CHECK-SAME: scales = array<f64: 1.000000e+00, 1.000000e-300, 1.000000e+00>, scaling = "divide",
// CHECK-SAME: zero_points = array<i64: 3>
// CHECK-SAME: } : (tensor<2x3xf32>) -> tensor<2x3xi8>
func.func @tiny_channel_scale(%input: tensor<2x3xf32>) -> tensor<2x3xi8> {
  %y = "qnn.quantize"(%input) {
    scales = array<f64: 1.0, 1.0e-300, 1.0>, zero_points = array<i64: 3>, axis = 1 : i64, rounding = "half_even",
    scaling = "divide", nan = "zero_point"
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
