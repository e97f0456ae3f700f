// RUN: %hotloop %s --target=avx512vbmi --at-least=0.52 | filecheck %s

// A product of matrices.

// CHECK: kernel_{{[0-9]+}}: vpdpbusd {{[0-9]+}} of {{[0-9]+}} instructions
// CHECK-NEXT: share >= 0.52: yes
func.func @main(%x: tensor<128x1024xui8>) -> tensor<128x1024xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<1024x1024xi8>} : () -> tensor<1024x1024xi8>
  %acc = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<128x1024xui8>, tensor<1024x1024xi8>) -> tensor<128x1024xi32>
  %c = "qnn.requantize"(%acc) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 1 : i64, rounding = "f32_rne_zp_last",
    multiplier = "f32"
  } : (tensor<128x1024xi32>) -> tensor<128x1024xui8>
  return %c : tensor<128x1024xui8>
}
