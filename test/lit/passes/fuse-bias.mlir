// RUN: %qopt %s --qnn-fuse-bias | filecheck %s

// Covers R12 (bias): a constant for each channel, added to the accumulators, becomes the bias.

// CHECK-LABEL: func.func @conv(
// CHECK: [[BIAS:%.*]] = "qnn.constant"() {value = dense<[100, -7]> : tensor<2xi32>}
// CHECK: "qnn.conv2d"(%arg0, %{{.*}}, [[BIAS]])
// CHECK-NOT: arith.addi
func.func @conv(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi32> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.constant"() {
    value = dense<[[[[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]], [[100, -7], [100, -7], [100, -7], [100, -7]]]]> : tensor<1x4x4x2xi32>
  } : () -> tensor<1x4x4x2xi32>
  %3 = arith.addi %1, %2 : tensor<1x4x4x2xi32>
  return %3 : tensor<1x4x4x2xi32>
}

// CHECK-LABEL: func.func @dense_with_bias(
// CHECK: [[BIAS:%.*]] = "qnn.constant"() {value = dense<[101, -5]> : tensor<2xi32>}
// CHECK: "qnn.dense"(%arg0, %{{.*}}, [[BIAS]])
// CHECK-NOT: arith.addi
func.func @dense_with_bias(%arg0: tensor<3x2xui8>) -> tensor<3x2xi32> {
  %0 = "qnn.constant"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %2 = "qnn.dense"(%arg0, %1, %0) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<3x2xui8>, tensor<2x2xi8>, tensor<2xi32>) -> tensor<3x2xi32>
  %3 = "qnn.constant"() {value = dense<[[100, -7], [100, -7], [100, -7]]> : tensor<3x2xi32>} : () -> tensor<3x2xi32>
  %4 = arith.addi %2, %3 : tensor<3x2xi32>
  return %4 : tensor<3x2xi32>
}

// Covers R16: what accumulators lose, by a constant that is broadcast or the same for all channels.
// CHECK-LABEL: func.func @subtracted(
// CHECK: "qnn.constant"() {value = dense<[-112, -5]> : tensor<2xi32>}
// CHECK-NEXT: "qnn.conv2d"
// CHECK-NOT: arith.
// CHECK: return
func.func @subtracted(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xi32> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.constant"() {value = dense<[100, -7]> : tensor<2xi32>} : () -> tensor<2xi32>
  %3 = "qnn.broadcast"(%2) {shape = array<i64: 1, 4, 4, 2>} : (tensor<2xi32>) -> tensor<1x4x4x2xi32>
  %4 = arith.subi %1, %3 : tensor<1x4x4x2xi32>
  %5 = arith.constant dense<12> : tensor<1x4x4x2xi32>
  %6 = arith.subi %4, %5 : tensor<1x4x4x2xi32>
  return %6 : tensor<1x4x4x2xi32>
}
