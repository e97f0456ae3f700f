// RUN: %roundtrip

// Either signedness, one row.

// CHECK-LABEL: func.func @rows(
// CHECK: "qnn.l2_normalize"(%arg0) {input_zero_point = 3 : i64
// CHECK-SAME: } : (tensor<2x3x4xi8>) -> tensor<2x3x4xi8>
func.func @rows(%input: tensor<2x3x4xi8>) -> tensor<2x3x4xi8> {
  %y = "qnn.l2_normalize"(%input) {
    input_zero_point = 3 : i64
  } : (tensor<2x3x4xi8>) -> tensor<2x3x4xi8>
  return %y : tensor<2x3x4xi8>
}

// CHECK-LABEL: func.func @unsigned(
func.func @unsigned(%input: tensor<2x3x4xui8>) -> tensor<2x3x4xui8> {
  %y = "qnn.l2_normalize"(%input) {input_zero_point = 255 : i64} : (tensor<2x3x4xui8>) -> tensor<2x3x4xui8>
  return %y : tensor<2x3x4xui8>
}

// CHECK-LABEL: func.func @one_row(
func.func @one_row(%input: tensor<4xi8>) -> tensor<4xi8> {
  %y = "qnn.l2_normalize"(%input) {input_zero_point = 3 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return %y : tensor<4xi8>
}
