// RUN: %qopt %s --qnn-decompose-fused | filecheck %s

// Covers R11, R14: each stage becomes an op of its own with the same parameters; stages of f32 values become float ops.

// CHECK-LABEL: func.func @plain(
// CHECK: "qnn.conv2d"(%arg0,
// CHECK-SAME: dilation = array<i64: 2, 1>
// CHECK-SAME: weight_scales = array<f64: 5.000000e-01, 2.500000e-01>
// CHECK: qnn.requantize
// CHECK-SAME: axis = 3 : i64, input_scale = 2.500000e-01 : f64
// CHECK-SAME: output_scale = 5.000000e-01 : f64, output_zero_point = 10 : i64
// CHECK-SAME: weight_scales = array<f64: 5.000000e-01, 2.500000e-01>
// CHECK-NEXT: return
func.func @plain(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    dilation = array<i64: 2, 1>, output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @all_stages(
// CHECK: qnn.conv2d
// CHECK: qnn.requantize
// CHECK-SAME: -> tensor<1x4x4x2xui8>
// CHECK: "qnn.clip"({{.*}}max = 200 : i64, min = 0 : i64
// CHECK: "qnn.add"({{.*}}, %arg1) 
// CHECK-SAME: lhs_scale = 5.000000e-01 : f64, lhs_zero_point = 10 : i64, output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.000000e+00
// CHECK-SAME: rhs_scale = 2.500000e-01 : f64, rhs_zero_point = 4 : i64
// CHECK: "qnn.clip"({{.*}}max = 255 : i64, min = 20 : i64
// CHECK: qnn.lut
// CHECK-SAME: input_scale = 1.000000e+00
// CHECK-SAME: -> tensor<1x4x4x2xi8>
// CHECK-NEXT: return
func.func @all_stages(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1, %arg1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.125 : f64, output_zero_point = 11 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up", scale = 0.5 : f64, zero_point = 10 : i64, element = ui8}},
      {clamp = {min = 0 : i64, max = 200 : i64}},
      {add = {residual_scale = 0.25 : f64, residual_zero_point = 4 : i64, scale = 1.0 : f64, zero_point = 10 : i64, element = ui8}},
      {clamp = {min = 20 : i64, max = 255 : i64}},
      {lut = {table = dense<"0xFFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0DFDEDDDCDBDAD9D8D7D6D5D4D3D2D1D0CFCECDCCCBCAC9C8C7C6C5C4C3C2C1C0BFBEBDBCBBBAB9B8B7B6B5B4B3B2B1B0AFAEADACABAAA9A8A7A6A5A4A3A2A1A09F9E9D9C9B9A999897969594939291908F8E8D8C8B8A898887868584838281807F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A595857565554535251504F4E4D4C4B4A494847464544434241403F3E3D3C3B3A393837363534333231302F2E2D2C2B2A292827262524232221201F1E1D1C1B1A191817161514131211100F0E0D0C0B0A09080706050403020100"> : tensor<256xi8>}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi8>
  return %2 : tensor<1x4x4x2xi8>
}

// CHECK-LABEL: func.func @dense(
// CHECK: qnn.dense
// CHECK: "qnn.requantize"({{.*}}axis = 1 : i64
// CHECK-SAME: rounding = "f32_rne_zp_last"
// CHECK-NEXT: return
func.func @dense(%arg0: tensor<3x2xi8>) -> tensor<3x2xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_dense"(%arg0, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5>, output_scale = 0.5 : f64,
    output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "f32_rne_zp_last"}}]
  } : (tensor<3x2xi8>, tensor<2x2xi8>, tensor<2xi32>) -> tensor<3x2xi8>
  return %2 : tensor<3x2xi8>
}

// CHECK-LABEL: func.func @f32_stages(
// CHECK: %[[ACC:.*]] = "qnn.conv2d"(%arg0, %{{[0-9a-z_]*}}) {{.*}}-> tensor<1x4x4x2xi32>
// CHECK: %[[REAL:.*]] = "qnn.dequantize"(%[[ACC]]) {axis = 3 : i64, scales = array<f64: 1.250000e-01, 6.250000e-02>
// CHECK: %[[BIAS:.*]] = "qnn.broadcast"
// CHECK: %[[BIASED:.*]] = arith.addf %[[REAL]], %[[BIAS]]
// CHECK: %[[RESIDUAL:.*]] = "qnn.dequantize"(%arg1)
// CHECK: %[[SUM:.*]] = arith.addf %[[BIASED]], %[[RESIDUAL]]
// CHECK: math.tanh %[[SUM]]
// CHECK: "qnn.quantize"
// CHECK-SAME: scaling = "reciprocal"
func.func @f32_stages(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<[0.5, -0.25]> : tensor<2xf32>} : () -> tensor<2xf32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1, %arg1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{dequantize},
      {sum = {residual_scale = 0.25 : f64, residual_zero_point = 4 : i64}},
      {activation = {function = "tanh"}},
      {quantize = {scaling = "reciprocal"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xf32>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @residual_on_the_left(
// CHECK: %[[QUANTIZED:.*]] = "qnn.requantize"
// CHECK: "qnn.add"(%arg1, %[[QUANTIZED]]) {arithmetic = "float_once", lhs_scale = 2.500000e-01 : f64
func.func @residual_on_the_left(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %2 = "qnn.fused_conv2d"(%arg0, %0, %1, %arg1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "f32_rne_zp_last"}},
      {add = {residual_scale = 0.25 : f64, residual_zero_point = 4 : i64, residual_is_lhs = true, arithmetic = "float_once"}}]
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}
