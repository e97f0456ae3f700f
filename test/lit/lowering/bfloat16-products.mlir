// RUN: %qopt %s --compile-to=linalg --target=avx512bf16 | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=x86 --target=avx512bf16 | filecheck %s --check-prefix=PAIRS
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s --check-prefix=WIDE

// Rows of bfloat16 numbers meet weights that are such numbers two terms at a time, where the least number of the rows
// tells that no sum is subnormal; else, and where a target has no such instruction, one after the other. The bits are
// the same.

// LINALG-LABEL: func.func private @kernel_1(
// LINALG: arith.minui
// LINALG-LABEL: func.func private @kernel_2(
// LINALG: arith.cmpi ult
// LINALG: %[[UPPER:.*]] = math.fma
// LINALG: math.fma %{{.*}}, %{{.*}}, %[[UPPER]] {qnn.normal_sums} : f32

// PAIRS: llvm.x86.avx512bf16.dpbf16ps.512
// WIDE: math.fma
// WIDE-NOT: dpbf16ps
func.func @rows(%x: tensor<6x64xbf16>) -> tensor<6x64xf32> {
  %w = "qnn.constant"() {value = dense<1.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %0 = arith.extf %x : tensor<6x64xbf16> to tensor<6x64xf32>
  %1 = "qnn.f32_matmul"(%0, %w) : (tensor<6x64xf32>, tensor<64x64xf32>) -> tensor<6x64xf32>
  return %1 : tensor<6x64xf32>
}
