// A chain that is no product of tiles is left alone with a reason; what else takes no contraction ends in an error.
// RUN: not %qopt %s --split-input-file --qnn-to-x86=target=amxint8 --explain-matches 2>&1 | filecheck %s

// CHECK: remark: [tile-chain] {{.*}}sums must start at 0 and be added to by contractions alone
#d = affine_map<(a, v, m, l, k, t) -> (a, m, k, t)>
#w = affine_map<(a, v, m, l, k, t) -> (k, v, l, t)>
#s = affine_map<(a, v, m, l, k, t) -> (a, v, m, l)>
func.func @main(%data: memref<1x3x4x4xi8>, %weights: memref<4x1x16x4xi8>, %out: memref<1x1x3x16xi32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0 : i8
  %start = arith.constant dense<1> : vector<1x1x3x16xi32>
  %x = vector.transfer_read %data[%c0, %c0, %c0, %c0], %pad {in_bounds = [true, true, true, true]}
    : memref<1x3x4x4xi8>, vector<1x3x4x4xi8>
  %y = vector.transfer_read %weights[%c0, %c0, %c0, %c0], %pad {in_bounds = [true, true, true, true]}
    : memref<4x1x16x4xi8>, vector<4x1x16x4xi8>
  %x32 = arith.extui %x : vector<1x3x4x4xi8> to vector<1x3x4x4xi32>
  %y32 = arith.extsi %y : vector<4x1x16x4xi8> to vector<4x1x16x4xi32>
  %sums = vector.contract {indexing_maps = [#d, #w, #s], iterator_types = ["parallel", "parallel", "parallel",
    "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %x32, %y32, %start
    : vector<1x3x4x4xi32>, vector<4x1x16x4xi32> into vector<1x1x3x16xi32>
  vector.transfer_write %sums, %out[%c0, %c0, %c0, %c0] {in_bounds = [true, true, true, true]}
    : vector<1x1x3x16xi32>, memref<1x1x3x16xi32>
  return
}

// -----

// CHECK: remark: [tile-chain] {{.*}}combining kind must be add, but got maxsi
#d = affine_map<(a, v, m, l, k, t) -> (a, m, k, t)>
#w = affine_map<(a, v, m, l, k, t) -> (k, v, l, t)>
#s = affine_map<(a, v, m, l, k, t) -> (a, v, m, l)>
func.func @main(%data: memref<1x3x4x4xi8>, %weights: memref<4x1x16x4xi8>, %out: memref<1x1x3x16xi32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0 : i8
  %start = arith.constant dense<0> : vector<1x1x3x16xi32>
  %x = vector.transfer_read %data[%c0, %c0, %c0, %c0], %pad {in_bounds = [true, true, true, true]}
    : memref<1x3x4x4xi8>, vector<1x3x4x4xi8>
  %y = vector.transfer_read %weights[%c0, %c0, %c0, %c0], %pad {in_bounds = [true, true, true, true]}
    : memref<4x1x16x4xi8>, vector<4x1x16x4xi8>
  %x32 = arith.extui %x : vector<1x3x4x4xi8> to vector<1x3x4x4xi32>
  %y32 = arith.extsi %y : vector<4x1x16x4xi8> to vector<4x1x16x4xi32>
  %sums = vector.contract {indexing_maps = [#d, #w, #s], iterator_types = ["parallel", "parallel", "parallel",
    "parallel", "reduction", "reduction"], kind = #vector.kind<maxsi>} %x32, %y32, %start
    : vector<1x3x4x4xi32>, vector<4x1x16x4xi32> into vector<1x1x3x16xi32>
  vector.transfer_write %sums, %out[%c0, %c0, %c0, %c0] {in_bounds = [true, true, true, true]}
    : vector<1x1x3x16xi32>, memref<1x1x3x16xi32>
  return
}

// -----

// CHECK: remark: [tile-chain] {{.*}}sums must be used once
#d = affine_map<(a, v, m, l, k, t) -> (a, m, k, t)>
#w = affine_map<(a, v, m, l, k, t) -> (k, v, l, t)>
#s = affine_map<(a, v, m, l, k, t) -> (a, v, m, l)>
func.func @main(%data: memref<1x3x4x4xi8>, %weights: memref<4x1x16x4xi8>, %out: memref<1x1x3x16xi32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0 : i8
  %start = arith.constant dense<0> : vector<1x1x3x16xi32>
  %x = vector.transfer_read %data[%c0, %c0, %c0, %c0], %pad {in_bounds = [true, true, true, true]}
    : memref<1x3x4x4xi8>, vector<1x3x4x4xi8>
  %y = vector.transfer_read %weights[%c0, %c0, %c0, %c0], %pad {in_bounds = [true, true, true, true]}
    : memref<4x1x16x4xi8>, vector<4x1x16x4xi8>
  %x32 = arith.extui %x : vector<1x3x4x4xi8> to vector<1x3x4x4xi32>
  %y32 = arith.extsi %y : vector<4x1x16x4xi8> to vector<4x1x16x4xi32>
  %sums = vector.contract {indexing_maps = [#d, #w, #s], iterator_types = ["parallel", "parallel", "parallel",
    "parallel", "reduction", "reduction"], kind = #vector.kind<add>} %x32, %y32, %start
    : vector<1x3x4x4xi32>, vector<4x1x16x4xi32> into vector<1x1x3x16xi32>
  %d = arith.addi %sums, %sums : vector<1x1x3x16xi32>
  vector.transfer_write %sums, %out[%c0, %c0, %c0, %c0] {in_bounds = [true, true, true, true]}
    : vector<1x1x3x16xi32>, memref<1x1x3x16xi32>
  return
}
