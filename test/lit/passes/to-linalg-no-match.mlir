// RUN: %qopt %s --split-input-file --verify-diagnostics --qnn-to-linalg=target=generic
// RUN: not %qopt %s --qnn-to-linalg=target=z80 2>&1 | filecheck %s

// CHECK: error: qnn-to-linalg: target must be one of host, {{.*}}, but got 'z80'

func.func @main(%x: tensor<1x3x3x2xi8>, %w: tensor<4x2x2x2xi8>) -> tensor<1x4x4x4xi32> {
  // expected-error @+1 {{qnn-to-linalg: 'qnn.conv_transpose2d' op weight must be a constant to be compiled, but got a}}
  %0 = "qnn.conv_transpose2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 3 : i64,
    weight_scales = array<f64: 0.25>, weight_zero_points = array<i64: 0>
  } : (tensor<1x3x3x2xi8>, tensor<4x2x2x2xi8>) -> tensor<1x4x4x4xi32>
  return %0 : tensor<1x4x4x4xi32>
}

// -----

// expected-error @+1 {{qnn-to-linalg: module must be at phase qnn or fused, but is at vector}}
module attributes {qnn.phase = "vector"} {
}

// -----

// expected-error @+1 {{must be at phase qnn or fused, but is at linalg or vector or x86; no pass leads back}}
module {
  func.func @main(%x: memref<4xi8>, %y: memref<4xi8>) {
    memref.copy %x, %y : memref<4xi8> to memref<4xi8>
    return
  }
}
