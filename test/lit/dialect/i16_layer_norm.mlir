// RUN: %roundtrip

// Rows, and one row.

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.i16_layer_norm"(%arg0, %arg1, %arg2) {scale = 3.000000e-05 : f64, variance_guard = 2 : i64
// CHECK-SAME: } : (tensor<2x5xi16>, tensor<5xi16>, tensor<5xi32>) -> tensor<2x5xi16>
func.func @rows(%input: tensor<2x5xi16>, %weight: tensor<5xi16>, %bias: tensor<5xi32>) -> tensor<2x5xi16> {
  %y = "qnn.i16_layer_norm"(%input, %weight, %bias) {
    scale = 3.0e-05 : f64, variance_guard = 2 : i64
  } : (tensor<2x5xi16>, tensor<5xi16>, tensor<5xi32>) -> tensor<2x5xi16>
  return %y : tensor<2x5xi16>
}

// CHECK-LABEL: func.func @one_row(
func.func @one_row(%input: tensor<5xi16>, %weight: tensor<5xi16>, %bias: tensor<5xi32>) -> tensor<5xi16> {
  %y = "qnn.i16_layer_norm"(%input, %weight, %bias) {
    scale = 1.0 : f64, variance_guard = 1 : i64
  } : (tensor<5xi16>, tensor<5xi16>, tensor<5xi32>) -> tensor<5xi16>
  return %y : tensor<5xi16>
}
