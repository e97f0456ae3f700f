// RUN: %python %S/Inputs/x86_step.py %s --target=avx2 > %t && filecheck %s --input-file=%t
// RUN: %python %S/Inputs/x86_step.py %s --target=avx512vbmi > %t && filecheck %s --input-file=%t --check-prefix=VNNI

// Products of bytes are summed in pairs to words where the weights are noted to allow it, and the pairs are theirs; else
// bytes are widened.

// CHECK-LABEL: func.func @noted(
// CHECK-COUNT-6: "llvm.x86.avx2.pmadd.ub.sw"
// CHECK-NOT: arith.andi
// VNNI-LABEL: func.func @noted(
// VNNI-NOT: pmadd
// VNNI-COUNT-6: "llvm.x86.avx512.vpdpbusd.256"
func.func @noted(%x: memref<3x4xi8>, %w: memref<2x8x4xi8> {qnn.pair_sums_fit}, %y: vector<3x2x8xi32>) -> vector<3x2x8xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<2x8x4xi8>, vector<2x8x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<2x8x4xi8> to vector<2x8x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>, affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<2x8x4xi32> into vector<3x2x8xi32>
  return %0 : vector<3x2x8xi32>
}

// CHECK-LABEL: func.func @not_noted(
// CHECK-NOT: pmadd.ub.sw
// CHECK: "llvm.x86.avx2.pmadd.wd"
func.func @not_noted(%x: memref<3x4xi8> {qnn.pair_sums_fit}, %w: memref<1x8x4xi8>, %y: vector<3x1x8xi32>) -> vector<3x1x8xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<1x8x4xi8>, vector<1x8x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<1x8x4xi8> to vector<1x8x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>, affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<1x8x4xi32> into vector<3x1x8xi32>
  return %0 : vector<3x1x8xi32>
}

// A view that begins at an odd byte has other pairs.
// CHECK-LABEL: func.func @odd_pairs(
// CHECK-NOT: pmadd.ub.sw
// CHECK: "llvm.x86.avx2.pmadd.wd"
func.func @odd_pairs(%x: memref<3x4xi8>, %f: memref<40xi8> {qnn.pair_sums_fit}, %y: vector<3x1x8xi32>) -> vector<3x1x8xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %w = memref.reinterpret_cast %f to offset: [1], sizes: [1, 8, 4], strides: [32, 4, 1] : memref<40xi8> to memref<1x8x4xi8, strided<[32, 4, 1], offset: 1>>
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]} : memref<1x8x4xi8, strided<[32, 4, 1], offset: 1>>, vector<1x8x4xi8>
  %c = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %d = arith.extsi %b : vector<1x8x4xi8> to vector<1x8x4xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>, affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %y : vector<3x4xi32>, vector<1x8x4xi32> into vector<3x1x8xi32>
  return %0 : vector<3x1x8xi32>
}
