// RUN: %qopt %s --qnn-to-x86=target=avx512vbmi | filecheck %s
// RUN: %qopt %s --qnn-to-x86=target=avx512vbmi --explain-matches 2>&1 | filecheck %s --check-prefix=REASON

// Vectorization looks up in the order of the loops and transposes back: the table is looked up in the order that there is.

// CHECK-LABEL: func.func @back
// CHECK-NOT: vector.transpose
// CHECK-COUNT-2: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK-NOT: vector.transpose
// CHECK-NOT: vector.gather
func.func @back(%t: memref<256xi8>, %x: vector<2x1x64xi8>) -> vector<2x1x64xi8> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<1x2x64xi1>
  %rest = arith.constant dense<7> : vector<1x2x64xi8>
  %i = arith.index_castui %x : vector<2x1x64xi8> to vector<2x1x64xindex>
  %j = vector.transpose %i, [1, 0, 2] : vector<2x1x64xindex> to vector<1x2x64xindex>
  %g = vector.gather %t[%c0] [%j], %mask, %rest
    : memref<256xi8>, vector<1x2x64xindex>, vector<1x2x64xi1>, vector<1x2x64xi8> into vector<1x2x64xi8>
  %r = vector.transpose %g, [1, 0, 2] : vector<1x2x64xi8> to vector<2x1x64xi8>
  return %r : vector<2x1x64xi8>
}

// What is not transposed back is transposed once.

// CHECK-LABEL: func.func @once
// CHECK: "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK: vector.transpose %{{.*}}, [1, 2, 0] : vector<2x3x64xi8> to vector<3x64x2xi8>
// CHECK-NOT: vector.transpose
func.func @once(%t: memref<256xi8>, %x: vector<2x3x64xi8>) -> vector<3x64x2xi8> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<true> : vector<3x2x64xi1>
  %rest = arith.constant dense<7> : vector<3x2x64xi8>
  %i = arith.index_castui %x : vector<2x3x64xi8> to vector<2x3x64xindex>
  %j = vector.transpose %i, [1, 0, 2] : vector<2x3x64xindex> to vector<3x2x64xindex>
  %g = vector.gather %t[%c0] [%j], %mask, %rest
    : memref<256xi8>, vector<3x2x64xindex>, vector<3x2x64xi1>, vector<3x2x64xi8> into vector<3x2x64xi8>
  %r = vector.transpose %g, [0, 2, 1] : vector<3x2x64xi8> to vector<3x64x2xi8>
  return %r : vector<3x64x2xi8>
}

// Lanes that are masked keep what stands for them, in the order in which it stands there.

// CHECK-LABEL: func.func @masked
// REASON: [transposed-gather] 'vector.gather' mask must be true in every lane
func.func @masked(%t: memref<256xi32>, %x: vector<1x16xi32>, %rest: vector<16x1xi32>) -> vector<16x1xi32> {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<false> : vector<16x1xi1>
  %i = arith.index_castui %x : vector<1x16xi32> to vector<1x16xindex>
  %j = vector.transpose %i, [1, 0] : vector<1x16xindex> to vector<16x1xindex>
  %g = vector.gather %t[%c0] [%j], %mask, %rest
    : memref<256xi32>, vector<16x1xindex>, vector<16x1xi1>, vector<16x1xi32> into vector<16x1xi32>
  return %g : vector<16x1xi32>
}
