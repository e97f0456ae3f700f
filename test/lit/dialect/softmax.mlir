// RUN: %roundtrip

// Every arithmetic; the floating ones with parameters of their own.

// CHECK-LABEL: func.func @fixed(
// CHECK: "qnn.softmax"(%arg0) {arithmetic = "tflite_fixed", axis = 1 : i64, beta = 1.000000e+00 : f64,
// CHECK-SAME: input_scale = 5.000000e-01 : f64, output_scale = 3.906250e-03 : f64,
// CHECK-SAME: output_zero_point = -128 : i64
// CHECK-SAME: } : (tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @fixed(%input: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, beta = 1.0 : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// CHECK-LABEL: func.func @fixed_unsigned(
func.func @fixed_unsigned(%input: tensor<2x3xui8>) -> tensor<2x3xui8> {
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    arithmetic = "tflite_fixed"
  } : (tensor<2x3xui8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @float(
func.func @float(%input: tensor<2x3xi8>) -> tensor<2x3xui8> {
  %y = "qnn.softmax"(%input) {
    axis = 0 : i64, input_scale = 0.5 : f64, beta = 2.0 : f64, output_scale = 0.01 : f64, output_zero_point = 7 : i64,
    arithmetic = "float"
  } : (tensor<2x3xi8>) -> tensor<2x3xui8>
  return %y : tensor<2x3xui8>
}

// CHECK-LABEL: func.func @ort_table(
func.func @ort_table(%input: tensor<2x3xui8>) -> tensor<2x3xi8> {
  %y = "qnn.softmax"(%input) {
    axis = 1 : i64, input_scale = 0.5 : f64, output_scale = 0.01 : f64, output_zero_point = -7 : i64,
    arithmetic = "ort_table"
  } : (tensor<2x3xui8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
