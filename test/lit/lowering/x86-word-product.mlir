// RUN: %qopt %s --compile-to=x86 --target=avx512vnni | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=generic | filecheck %s --check-prefix=GENERIC

// 16-bit activations by 8-bit weights (N5): the weights are packed as words, two taps a lane. The sum of 1024 products by
// 100 may exceed 32 bits, so the depth is cut where 654 products still fit, and 64 bits add up both sums, the bias and
// the requantization's product.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME: memref<10464xi16>
// CHECK-COUNT-1: "llvm.x86.avx512.vpdpwssd.512"({{.*}}) : (vector<16xi32>, vector<32xi16>, vector<32xi16>)
// CHECK-NOT: vpdpwssd
// CHECK-LABEL: func.func private @kernel_1(
// CHECK-COUNT-1: "llvm.x86.avx512.vpdpwssd.512"
// CHECK-NOT: vector.contract
// CHECK-LABEL: func.func private @kernel_2(
// CHECK-COUNT-2: arith.extsi %{{.*}} : vector<16xi32> to vector<16xi64>
// CHECK: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
// CHECK-LABEL: func.func @main(

// GENERIC-NOT: llvm.x86
// GENERIC: vector.contract
// GENERIC-NOT: llvm.x86
// GENERIC-LABEL: func.func @main(
func.func @main(%x: tensor<1x1024xi16>) -> tensor<1x16xi16> {
  %w = arith.constant dense<100> : tensor<16x1024xi8>
  %b = arith.constant dense<-7> : tensor<16xi64>
  %0 = "qnn.i16_dense"(%x, %w, %b) : (tensor<1x1024xi16>, tensor<16x1024xi8>, tensor<16xi64>) -> tensor<1x16xi64>
  %1 = "qnn.i16_requantize"(%0) {
    input_scale = 0.5 : f64, output_scale = 0.25 : f64, rounding = "fixed16_up"
  } : (tensor<1x16xi64>) -> tensor<1x16xi16>
  return %1 : tensor<1x16xi16>
}
