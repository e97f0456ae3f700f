// RUN: %qopt %s --split-input-file --verify-diagnostics --qnn-to-linalg=target=generic
// RUN: not %qopt %s --qnn-to-linalg=target=z80 2>&1 | filecheck %s

// CHECK: error: qnn-to-linalg: target must be one of host, {{.*}}, but got 'z80'

func.func @main(%x: tensor<4x64xi8>, %w: tensor<32x64xi8>) -> tensor<4x32xi32> {
  // expected-error @+1 {{qnn-to-linalg: 'qnn.dense' op weight must be a constant to be compiled, but got a value that}}
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 0>
  } : (tensor<4x64xi8>, tensor<32x64xi8>) -> tensor<4x32xi32>
  return %0 : tensor<4x32xi32>
}

// -----

// expected-error @+1 {{qnn-to-linalg: module must be at phase qnn or fused, but is at vector}}
module attributes {qnn.phase = "vector"} {
}
