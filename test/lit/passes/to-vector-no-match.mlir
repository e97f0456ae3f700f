// RUN: %qopt %s --split-input-file --verify-diagnostics --qnn-to-vector

// expected-error @+1 {{qnn-to-vector: module must be at phase linalg, but is at x86; no pass leads back}}
module attributes {qnn.phase = "x86"} {
}

// -----

// A network whose phase is not written, but seen.
// expected-error @+1 {{qnn-to-vector: module must be at phase linalg, but is at qnn or fused; run qnn-to-linalg before}}
module {
func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = "qnn.clip"(%x) {min = 0 : i64, max = 6 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
}
