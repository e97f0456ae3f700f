// RUN: %qopt %s --qnn-decompose-fused --explain-matches --verify-diagnostics
// RUN: %qopt %s --qnn-decompose-fused | filecheck %s

// There is nothing to refuse: what is not fused stays as it is.

// CHECK-LABEL: func.func @separate(
// CHECK: qnn.conv2d
// CHECK-NEXT: {{.*}}qnn.requantize
// CHECK-NEXT: return
func.func @separate(%arg0: tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xui8> {
  %0 = "qnn.constant"() {value = dense<3> : tensor<2x1x1x2xi8>} : () -> tensor<2x1x1x2xi8>
  %1 = "qnn.conv2d"(%arg0, %0) {
    dilation = array<i64: 1, 1>, groups = 1 : i64, input_scale = 0.25 : f64, input_zero_point = 3 : i64,
    padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, weight_scales = array<f64: 0.5, 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<1x4x4x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x4x4x2xi32>
  %2 = "qnn.requantize"(%1) {
    axis = 3 : i64, input_scale = 0.25 : f64, input_zero_points = array<i64: 0>, multiplier = "f64",
    output_scale = 0.5 : f64, output_zero_point = 10 : i64, rounding = "fixed64_up",
    weight_scales = array<f64: 0.5, 0.25>
  } : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xui8>
  return %2 : tensor<1x4x4x2xui8>
}
