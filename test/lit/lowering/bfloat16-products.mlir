// RUN: %qopt %s --compile-to=linalg --target=avx512bf16 | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=x86 --target=avx512bf16 | filecheck %s --check-prefix=PAIRS
// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s --check-prefix=WIDE
// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s --check-prefix=FUSED

// Rows of bfloat16 numbers meet weights that are such numbers two terms at a time, where the least number of the rows
// tells that no sum is subnormal; else, and where a target has no such instruction, one after the other. The bits are
// the same. So do matrices that are known at run time only, and windows of images. Two products that would be fused
// are faster apart then.

// LINALG-LABEL: func.func private @kernel_3(
// LINALG: arith.minui
// LINALG-LABEL: func.func private @kernel_4(
// LINALG: arith.cmpi ult
// LINALG: %[[UPPER:.*]] = math.fma
// LINALG: math.fma %{{.*}}, %{{.*}}, %[[UPPER]] {qnn.normal_sums} : f32

// LINALG: qnn.label = "qnn.f32_conv2d"
// LINALG: qnn.label = "qnn.f32_matmul"
// LINALG: qnn.label = "qnn.f32_matmul"
// FUSED: qnn.label = "rows"

// PAIRS-LABEL: func.func private @kernel_4(
// PAIRS: llvm.x86.avx512bf16.dpbf16ps.512
// PAIRS-LABEL: func.func private @kernel_7(
// PAIRS: llvm.x86.avx512bf16.dpbf16ps.512
// PAIRS-LABEL: func.func private @kernel_9(
// PAIRS: llvm.x86.avx512bf16.dpbf16ps.512
// WIDE: math.fma
// WIDE-NOT: dpbf16ps
func.func @rows(%x: tensor<16x64xbf16>, %y: tensor<64x64xbf16>, %z: tensor<1x3x8x16xbf16>,
    %m: tensor<2x64x64xbf16>) -> (tensor<16x64xf32>, tensor<16x64xf32>, tensor<1x1x6x64xf32>, tensor<2x64x64xf32>) {
  %w = "qnn.constant"() {value = dense<1.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %v = "qnn.constant"() {value = dense<1.5> : tensor<64x3x3x16xf32>} : () -> tensor<64x3x3x16xf32>
  %0 = arith.extf %x : tensor<16x64xbf16> to tensor<16x64xf32>
  %1 = arith.extf %y : tensor<64x64xbf16> to tensor<64x64xf32>
  %2 = arith.extf %z : tensor<1x3x8x16xbf16> to tensor<1x3x8x16xf32>
  %3 = "qnn.f32_matmul"(%0, %w) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %4 = "qnn.f32_matmul"(%0, %1) : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %5 = "qnn.f32_conv2d"(%2, %v) : (tensor<1x3x8x16xf32>, tensor<64x3x3x16xf32>) -> tensor<1x1x6x64xf32>
  %6 = arith.extf %m : tensor<2x64x64xbf16> to tensor<2x64x64xf32>
  %7 = "qnn.f32_matmul"(%6, %6) : (tensor<2x64x64xf32>, tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %8 = arith.truncf %7 : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %9 = arith.extf %8 : tensor<2x64x64xbf16> to tensor<2x64x64xf32>
  %10 = "qnn.f32_matmul"(%9, %6) : (tensor<2x64x64xf32>, tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  return %3, %4, %5, %10 : tensor<16x64xf32>, tensor<16x64xf32>, tensor<1x1x6x64xf32>, tensor<2x64x64xf32>
}
