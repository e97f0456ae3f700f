// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=generic | filecheck %s --check-prefix=GENERIC

// Four vectors of 32-bit integers are one store of 64 bytes: packed to words, packed to bytes, and put in order.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: %[[LOW:.*]] = llvm.call_intrinsic "llvm.x86.avx512.packssdw.512"
// CHECK: %[[HIGH:.*]] = llvm.call_intrinsic "llvm.x86.avx512.packssdw.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.packuswb.512"(%[[LOW]], %[[HIGH]])
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.si.512"
// CHECK: %[[QUANTIZED:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<64xi8>
// CHECK: vector.store %[[QUANTIZED]], %{{.*}}, vector<64xi8>
// CHECK: packuswb.512
// CHECK: vector.store %{{.*}}, vector<64xi8>
// CHECK-NOT: packuswb
// CHECK-NOT: arith.trunci %{{.*}} to vector<{{.*}}xi8>
// CHECK-LABEL: func.func @main(

// GENERIC-LABEL: func.func private @kernel_0(
// GENERIC-NOT: llvm.x86
// GENERIC: arith.trunci %{{.*}} to vector<2x1x1x16xi8>
// GENERIC: vector.transfer_write
func.func @main(%x: tensor<1x1x2x8xui8>) -> tensor<1x1x2x64xui8> {
  %w = "qnn.constant"() {value = dense<3> : tensor<64x1x1x8xi8>} : () -> tensor<64x1x1x8xi8>
  %0 = "qnn.conv2d"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64
  } : (tensor<1x1x2x8xui8>, tensor<64x1x1x8xi8>) -> tensor<1x1x2x64xi32>
  %1 = "qnn.requantize"(%0) {
    input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>, input_zero_points = array<i64: 0>,
    output_scale = 2.0 : f64, output_zero_point = 3 : i64, axis = 3 : i64, rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x1x2x64xi32>) -> tensor<1x1x2x64xui8>
  return %1 : tensor<1x1x2x64xui8>
}
