// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=generic | filecheck %s --check-prefix=GENERIC

// All weights are 255 above their zero point, so the windows' data is summed up: 256 bytes of a pixel by dot
// products of 64 bytes with ones, in a kernel before the one that reads the sums.  In that one no data is multiplied by
// ones.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: %[[BYTES:.*]] = vector.load {{.*}}, vector<64xi8>
// CHECK: "llvm.x86.avx512.vpdpbusd.512"
// CHECK: "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vpdpbusd
// CHECK: vector.multi_reduction <add>
// CHECK-NOT: vector.contract
// CHECK-LABEL: func.func private @kernel_1(
// CHECK-COUNT-2: "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vpdpbusd
// CHECK: arith.subi
// CHECK-LABEL: func.func @main(
// CHECK: call @kernel_0
// CHECK-SAME: qnn.label = "window sums"

// GENERIC-NOT: window sums
// GENERIC-NOT: llvm.x86
func.func @main(%x: tensor<1x1x2x256xui8>) -> tensor<1x1x2x16xi32> {
  %w = "qnn.constant"() {value = dense<255> : tensor<16x1x1x256xui8>} : () -> tensor<16x1x1x256xui8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x2x256xui8>, tensor<16x1x1x256xui8>) -> tensor<1x1x2x16xi32>
  return %0 : tensor<1x1x2x16xi32>
}
