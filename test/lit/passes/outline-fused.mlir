// RUN: %qopt %s --qnn-fuse-requantize --qnn-outline-fused | filecheck %s
// RUN: %qopt %s --qnn-fuse-requantize --qnn-outline-fused --qnn-inline-outlined | filecheck %s --check-prefix=BACK

// Covers R13: a fused op is a function for an external code generator, with every parameter as an attribute.

// CHECK-LABEL: func.func private @dense_fused_dense_0(
// CHECK-SAME: %arg0: tensor<2x8xi8>) -> tensor<2x4xi8> attributes
// CHECK-SAME: qnn.external = "qnn.fused_dense"
// CHECK-SAME: qnn.parameters = {
// CHECK-SAME: input_scale = 2.500000e-01 : f64, input_zero_point = 3 : i64
// CHECK-SAME: output_scale = 5.000000e-01 : f64, output_zero_point = 10 : i64
// CHECK-SAME: weight_scales = array<f64: 5.000000e-01>
// CHECK: qnn.constant
// CHECK: qnn.constant
// CHECK: "qnn.fused_dense"(%arg0,
// CHECK-LABEL: func.func @dense(
// CHECK-NEXT: call @dense_fused_dense_0(%arg0)
// CHECK-NEXT: return
// BACK-NOT: private
// BACK-LABEL: func.func @dense(
// BACK: qnn.fused_dense
// BACK-NOT: call
func.func @dense(%x: tensor<2x8xi8>) -> tensor<2x4xi8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<4x8xi8>} : () -> tensor<4x8xi8>
  %1 = "qnn.constant"() {value = dense<7> : tensor<4xi32>} : () -> tensor<4xi32>
  %2 = "qnn.dense"(%x, %0, %1) {
    input_scale = 0.25 : f64, input_zero_point = 3 : i64, weight_scales = array<f64: 0.5>,
    weight_zero_points = array<i64: 0>
  } : (tensor<2x8xi8>, tensor<4x8xi8>, tensor<4xi32>) -> tensor<2x4xi32>
  %3 = "qnn.requantize"(%2) {
    axis = 1 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up", weight_scales = array<f64: 0.5>
  } : (tensor<2x4xi32>) -> tensor<2x4xi8>
  return %3 : tensor<2x4xi8>
}
