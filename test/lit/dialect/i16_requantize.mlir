// RUN: %roundtrip

// CHECK-LABEL: func.func @by_channel(
// CHECK: "qnn.i16_requantize"(%arg0)
// CHECK-SAME: input_scale = 5.000000e-01 : f64, multiplier = "f64", output_max = 32767 : i64, output_min = 0 : i64
// CHECK-SAME: output_scale = 2.500000e-01 : f64, output_zero_point = -9 : i64, rounding = "fixed16_up"
// CHECK-SAME: weight_scales = array<f64: 1.000000e-03, 2.000000e-03, 3.000000e-03>
// CHECK-SAME: (tensor<2x3xi64>) -> tensor<2x3xi16>
func.func @by_channel(%acc: tensor<2x3xi64>) -> tensor<2x3xi16> {
  %y = "qnn.i16_requantize"(%acc) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.001, 0.002, 0.003>, output_scale = 0.25 : f64,
    output_zero_point = -9 : i64, output_min = 0 : i64, output_max = 32767 : i64, rounding = "fixed16_up", multiplier = "f64"
  } : (tensor<2x3xi64>) -> tensor<2x3xi16>
  return %y : tensor<2x3xi16>
}

// CHECK-LABEL: func.func @of_32_bits(
// CHECK: "qnn.i16_requantize"(%arg0)
// CHECK-SAME: output_zero_point = 0 : i64, rounding = "fixed32_double"
// CHECK-SAME: (tensor<2x3xi32>) -> tensor<2x3xi16>
func.func @of_32_bits(%acc: tensor<2x3xi32>) -> tensor<2x3xi16> {
  %y = "qnn.i16_requantize"(%acc) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.001>, output_scale = 0.25 : f64, output_zero_point = 0 : i64,
    output_min = -32768 : i64, output_max = 32767 : i64, rounding = "fixed32_double", multiplier = "f64"
  } : (tensor<2x3xi32>) -> tensor<2x3xi16>
  return %y : tensor<2x3xi16>
}
