// RUN: %qopt %s --qnn-fold-padding | filecheck %s

// Covers R12 (padding), R8: an explicit pad with the input's zero point becomes the conv's own padding.

// CHECK-LABEL: func.func @conv(
// CHECK-NOT: qnn.pad
// CHECK: "qnn.conv2d"(%arg0, {{.*}}padding = array<i64: 2, 3, 0, 1>
func.func @conv(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x6x8x2xi32> {
  %0 = "qnn.pad"(%arg0) {
    high = array<i64: 0, 0, 1, 0>, low = array<i64: 0, 1, 2, 0>, value = 3 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x5x7x2xui8>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %2 = "qnn.conv2d"(%0, %1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 1, 1, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x5x7x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x6x8x2xi32>
  return %2 : tensor<1x6x8x2xi32>
}

// CHECK-LABEL: func.func @fused(
// CHECK-NOT: qnn.pad
// CHECK: "qnn.fused_conv2d"(%arg0, {{.*}}padding = array<i64: 1, 0, 0, 1>
func.func @fused(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x5x5x2xui8> {
  %0 = "qnn.pad"(%arg0) {
    high = array<i64: 0, 0, 1, 0>, low = array<i64: 0, 1, 0, 0>, value = 3 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x5x5x2xui8>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %2 = "qnn.constant"() {value = dense<7> : tensor<2xi32>} : () -> tensor<2xi32>
  %3 = "qnn.fused_conv2d"(%0, %1, %2) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5, 0.25>,
    output_scale = 0.5 : f64, output_zero_point = 10 : i64,
    epilogue = [{requantize = {rounding = "fixed64_up"}}]
  } : (tensor<1x5x5x2xui8>, tensor<2x1x1x2xi8>, tensor<2xi32>) -> tensor<1x5x5x2xui8>
  return %3 : tensor<1x5x5x2xui8>
}

// CHECK-LABEL: func.func @other_users_keep_the_pad(
// CHECK: [[PAD:%.*]] = "qnn.pad"(%arg0)
// CHECK: [[CONV:%.*]] = "qnn.conv2d"(%arg0,
// CHECK: return [[CONV]], [[PAD]]
func.func @other_users_keep_the_pad(%arg0: tensor<1x4x4x2xui8>) -> (tensor<1x5x5x2xi32>, tensor<1x5x5x2xui8>) {
  %0 = "qnn.pad"(%arg0) {
    high = array<i64: 0, 0, 1, 0>, low = array<i64: 0, 1, 0, 0>, value = 3 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x5x5x2xui8>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %2 = "qnn.conv2d"(%0, %1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x5x5x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x5x5x2xi32>
  return %2, %0 : tensor<1x5x5x2xi32>, tensor<1x5x5x2xui8>
}

// CHECK-LABEL: func.func @words(
// CHECK-NOT: qnn.pad
// CHECK: "qnn.i16_conv2d"(%arg0, %{{.*}}) {padding = array<i64: 1, 0, 0, 3>}
func.func @words(%x: tensor<1x5x5x4xi16>) -> tensor<1x4x6x8xi64> {
  %w = arith.constant dense<3> : tensor<8x3x3x4xi8>
  %0 = "qnn.pad"(%x) {
    low = array<i64: 0, 1, 0, 0>, high = array<i64: 0, 0, 2, 0>, value = 0 : i64
  } : (tensor<1x5x5x4xi16>) -> tensor<1x6x7x4xi16>
  %1 = "qnn.i16_conv2d"(%0, %w) {
    padding = array<i64: 0, 0, 0, 1>
  } : (tensor<1x6x7x4xi16>, tensor<8x3x3x4xi8>) -> tensor<1x4x6x8xi64>
  return %1 : tensor<1x4x6x8xi64>
}
