// RUN: %roundtrip

// CHECK-LABEL: func.func @same_shape(
// CHECK: "qnn.div"(%arg0, %arg1) {arithmetic = "tflite_fixed", lhs_scale = 5.000000e-01 : f64,
// CHECK-SAME: lhs_zero_point = 3 : i64, output_max = 127 : i64, output_min = -128 : i64,
// CHECK-SAME: output_scale = 7.500000e-01 : f64, output_zero_point = 5 : i64, rhs_scale = 2.500000e-01 : f64,
// CHECK-SAME: rhs_zero_point = -4 : i64
// CHECK-SAME: } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
func.func @same_shape(%lhs: tensor<2x3xi8>, %rhs: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = "qnn.div"(%lhs, %rhs) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.25 : f64, rhs_zero_point = -4 : i64,
    output_scale = 0.75 : f64, output_zero_point = 5 : i64, output_min = -128 : i64, output_max = 127 : i64,
    arithmetic = "tflite_fixed"
  } : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}
