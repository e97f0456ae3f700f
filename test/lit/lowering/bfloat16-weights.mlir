// RUN: %qopt %s --compile-to=x86 --target=avx512bf16 | filecheck %s

// Rows of f32 numbers are not rounded, whatever the weights are.

// CHECK-NOT: dpbf16ps
func.func @main(%x: tensor<6x64xf32>) -> tensor<6x64xf32> {
  %w = "qnn.constant"() {value = dense<1.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %0 = "qnn.f32_matmul"(%x, %w) : (tensor<6x64xf32>, tensor<64x64xf32>) -> tensor<6x64xf32>
  return %0 : tensor<6x64xf32>
}
