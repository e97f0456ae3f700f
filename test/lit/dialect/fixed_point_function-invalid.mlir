// RUN: %qopt %s --split-input-file --verify-diagnostics

func.func @fixed_point_function_c1(%input: tensor<2x5xi16>) {
  // expected-error @+1 {{'qnn.fixed_point_function' op integer_bits must be in [0, 6], but got 7}}
  %y = "qnn.fixed_point_function"(%input) {function = "tanh", integer_bits = 7 : i64}
    : (tensor<2x5xi16>) -> tensor<2x5xi16>
  return
}
