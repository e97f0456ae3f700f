// RUN: %qopt %s --qnn-fold-padding --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-fold-padding | filecheck %s

// Covers R12: pads that are not the f32 zero around height and width stay.

// CHECK-LABEL: func.func @another_code(
// CHECK: qnn.pad
// CHECK: qnn.conv2d
func.func @another_code(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x5x5x2xi32> {
  %0 = "qnn.pad"(%arg0) {
    high = array<i64: 0, 0, 1, 0>, low = array<i64: 0, 1, 0, 0>, value = 0 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x5x5x2xui8>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  // expected-remark @+1 {{[fold-padding] 'qnn.conv2d' pad value must be 3, but got 0}}
  %2 = "qnn.conv2d"(%0, %1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x5x5x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x5x5x2xi32>
  return %2 : tensor<1x5x5x2xi32>
}

// CHECK-LABEL: func.func @batch(
// CHECK: qnn.pad
// CHECK: qnn.conv2d
func.func @batch(%arg0: tensor<1x4x4x2xui8>) -> tensor<2x5x5x2xi32> {
  %0 = "qnn.pad"(%arg0) {
    high = array<i64: 0, 0, 1, 0>, low = array<i64: 1, 1, 0, 0>, value = 3 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<2x5x5x2xui8>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  // expected-remark @+1 {{[fold-padding] 'qnn.conv2d' pad must grow height and width alone, but it grows dimension 0}}
  %2 = "qnn.conv2d"(%0, %1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x5x5x2xui8>, tensor<2x1x1x2xi8>) -> tensor<2x5x5x2xi32>
  return %2 : tensor<2x5x5x2xi32>
}

// CHECK-LABEL: func.func @channels(
// CHECK: qnn.pad
// CHECK: qnn.conv2d
func.func @channels(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x5x4x2xi32> {
  %0 = "qnn.pad"(%arg0) {
    high = array<i64: 0, 0, 0, 2>, low = array<i64: 0, 1, 0, 0>, value = 3 : i64
  } : (tensor<1x4x4x2xui8>) -> tensor<1x5x4x4xui8>
  %1 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x4xi8>} : () -> tensor<2x1x1x4xi8>
  // expected-remark @+1 {{[fold-padding] 'qnn.conv2d' pad must grow height and width alone, but it grows dimension 3}}
  %2 = "qnn.conv2d"(%0, %1) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x5x4x4xui8>, tensor<2x1x1x4xi8>) -> tensor<1x5x4x2xi32>
  return %2 : tensor<1x5x4x2xi32>
}

// CHECK-LABEL: func.func @words(
// CHECK: qnn.pad
// CHECK: qnn.i16_conv2d
func.func @words(%arg0: tensor<1x4x4x2xi16>) -> tensor<1x5x4x2xi64> {
  %0 = "qnn.pad"(%arg0) {
    high = array<i64: 0, 0, 0, 0>, low = array<i64: 0, 1, 0, 0>, value = 3 : i64
  } : (tensor<1x4x4x2xi16>) -> tensor<1x5x4x2xi16>
  %1 = arith.constant dense<3> : tensor<2x1x1x2xi8>
  // expected-remark @+1 {{[fold-padding] 'qnn.i16_conv2d' pad value must be 0, but got 3}}
  %2 = "qnn.i16_conv2d"(%0, %1) : (tensor<1x5x4x2xi16>, tensor<2x1x1x2xi8>) -> tensor<1x5x4x2xi64>
  return %2 : tensor<1x5x4x2xi64>
}
