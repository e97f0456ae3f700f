// RUN: %python %S/Inputs/x86_step.py %s --target=sse4.1 > %t && filecheck %s --input-file=%t

// A tile of 16 bytes is four vectors of four lanes.

// CHECK-LABEL: func.func @noted(
// CHECK-COUNT-8: llvm.shufflevector
// CHECK-COUNT-4: "llvm.x86.ssse3.pmadd.ub.sw.128"
// CHECK-NOT: vector.contract
func.func @noted(%x: memref<64xi8>, %w: memref<64xi8> {qnn.pair_sums_fit}, %y: vector<2x2x4xi32>) -> vector<2x2x4xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %u = memref.reinterpret_cast %x to offset: [0], sizes: [4, 2, 2, 4], strides: [16, 8, 4, 1] : memref<64xi8> to memref<4x2x2x4xi8, strided<[16, 8, 4, 1]>>
  %v = memref.reinterpret_cast %w to offset: [0], sizes: [2, 2, 4, 4], strides: [32, 16, 4, 1] : memref<64xi8> to memref<2x2x4x4xi8, strided<[32, 16, 4, 1]>>
  %a = vector.transfer_read %u[%c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true]} : memref<4x2x2x4xi8, strided<[16, 8, 4, 1]>>, vector<4x2x2x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0, %c0], %zero {in_bounds = [true, true, true, true]} : memref<2x2x4x4xi8, strided<[32, 16, 4, 1]>>, vector<2x2x4x4xi8>
  %c = arith.extui %a : vector<4x2x2x4xi8> to vector<4x2x2x4xi32>
  %d = arith.extsi %b : vector<2x2x4x4xi8> to vector<2x2x4x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(t, a, b, c) -> (t, a, b, c)>, affine_map<(t, a, b, c) -> (a, b, c, t)>, affine_map<(t, a, b, c) -> (a, b, c)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel"], kind = #vector.kind<add>
  } %c, %d, %y : vector<4x2x2x4xi32>, vector<2x2x4x4xi32> into vector<2x2x4xi32>
  return %0 : vector<2x2x4xi32>
}
