// RUN: %hotloop %s --target=avx512vbmi --instruction=vmulps --at-least=0.33 | filecheck %s

// Products of floats that are rounded before they are added: each stays in a register until then.

// CHECK: share >= 0.33: yes
func.func @main(%x: tensor<1x28x28x64xf32>) -> tensor<1x28x28x128xf32> {
  %w = "qnn.constant"() {value = dense<0.5> : tensor<128x1x1x64xf32>} : () -> tensor<128x1x1x64xf32>
  %0 = "qnn.f32_conv2d"(%x, %w) {rounded_products = true}
    : (tensor<1x28x28x64xf32>, tensor<128x1x1x64xf32>) -> tensor<1x28x28x128xf32>
  return %0 : tensor<1x28x28x128xf32>
}
