// RUN: %roundtrip

// CHECK-LABEL: func.func @gate(
// CHECK: "qnn.fixed_point_function"(%arg0) {function = "sigmoid", integer_bits = 3 : i64}
func.func @gate(%input: tensor<2x5xi16>) -> tensor<2x5xi16> {
  %y = "qnn.fixed_point_function"(%input) {function = "sigmoid", integer_bits = 3 : i64}
    : (tensor<2x5xi16>) -> tensor<2x5xi16>
  return %y : tensor<2x5xi16>
}
