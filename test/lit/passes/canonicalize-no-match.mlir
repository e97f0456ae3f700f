// RUN: %qopt %s --qnn-canonicalize --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-canonicalize | filecheck %s

// Covers N1: what keeps the scale may still change quantized values.

// CHECK-LABEL: func.func @moved_zero_point(
// CHECK: qnn.requantize
func.func @moved_zero_point(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  // expected-remark @+1 {{[remove-identity] 'qnn.requantize' keeps the scale but moves the zero point}}
  %0 = "qnn.requantize"(%arg0) {
    axis = 0 : i64, input_scale = 0.5 : f64, input_zero_points = array<i64: 10>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 11 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 1.0>
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @wide_quantized(
// CHECK: qnn.requantize
func.func @wide_quantized(%arg0: tensor<4xi32>) -> tensor<4xi32> {
  // expected-remark @+1 {{[remove-identity] 'qnn.requantize' keeps the parameters, but a 32-bit value may be rounded or saturated on the way}}
  %0 = "qnn.requantize"(%arg0) {
    axis = 0 : i64, input_scale = 0.5 : f64, input_zero_points = array<i64: 10>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 1.0>
  } : (tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// CHECK-LABEL: func.func @new_meaning(
// CHECK: qnn.lut
func.func @new_meaning(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  // expected-remark @+1 {{[remove-identity] 'qnn.lut' keeps every quantized value but changes its scale or zero point}}
  %0 = "qnn.lut"(%arg0) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, output_scale = 0.125 : f64,
    output_zero_point = 11 : i64,
    table = dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF"> : tensor<256xi8>
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @narrow_clip(
// CHECK: qnn.clip
func.func @narrow_clip(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.clip"(%arg0) {max = 254 : i64, min = 0 : i64} : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}
