// RUN: %qopt %s --compile-to=fused | filecheck %s --check-prefix=FUSED
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s

// N6: the residual sum is part of the convolution's epilogue: one kernel reads both inputs and writes the sum.

// FUSED: "qnn.fused_conv2d"(%arg0, %{{.*}}, %{{.*}}, %arg1)
// FUSED-NOT: "qnn.add"

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: vector.contract
// The tile of the other input is read where it is needed, after the reduction.
// CHECK: %[[OTHER:.*]] = vector.transfer_read {{.*}} : memref<16x1x1x16xi8, {{.*}}>, vector<{{[0-9]+}}x1x1x16xi8>
// CHECK: arith.extui %[[OTHER]]
// CHECK: vector.transfer_write
// CHECK-NOT: vector.transfer_write
// CHECK-LABEL: func.func @main(
// CHECK: call @kernel_0(
// CHECK-NOT: call
func.func @main(%x: tensor<1x4x4x16xui8>, %y: tensor<1x4x4x16xui8>) -> tensor<1x4x4x16xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<16x1x1x16xi8>} : () -> tensor<16x1x1x16xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x4x16xui8>, tensor<16x1x1x16xi8>) -> tensor<1x4x4x16xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x16xi32>) -> tensor<1x4x4x16xui8>
  %2 = "qnn.add"(%1, %y) {
    lhs_scale = 2.0 : f64, lhs_zero_point = 3 : i64, rhs_scale = 0.5 : f64, rhs_zero_point = 7 : i64,
    output_scale = 2.5 : f64, output_zero_point = 9 : i64, output_min = 0 : i64, output_max = 255 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x4x4x16xui8>, tensor<1x4x4x16xui8>) -> tensor<1x4x4x16xui8>
  return %2 : tensor<1x4x4x16xui8>
}
