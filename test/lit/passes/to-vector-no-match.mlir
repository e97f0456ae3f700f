// RUN: %qopt %s --split-input-file --verify-diagnostics --qnn-to-vector

// expected-error @+1 {{qnn-to-vector: module must be at phase linalg, but is at x86}}
module attributes {qnn.phase = "x86"} {
}

// -----

// What is still an op of a network has no buffers.
func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  // expected-error @+2 {{qnn-to-vector: op was not bufferized}}
  // expected-note @+1 {{see current operation}}
  %0 = "qnn.clip"(%x) {min = 0 : i64, max = 6 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
