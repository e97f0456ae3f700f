// RUN: %qopt %s --compile-to=x86 --target=avx512vbmi | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx2 | filecheck %s --check-prefix=AVX2

// Weights of four bits are read as they are packed. For f32 rows a mask and a constant exponent make an f32 number of a
// word's field, from which 2^11 + 8 times the scale is taken off as it is scaled; rows of bytes are multiplied by masked
// bytes, below VNNI in pairs. Rows of bytes plus 128 are multiplied by signed ones, which have the upper bits of a byte.
// Scales of many bits round each number less its zero point: a permute of sixteen of those takes the place of the mask.

// CHECK-LABEL: func.func private @kernel_1(
// CHECK: %[[SCALES:.*]] = arith.extf %{{.*}} : vector<4x16xf16> to vector<4x16xf32>
// CHECK: %[[TAKEN:.*]] = arith.mulf %[[SCALES]], %{{.*}} : vector<4x16xf32>
// CHECK: scf.for
// CHECK: %[[WORDS:.*]] = vector.transfer_read %{{.*}} vector<4x16xi32>
// CHECK: %[[SHIFTED:.*]] = arith.shli %[[WORDS]], %{{.*}} : vector<4x16xi32>
// CHECK: %[[FIELD:.*]] = arith.andi %[[SHIFTED]], %{{.*}} : vector<4x16xi32>
// CHECK: %[[BITS:.*]] = arith.ori %[[FIELD]], %{{.*}} : vector<4x16xi32>
// CHECK: %[[NUMBER:.*]] = arith.bitcast %[[BITS]] : vector<4x16xi32> to vector<4x16xf32>
// CHECK: %[[WEIGHT:.*]] = math.fma %[[NUMBER]], %[[SCALES]], %{{.*}} : vector<4x16xf32>
// CHECK: math.fma %{{.*}}, %[[WEIGHT]], %{{.*}} : vector<4x16xf32>
// CHECK-NOT: arith.sitofp
// CHECK-LABEL: func.func private @kernel_3(
// CHECK: %[[BYTES:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %[[BYTES]], %{{.*}})
// CHECK: %[[HIGH:.*]] = arith.shrui %{{.*}}, %{{.*}} : vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %[[HIGH]], %{{.*}})
// CHECK-LABEL: func.func private @kernel_5(
// CHECK: %[[UPPER:.*]] = arith.shli %{{.*}}, %{{.*}} : vector<64xi8>
// CHECK-NOT: arith.andi %[[UPPER]]
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %{{.*}}, %[[UPPER]])
// CHECK: %[[MASKED:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %{{.*}}, %[[MASKED]])
// CHECK-NOT: vector.contract
// CHECK-LABEL: func.func private @kernel_6(
// CHECK: %[[SHIFTED:.*]] = arith.shrui %{{.*}}, %{{.*}} : vector<4x16xi32>
// CHECK-NOT: arith.andi
// CHECK: %[[LOW:.*]] = vector.extract %[[SHIFTED]][0] : vector<16xi32> from vector<4x16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.si.512"(%{{.*}}, %[[LOW]])

// AVX2-LABEL: func.func private @kernel_3(
// AVX2: %[[PAIRS:.*]] = llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// AVX2: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%[[PAIRS]], %{{.*}})
// AVX2-NOT: vector.contract
func.func @main(%data: tensor<1x64xf32>, %bytes: tensor<1x64xi8>) -> (tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>) {
  %weight = "qnn.constant"() {value = dense<113> : tensor<64x32xui8>} : () -> tensor<64x32xui8>
  %scales = "qnn.constant"() {value = dense<0.375> : tensor<64x2xf32>} : () -> tensor<64x2xf32>
  %0 = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 32 : i64} : (tensor<1x64xf32>, tensor<64x32xui8>, tensor<64x2xf32>) -> tensor<1x64xf32>
  %1 = "qnn.block_dense"(%data, %weight, %scales) {bits = 4 : i64, block = 32 : i64, activations = "i8_block", order = "blocks"} : (tensor<1x64xf32>, tensor<64x32xui8>, tensor<64x2xf32>) -> tensor<1x64xf32>
  %one = "qnn.constant"() {value = dense<1.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %lowest = "qnn.constant"() {value = dense<-128> : tensor<1xi8>} : () -> tensor<1xi8>
  %2 = "qnn.block_dynamic_dense"(%bytes, %weight, %one, %lowest, %scales) {bits = 4 : i64, block = 32 : i64} : (tensor<1x64xi8>, tensor<64x32xui8>, tensor<1xf32>, tensor<1xi8>, tensor<64x2xf32>) -> tensor<1x64xf32>
  %tenths = "qnn.constant"() {value = dense<0.1> : tensor<64x2xf32>} : () -> tensor<64x2xf32>
  %3 = "qnn.block_dense"(%data, %weight, %tenths) {bits = 4 : i64, block = 32 : i64} : (tensor<1x64xf32>, tensor<64x32xui8>, tensor<64x2xf32>) -> tensor<1x64xf32>
  return %0, %1, %2, %3 : tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>
}
