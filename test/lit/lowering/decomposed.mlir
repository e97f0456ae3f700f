// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi -o %t.fused
// RUN: filecheck %s --input-file %t.fused
// RUN: %qopt %s --fuse-qnn --qnn-decompose-fused | filecheck %s --check-prefix=SEPARATE
// RUN: %qopt %s --fuse-qnn --qnn-decompose-fused | %qopt - --compile-to=linalg --target=avx512vbmi -o %t.decomposed
// RUN: diff %t.fused %t.decomposed

// R14: a fused op taken apart compiles to the very kernels that it compiles to as it is.

// SEPARATE-NOT: fused
// SEPARATE: "qnn.conv2d"
// SEPARATE: "qnn.requantize"
// SEPARATE: "qnn.add"
// SEPARATE: "qnn.lut"

// CHECK-LABEL: func.func @main(
// CHECK: call {{.*}}"qnn.fused_conv2d"
// CHECK-NOT: call
func.func @main(%x: tensor<1x4x5x16xui8>, %y: tensor<1x2x3x16xui8>) -> tensor<1x2x3x16xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<16x3x3x16xi8>} : () -> tensor<16x3x3x16xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x5x16xui8>, tensor<16x3x3x16xi8>) -> tensor<1x2x3x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x2x3x16xi32>) -> tensor<1x2x3x16xui8>
  %2 = "qnn.add"(%1, %y) {
    lhs_scale = 2.0 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.5 : f64, rhs_zero_point = 7 : i64,
    output_scale = 2.5 : f64, output_zero_point = 9 : i64, output_min = 0 : i64, output_max = 255 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x2x3x16xui8>, tensor<1x2x3x16xui8>) -> tensor<1x2x3x16xui8>
  %3 = "qnn.sigmoid"(%2) {
    input_scale = 2.5 : f64, input_zero_point = 9 : i64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<1x2x3x16xui8>) -> tensor<1x2x3x16xui8>
  return %3 : tensor<1x2x3x16xui8>
}
