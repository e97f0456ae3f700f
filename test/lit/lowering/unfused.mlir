// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s --check-prefix=X86

// A convolution that nothing requantizes writes its accumulators: the same contraction, without an epilogue.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: vector.contract
// CHECK-NOT: arith.trunci
// CHECK: vector.transfer_write %{{.*}} : vector<2x3x1x1x16xi32>
// X86: vpdpbusd.512
func.func @main(%x: tensor<1x4x5x16xui8>) -> tensor<1x2x3x16xi32> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<16x3x3x16xi8>} : () -> tensor<16x3x3x16xi8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x4x5x16xui8>, tensor<16x3x3x16xi8>) -> tensor<1x2x3x16xi32>
  return %0 : tensor<1x2x3x16xi32>
}
