// RUN: %qopt %s --split-input-file --verify-diagnostics

// What all ops that keep the element type share, on one of them.

func.func @same_element_c1(%input: tensor<2x3xi8>) {
  // expected-error @+1 {{'qnn.reshape' op result element type must be i8, but got ui8}}
  %y = "qnn.reshape"(%input) {shape = array<i64: 3, 2>} : (tensor<2x3xi8>) -> tensor<3x2xui8>
  return
}
