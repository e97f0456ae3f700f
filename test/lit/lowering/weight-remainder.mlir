// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s --check-prefix=X86

// Of weights around a zero point of 100 one, 255, does not fit a signed byte.  It is clipped to 127 and the other 28 are
// multiplied once more (227 is 127 above and fits): one more K group of products, where the call says, before the contraction, and nothing in the epilogue.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME: %[[OFFSET:[a-z0-9]*]]: index
// CHECK: qnn.role = "contraction_fill"
// CHECK: %[[START:.*]] = arith.addi %[[OFFSET]], %{{.*}} : index
// CHECK: %[[KGROUP:.*]] = memref.reinterpret_cast %arg0 to offset: [%[[START]]]
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}}qnn.role = "remainder0"
// CHECK: linalg.generic {{.*}}outs(%[[FIRST]] :{{.*}}qnn.role = "contraction"
// CHECK-NOT: qnn.role = "sum"
// CHECK: qnn.role = "root"

// X86-LABEL: func.func private @kernel_0(
// X86-COUNT-8: vpdpbusd
// X86-NOT: vpdpbusd
func.func @main(%x: tensor<1x1x4x4xui8>) -> tensor<1x1x4x2xui8> {
  %w0 = "qnn.constant"() {value = dense<[[[[0, 255, 100, 227]]], [[[7, 9, 7, 9]]]]> : tensor<2x1x1x4xui8>} : () -> tensor<2x1x1x4xui8>
  %0 = "qnn.conv2d"(%x, %w0) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 100>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x4x4xui8>, tensor<2x1x1x4xui8>) -> tensor<1x1x4x2xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x1x4x2xi32>) -> tensor<1x1x4x2xui8>
  return %1 : tensor<1x1x4x2xui8>
}
