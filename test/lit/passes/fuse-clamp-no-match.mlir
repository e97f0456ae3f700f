// RUN: %qopt %s --qnn-fuse-clamp --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-fuse-clamp | filecheck %s

// Covers R12: a second use, a mismatched scale, a relu that also rescales and a clamp after the table stay.

// CHECK-LABEL: func.func @second_use(
// CHECK: qnn.clip
func.func @second_use(%arg0: tensor<1x4x4x2xui8>) -> (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  // expected-remark @+1 {{[fuse-clamp] 'qnn.clip' needs the result of 'qnn.fused_conv2d' alone, but it has 2 uses}}
  %3 = "qnn.clip"(%2) {max = 90 : i64, min = 20 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3, %2 : tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @mismatched_scale(
// CHECK: qnn.relu
func.func @mismatched_scale(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  // expected-remark @+1 {{[fuse-clamp] 'qnn.relu' input_scale must be 0.5, but got 0.25}}
  %3 = "qnn.relu"(%2) {
    entries = "half_away_divide", input_scale = 0.25 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.25 : f64, output_zero_point = 10 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @mismatched_zero_point(
// CHECK: qnn.relu
func.func @mismatched_zero_point(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.add"(%arg0, %arg1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  // expected-remark @+1 {{[fuse-clamp] 'qnn.relu' input_zero_point must be 20, but got 10}}
  %1 = "qnn.relu"(%0) {
    entries = "half_away_divide", input_scale = 1.0 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 1.0 : f64, output_zero_point = 10 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %1 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @rescaling_relu(
// CHECK: qnn.relu
func.func @rescaling_relu(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  // expected-remark @+1 {{[fuse-clamp] 'qnn.relu' must have the same parameters before and after to be a clamp}}
  %3 = "qnn.relu"(%2) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @after_the_table(
// CHECK: qnn.clip
func.func @after_the_table(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}},
      {lut = {table = dense<"0xFFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0DFDEDDDCDBDAD9D8D7D6D5D4D3D2D1D0CFCECDCCCBCAC9C8C7C6C5C4C3C2C1C0BFBEBDBCBBBAB9B8B7B6B5B4B3B2B1B0AFAEADACABAAA9A8A7A6A5A4A3A2A1A09F9E9D9C9B9A999897969594939291908F8E8D8C8B8A898887868584838281807F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A595857565554535251504F4E4D4C4B4A494847464544434241403F3E3D3C3B3A393837363534333231302F2E2D2C2B2A292827262524232221201F1E1D1C1B1A191817161514131211100F0E0D0C0B0A09080706050403020100"> : tensor<256xi8>}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  // expected-remark @+1 {{[fuse-clamp] 'qnn.clip' must come before the table of the fused op that feeds it}}
  %3 = "qnn.clip"(%2) {max = 90 : i64, min = 20 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %3 : tensor<1x4x4x2xui8>
}
