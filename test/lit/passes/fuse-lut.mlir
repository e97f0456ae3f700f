// RUN: %qopt %s --qnn-fuse-lut | filecheck %s

// Covers R1, R2: the table becomes the last stage of the kernel, with its own parameters; input and output types may differ.

// CHECK-LABEL: func.func @conv(
// CHECK-NOT: qnn.lut
// CHECK: qnn.fused_conv2d
// CHECK-SAME: epilogue = [{requantize = {element = ui8, rounding = "fixed64_up", scale = 5.000000e-01 : f64, zero_point = 10 : i64}},
// CHECK-SAME: {lut = {table = dense<"0xFFFEFDFC
// CHECK-SAME: output_scale = 1.250000e-01 : f64, output_zero_point = 11 : i64
// CHECK-SAME: -> tensor<1x4x4x2xi8>
func.func @conv(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.lut"(%2) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, output_scale = 0.125 : f64,
    output_zero_point = 11 : i64,
    table = dense<"0xFFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0DFDEDDDCDBDAD9D8D7D6D5D4D3D2D1D0CFCECDCCCBCAC9C8C7C6C5C4C3C2C1C0BFBEBDBCBBBAB9B8B7B6B5B4B3B2B1B0AFAEADACABAAA9A8A7A6A5A4A3A2A1A09F9E9D9C9B9A999897969594939291908F8E8D8C8B8A898887868584838281807F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A595857565554535251504F4E4D4C4B4A494847464544434241403F3E3D3C3B3A393837363534333231302F2E2D2C2B2A292827262524232221201F1E1D1C1B1A191817161514131211100F0E0D0C0B0A09080706050403020100"> : tensor<256xi8>
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi8>
  return %3 : tensor<1x4x4x2xi8>
}

// CHECK-LABEL: func.func @second_table(
// CHECK-NOT: qnn.lut
// CHECK: qnn.fused_conv2d
// CHECK-SAME: {lut = {table = dense<"0x00010203
func.func @second_table(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}},
      {lut = {table = dense<"0xFFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0DFDEDDDCDBDAD9D8D7D6D5D4D3D2D1D0CFCECDCCCBCAC9C8C7C6C5C4C3C2C1C0BFBEBDBCBBBAB9B8B7B6B5B4B3B2B1B0AFAEADACABAAA9A8A7A6A5A4A3A2A1A09F9E9D9C9B9A999897969594939291908F8E8D8C8B8A898887868584838281807F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A595857565554535251504F4E4D4C4B4A494847464544434241403F3E3D3C3B3A393837363534333231302F2E2D2C2B2A292827262524232221201F1E1D1C1B1A191817161514131211100F0E0D0C0B0A09080706050403020100"> : tensor<256xi8>}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  %3 = "qnn.lut"(%2) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, output_scale = 0.125 : f64,
    output_zero_point = 11 : i64,
    table = dense<"0xFFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0DFDEDDDCDBDAD9D8D7D6D5D4D3D2D1D0CFCECDCCCBCAC9C8C7C6C5C4C3C2C1C0BFBEBDBCBBBAB9B8B7B6B5B4B3B2B1B0AFAEADACABAAA9A8A7A6A5A4A3A2A1A09F9E9D9C9B9A999897969594939291908F8E8D8C8B8A898887868584838281807F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A595857565554535251504F4E4D4C4B4A494847464544434241403F3E3D3C3B3A393837363534333231302F2E2D2C2B2A292827262524232221201F1E1D1C1B1A191817161514131211100F0E0D0C0B0A09080706050403020100"> : tensor<256xi8>
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}
