// RUN: %qopt %s --qnn-fuse-requantize --qnn-outline-fused=symmetric-weights-only --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-fuse-requantize --qnn-outline-fused=symmetric-weights-only | filecheck %s

// Covers R13: weights with a zero point may be refused.

// CHECK-NOT: private
// CHECK-LABEL: func.func @asymmetric(
// CHECK: qnn.fused_dense
func.func @asymmetric(%x: tensor<2x8xi8>) -> tensor<2x4xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<4x8xi8>} : () -> tensor<4x8xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<4xi32>} : () -> tensor<4xi32>
  %2 = "qnn.dense"(%x, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 5>
  } : (tensor<2x8xi8>, tensor<4x8xi8>, tensor<4xi32>) -> tensor<2x4xi32>
  // expected-remark @+1 {{[outline-fused] 'qnn.fused_dense' must have weights without zero point, but got 5}}
  %3 = "qnn.requantize"(%2) {
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up", weight_scales = array<f64: 0.5>
  } : (tensor<2x4xi32>) -> tensor<2x4xi8>
  return %3 : tensor<2x4xi8>
}
