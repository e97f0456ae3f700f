// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s

// Channels that fill no vector of 16 get a narrower instruction.  20 channels are stored as
// 24 lanes: one vector of 16 and a tail of 8.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-COUNT-2: "llvm.x86.avx512.vpdpbusd.512"
// CHECK-COUNT-2: "llvm.x86.avx512.vpdpbusd.256"({{.*}}) : (vector<8xi32>, vector<32xi8>
// CHECK-NOT: vpdpbusd
// CHECK-NOT: vector.contract
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<1x1x2x8xui8>) -> tensor<1x1x2x20xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<20x1x1x8xi8>} : () -> tensor<20x1x1x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x2x8xui8>, tensor<20x1x1x8xi8>) -> tensor<1x1x2x20xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x1x2x20xi32>) -> tensor<1x1x2x20xui8>
  return %1 : tensor<1x1x2x20xui8>
}
