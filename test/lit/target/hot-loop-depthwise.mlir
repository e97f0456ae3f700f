// RUN: %hotloop %s --target=avx512vbmi --at-least=0.17 | filecheck %s

// A 3x3 depthwise convolution: dot products over interleaved taps.

// CHECK: kernel_{{[0-9]+}}: vpdpbusd {{[0-9]+}} of {{[0-9]+}} instructions
// CHECK-NEXT: share >= 0.17: yes
func.func @main(%x: tensor<1x14x14x256xui8>) -> tensor<1x14x14x256xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<256x3x3x1xi8>} : () -> tensor<256x3x3x1xi8>
  %acc = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilation = array<i64: 1, 1>, groups = 256 : i64
  } : (tensor<1x14x14x256xui8>, tensor<256x3x3x1xi8>) -> tensor<1x14x14x256xi32>
  %c = "qnn.requantize"(%acc) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "f32_rne_zp_last",
    multiplier = "f32"
  } : (tensor<1x14x14x256xi32>) -> tensor<1x14x14x256xui8>
  %a = "qnn.relu6"(%c) {
    input_scale = 2.0 : f64, input_zero_point = 3 : i64, output_scale = 1.5 : f64, output_zero_point = 5 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<1x14x14x256xui8>) -> tensor<1x14x14x256xui8>
  return %a : tensor<1x14x14x256xui8>
}
