// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s --check-prefix=X86

// N7: 29 pixels, a prime, are some whole tiles and a smaller one.  The tail is a micro-kernel of the same ops on that tile, not
// scalar code with a rounding of its own.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: vector.contract
// CHECK: arith.muli %{{.*}} : vector<[[TILE:[0-9]+x1x4x16]]x[[WIDE:i[0-9]+]]>
// CHECK: arith.shrui %{{.*}} : vector<[[TILE]]x[[WIDE]]>
// CHECK: arith.maxsi %{{.*}} : vector<[[TILE]]x[[CODE:i[0-9]+]]>
// CHECK: arith.minsi %{{.*}} : vector<[[TILE]]x[[CODE]]>
// CHECK: vector.gather %{{.*}} into vector<[[TILE]]xi8>
// CHECK: vector.contract
// CHECK: arith.muli %{{.*}} : vector<[[TAIL:[0-9]+x1x4x16]]x[[WIDE]]>
// CHECK: arith.shrui %{{.*}} : vector<[[TAIL]]x[[WIDE]]>
// CHECK: arith.maxsi %{{.*}} : vector<[[TAIL]]x[[CODE]]>
// CHECK: arith.minsi %{{.*}} : vector<[[TAIL]]x[[CODE]]>
// CHECK: vector.gather %{{.*}} into vector<[[TAIL]]xi8>
// CHECK-NOT: vector.contract
// CHECK-LABEL: func.func @main(

// X86-LABEL: func.func private @kernel_0(
// X86: vpdpbusd.512
// X86: packuswb.512
// X86: vpermi2var.qi.512
// X86: vpdpbusd.512
// X86: packuswb.512
// X86: vpermi2var.qi.512
// X86-NOT: vector.contract
// X86-LABEL: func.func @main(
func.func @main(%x: tensor<1x1x29x8xui8>) -> tensor<1x1x29x64xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<64x1x1x8xi8>} : () -> tensor<64x1x1x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x29x8xui8>, tensor<64x1x1x8xi8>) -> tensor<1x1x29x64xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x1x29x64xi32>) -> tensor<1x1x29x64xui8>
  %2 = "qnn.tanh"(%1) {
    input_scale = 2.0 : f64, input_zero_point = 3 : i64, output_scale = 0.00390625 : f64, output_zero_point = 0 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<1x1x29x64xui8>) -> tensor<1x1x29x64xui8>
  return %2 : tensor<1x1x29x64xui8>
}
