// RUN: %qopt %s --qnn-sink-transpose | filecheck %s

// Covers R5: transposes move past element-wise ops and cancel; none stands between a conv and its activation.

// CHECK-LABEL: func.func @cancel(
// CHECK-NOT: qnn.transpose
// CHECK: qnn.conv2d
// CHECK-NOT: qnn.transpose
// CHECK: "qnn.requantize"({{.*}}axis = 3 : i64
// CHECK-NOT: qnn.transpose
// CHECK: qnn.sigmoid
// CHECK-NOT: qnn.transpose
// CHECK: return
func.func @cancel(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.transpose"(%1) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xi32>) -> tensor<1x2x4x4xi32>
  %3 = "qnn.requantize"(%2) {
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xui8>
  %4 = "qnn.sigmoid"(%3) {
    entries = "half_away_divide", input_scale = 0.5 : f64, input_zero_point = 10 : i64, nan = "max",
    output_scale = 0.00390625 : f64, output_zero_point = 0 : i64
  } : (tensor<1x2x4x4xui8>) -> tensor<1x2x4x4xui8>
  %5 = "qnn.transpose"(%4) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  return %5 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @to_the_edge(
// CHECK-NOT: qnn.transpose
// CHECK: "qnn.clip"(%arg0)
// CHECK: qnn.lut
// CHECK: "qnn.transpose"{{.*}}permutation = array<i64: 0, 2, 3, 1>
// CHECK-NEXT: return
func.func @to_the_edge(%arg0: tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  %1 = "qnn.clip"(%0) {max = 9 : i64, min = 3 : i64} : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  %2 = "qnn.lut"(%1) {
    input_scale = 0.5 : f64, input_zero_point = 10 : i64, output_scale = 0.125 : f64,
    output_zero_point = 11 : i64,
    table = dense<"0xFFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0DFDEDDDCDBDAD9D8D7D6D5D4D3D2D1D0CFCECDCCCBCAC9C8C7C6C5C4C3C2C1C0BFBEBDBCBBBAB9B8B7B6B5B4B3B2B1B0AFAEADACABAAA9A8A7A6A5A4A3A2A1A09F9E9D9C9B9A999897969594939291908F8E8D8C8B8A898887868584838281807F7E7D7C7B7A797877767574737271706F6E6D6C6B6A696867666564636261605F5E5D5C5B5A595857565554535251504F4E4D4C4B4A494847464544434241403F3E3D3C3B3A393837363534333231302F2E2D2C2B2A292827262524232221201F1E1D1C1B1A191817161514131211100F0E0D0C0B0A09080706050403020100"> : tensor<256xi8>
  } : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @both_operands(
// CHECK: "qnn.add"(%arg0, %arg1)
// CHECK: "qnn.transpose"
// CHECK-NEXT: return
func.func @both_operands(%arg0: tensor<1x2x4x4xui8>, %arg1: tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  %1 = "qnn.transpose"(%arg1) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  %2 = "qnn.add"(%0, %1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @constant_operand(
// CHECK: "qnn.add"(%arg0, %{{.*}}(tensor<1x2x4x4xui8>, tensor<1x2x1x1xui8>)
// CHECK: "qnn.transpose"
// CHECK-NEXT: return
func.func @constant_operand(%arg0: tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  %1 = "qnn.constant"() {value = dense<[[[[1, 2]]]]> : tensor<1x1x1x2xui8>} : () -> tensor<1x1x1x2xui8>
  %2 = "qnn.add"(%0, %1) {
    arithmetic = "requantize_each", lhs_scale = 0.5 : f64, lhs_zero_point = 10 : i64, multiplier = "f64",
    output_max = 255 : i64, output_min = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 20 : i64,
    rhs_scale = 0.5 : f64, rhs_zero_point = 10 : i64, rounding = "fixed64_up"
  } : (tensor<1x4x4x2xui8>, tensor<1x1x1x2xui8>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}

// CHECK-LABEL: func.func @pad(
// CHECK: "qnn.pad"(%arg0) {{.*}}low = array<i64: 0, 3, 1, 2>
// CHECK: qnn.clip
// CHECK-NEXT: "qnn.transpose"
// CHECK-NEXT: return
func.func @pad(%arg0: tensor<1x2x4x4xui8>) -> tensor<1x5x6x5xui8> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xui8>) -> tensor<1x4x4x2xui8>
  %1 = "qnn.pad"(%0) {
    high = array<i64: 0, 0, 0, 0>, low = array<i64: 0, 1, 2, 3>, value = 9 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x5x6x5xui8>
  %2 = "qnn.clip"(%1) {max = 200 : i64, min = 9 : i64} : (tensor<1x5x6x5xui8>) -> tensor<1x5x6x5xui8>
  return %2 : tensor<1x5x6x5xui8>
}

// CHECK-LABEL: func.func @between_quantized_and_f32_values(
// CHECK: [[BYTES:%.*]] = "qnn.transpose"(%arg0){{.*}}tensor<1x2x4x4xui8>
// CHECK: "qnn.dequantize"([[BYTES]]){{.*}}axis = 1 : i64
// CHECK: [[QUANTIZED:%.*]] = "qnn.quantize"(%arg1){{.*}}axis = 3 : i64
// CHECK: "qnn.transpose"([[QUANTIZED]]){{.*}}tensor<1x2x4x4xi8>
func.func @between_quantized_and_f32_values(%arg0: tensor<1x4x4x2xui8>, %arg1: tensor<1x4x4x2xf32>)
    -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xi8>) {
  %0 = "qnn.dequantize"(%arg0) {axis = 3 : i64, scales = array<f64: 0.5, 0.25>, zero_points = array<i64: 7>}
    : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xf32>
  %1 = "qnn.transpose"(%0) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xf32>) -> tensor<1x2x4x4xf32>
  %2 = "qnn.transpose"(%arg1) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x4x2xf32>) -> tensor<1x2x4x4xf32>
  %3 = "qnn.quantize"(%2) {
    axis = 1 : i64, nan = "min", rounding = "half_even", scales = array<f64: 0.5, 0.25>, scaling = "divide",
    zero_points = array<i64: 7>
  } : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xi8>
  return %1, %3 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xi8>
}

// CHECK-LABEL: func.func @reshape_of_f32_values(
// CHECK: [[BYTES:%.*]] = "qnn.reshape"(%arg0){{.*}}tensor<1x2x1x1xui8>
// CHECK: "qnn.dequantize"([[BYTES]])
func.func @reshape_of_f32_values(%arg0: tensor<1x1x1x2xui8>) -> tensor<1x2x1x1xf32> {
  %0 = "qnn.dequantize"(%arg0) {scales = array<f64: 0.5>, zero_points = array<i64: 7>}
    : (tensor<1x1x1x2xui8>) -> tensor<1x1x1x2xf32>
  %1 = "qnn.reshape"(%0) {shape = array<i64: 1, 2, 1, 1>} : (tensor<1x1x1x2xf32>) -> tensor<1x2x1x1xf32>
  return %1 : tensor<1x2x1x1xf32>
}

// Rows and columns become tokens: no element moves.
// CHECK-LABEL: func.func @tokens(
// CHECK-NEXT: [[TOKENS:%.*]] = "qnn.reshape"(%arg0){{.*}}-> tensor<1x8x6xf32>
// CHECK-NEXT: return [[TOKENS]]
func.func @tokens(%arg0: tensor<1x4x2x6xf32>) -> tensor<1x8x6xf32> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x4x2x6xf32>) -> tensor<1x6x4x2xf32>
  %1 = "qnn.reshape"(%0) {shape = array<i64: 1, 6, 8>} : (tensor<1x6x4x2xf32>) -> tensor<1x6x8xf32>
  %2 = "qnn.transpose"(%1) {permutation = array<i64: 0, 2, 1>} : (tensor<1x6x8xf32>) -> tensor<1x8x6xf32>
  return %2 : tensor<1x8x6xf32>
}

// And an image again, of which another order is left.
// CHECK-LABEL: func.func @image(
// CHECK: "qnn.reshape"(%arg0){{.*}}-> tensor<3x4x2x6xf32>
// CHECK-NEXT: "qnn.transpose"{{.*}}permutation = array<i64: 2, 0, 1, 3>{{.*}}-> tensor<2x3x4x6xf32>
// CHECK-NEXT: return
func.func @image(%arg0: tensor<3x8x6xf32>) -> tensor<2x3x4x6xf32> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 2, 0, 1>} : (tensor<3x8x6xf32>) -> tensor<6x3x8xf32>
  %1 = "qnn.reshape"(%0) {shape = array<i64: 6, 3, 4, 2>} : (tensor<6x3x8xf32>) -> tensor<6x3x4x2xf32>
  %2 = "qnn.transpose"(%1) {permutation = array<i64: 3, 1, 2, 0>} : (tensor<6x3x4x2xf32>) -> tensor<2x3x4x6xf32>
  return %2 : tensor<2x3x4x6xf32>
}

// Windows across rows, of which there are fewer than rows.
// CHECK-LABEL: func.func @windows(
// CHECK: "qnn.gather"(%arg0) {axis = 1 : i64
// CHECK: "qnn.reshape"{{.*}}-> tensor<3x2x3x16xf32>
// CHECK: "qnn.f32_max"{{.*}}axes = array<i64: 2>{{.*}}-> tensor<3x2x16xf32>
// CHECK: "qnn.transpose"{{.*}}permutation = array<i64: 1, 2, 0>
// CHECK-NEXT: return
func.func @windows(%arg0: tensor<3x5x16xf32>) -> tensor<2x16x3xf32> {
  %0 = "qnn.transpose"(%arg0) {permutation = array<i64: 1, 2, 0>} : (tensor<3x5x16xf32>) -> tensor<5x16x3xf32>
  %1 = "qnn.gather"(%0) {axis = 0 : i64, indices = array<i64: 0, 1, 2, 2, 3, 4>}
    : (tensor<5x16x3xf32>) -> tensor<6x16x3xf32>
  %2 = "qnn.reshape"(%1) {shape = array<i64: 2, 3, 16, 3>} : (tensor<6x16x3xf32>) -> tensor<2x3x16x3xf32>
  %3 = "qnn.f32_max"(%2) {axes = array<i64: 1>} : (tensor<2x3x16x3xf32>) -> tensor<2x16x3xf32>
  return %3 : tensor<2x16x3xf32>
}
