// RUN: %qopt %s --qnn-compose-luts | filecheck %s

// Chains and diamonds of functions of one 8-bit tensor become one table; a clamp stays a clip, an identity is nothing.

// CHECK-LABEL: func.func @chain(
// CHECK-NOT: qnn.requantize
// CHECK: "qnn.lut"(%arg0) {input_scale = 5.000000e-01
// CHECK-NOT: qnn.
// CHECK: return
func.func @chain(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.requantize"(%arg0) {
    axis = 0 : i64, input_scale = 0.5 : f64, input_zero_points = array<i64: 10>, multiplier = "f64",
    output_scale = 0.25 : f64, output_zero_point = 20 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 1.0>
  } : (tensor<4xui8>) -> tensor<4xi8>
  %1 = "qnn.sigmoid"(%0) {
    entries = "half_away_divide", input_scale = 0.25 : f64, input_zero_point = 20 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xi8>) -> tensor<4xui8>
  %2 = "qnn.clip"(%1) {max = 250 : i64, min = 3 : i64} : (tensor<4xui8>) -> tensor<4xui8>
  %3 = "qnn.tanh"(%2) {
    entries = "half_away_divide", input_scale = 0.00390625 : f64, input_zero_point = 0 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %3 : tensor<4xui8>
}

// CHECK-LABEL: func.func @swish(
// CHECK-NOT: qnn.sigmoid
// CHECK: "qnn.lut"(%arg0)
// CHECK-NOT: qnn.mul
// CHECK: return
func.func @swish(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  %1 = "qnn.mul"(%arg0, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// CHECK-LABEL: func.func @clamp(
// CHECK-NOT: qnn.lut
// CHECK: "qnn.clip"(%arg0) {max = 200 : i64, min = 20 : i64}
func.func @clamp(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.lut"(%arg0) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    table = dense<"0x14141414141414141414141414141414141414141415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8C8"> : tensor<256xi8>
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @identity(
// CHECK-NOT: qnn.lut
// CHECK: return %arg0
func.func @identity(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.lut"(%arg0) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    table = dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF"> : tensor<256xi8>
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @undone(
// CHECK-NOT: qnn.
// CHECK: return %arg0
func.func @undone(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.lut"(%arg0) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, output_scale = 0.125 : f64,
    output_zero_point = 11 : i64,
    table = dense<"0xFFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0DFDEDDDCDBDAD9D8D7D6D5D4D3D2D1D0CFCECDCCCBCAC9C8C7C6C5C4C3C2C1C0BFBEBDBCBBBAB9B8B7B6B5B4B3B2B1B0AFAEADACABAAA9A8A7A6A5A4A3A2A1A09F9E9D9C9B9A999897969594939291908F8E8D8C8B8A898887868584838281807F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A595857565554535251504F4E4D4C4B4A494847464544434241403F3E3D3C3B3A393837363534333231302F2E2D2C2B2A292827262524232221201F1E1D1C1B1A191817161514131211100F0E0D0C0B0A09080706050403020100"> : tensor<256xi8>
  } : (tensor<4xui8>) -> tensor<4xui8>
  %1 = "qnn.lut"(%0) {
    input_scale = 0.125 : f64, input_zero_point = 11 : i64, output_scale = 0.5 : f64,
    output_zero_point = 10 : i64,
    table = dense<"0xFFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0DFDEDDDCDBDAD9D8D7D6D5D4D3D2D1D0CFCECDCCCBCAC9C8C7C6C5C4C3C2C1C0BFBEBDBCBBBAB9B8B7B6B5B4B3B2B1B0AFAEADACABAAA9A8A7A6A5A4A3A2A1A09F9E9D9C9B9A999897969594939291908F8E8D8C8B8A898887868584838281807F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A595857565554535251504F4E4D4C4B4A494847464544434241403F3E3D3C3B3A393837363534333231302F2E2D2C2B2A292827262524232221201F1E1D1C1B1A191817161514131211100F0E0D0C0B0A09080706050403020100"> : tensor<256xi8>
  } : (tensor<4xui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// Both products read the gate, so that neither alone has all its users.

// CHECK-LABEL: func.func @shared_gate(
// CHECK-NOT: qnn.sigmoid
// CHECK: "qnn.lut"(%arg0) {input_scale = 5.000000e-01 : f64, input_zero_point = 10 : i64
// CHECK-NOT: qnn.mul
// CHECK: return
func.func @shared_gate(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  %1 = "qnn.mul"(%arg0, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %2 = "qnn.mul"(%1, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64", output_max = 255 : i64,
    output_min = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64,
    rhs_zero_point = 0 : i64, rounding = "f32_rne_zp_last"
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %2 : tensor<4xui8>
}

// CHECK-LABEL: func.func @larger_of_both(
// CHECK-NOT: qnn.maximum
// CHECK: "qnn.lut"(%arg0)
// CHECK-NOT: qnn.
// CHECK: return
func.func @larger_of_both(%arg0: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "qnn.sigmoid"(%arg0) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<4xui8>) -> tensor<4xui8>
  %1 = "qnn.maximum"(%arg0, %0) {
    lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, output_max = 255 : i64, output_min = 0 : i64,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rhs_scale = 0.00390625 : f64, rhs_zero_point = 0 : i64
  } : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}
