// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=generic | filecheck %s --check-prefix=GENERIC

// A tile of 2 pixels by V vectors is 2 * V instructions per K group of taps, as wide as the block's lanes.  92 channels
// are stored as 96 lanes: 4 vectors of 16, then 2 vectors of 16.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-COUNT-8: "llvm.x86.avx512.vpdpbusd.512"({{.*}}) : (vector<16xi32>, vector<64xi8>, vector<64xi8>)
// CHECK-NOT: vpdpbusd
// CHECK: scf.yield
// CHECK-COUNT-4: "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vpdpbusd
// CHECK: scf.yield
// CHECK-NOT: vector.contract
// CHECK-LABEL: func.func @main(

// GENERIC-LABEL: func.func private @kernel_0(
// GENERIC-NOT: llvm.x86
// GENERIC: vector.contract
// GENERIC-NOT: llvm.x86
// GENERIC-LABEL: func.func @main(
func.func @main(%x: tensor<1x1x2x8xui8>) -> tensor<1x1x2x92xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<92x1x1x8xi8>} : () -> tensor<92x1x1x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x2x8xui8>, tensor<92x1x1x8xi8>) -> tensor<1x1x2x92xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x1x2x92xi32>) -> tensor<1x1x2x92xui8>
  return %1 : tensor<1x1x2x92xui8>
}
