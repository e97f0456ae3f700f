// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A contraction of integers with one term for each element is a product and a sum.

// CHECK-LABEL: func.func @integers(
// CHECK: vector.broadcast
// CHECK: arith.muli %{{.*}} : vector<2x4xi32>
// CHECK: arith.addi
// CHECK-NOT: vector.contract
func.func @integers(%x: vector<1x2x4xi32>, %y: vector<1x4xi32>, %z: vector<2x4xi32>) -> vector<2x4xi32> {
  %0 = vector.contract {
    indexing_maps = [affine_map<(i, j, k) -> (k, i, j)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %x, %y, %z : vector<1x2x4xi32>, vector<1x4xi32> into vector<2x4xi32>
  return %0 : vector<2x4xi32>
}

// CHECK-LABEL: func.func @floats(
// CHECK-NOT: arith.mulf
// CHECK: vector.contract
func.func @floats(%x: vector<1x2x4xf32>, %y: vector<1x4xf32>, %z: vector<2x4xf32>) -> vector<2x4xf32> {
  %0 = vector.contract {
    indexing_maps = [affine_map<(i, j, k) -> (k, i, j)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %x, %y, %z : vector<1x2x4xf32>, vector<1x4xf32> into vector<2x4xf32>
  return %0 : vector<2x4xf32>
}

// CHECK-LABEL: func.func @turned_factor(
// CHECK: vector.transpose %arg0, [0, 2, 1] : vector<1x4x2xi32> to vector<1x2x4xi32>
// CHECK: arith.muli %{{.*}} : vector<2x4xi32>
// CHECK-NOT: vector.contract
func.func @turned_factor(%x: vector<1x4x2xi32>, %y: vector<1x4xi32>, %z: vector<2x4xi32>) -> vector<2x4xi32> {
  // expected-remark @+1 {{[transposed-square] 'vector.transpose' a square must have 4 to 16 rows, but got 4 of 2}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(i, j, k) -> (k, j, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %x, %y, %z : vector<1x4x2xi32>, vector<1x4xi32> into vector<2x4xi32>
  return %0 : vector<2x4xi32>
}

// CHECK-LABEL: func.func @kind(
// CHECK-NOT: arith.mul
// CHECK: vector.contract
func.func @kind(%x: vector<1x2x4xi32>, %y: vector<1x4xi32>, %z: vector<2x4xi32>) -> vector<2x4xi32> {
  // expected-remark @below {{[unit-contraction] 'vector.contract' combining kind must be add, but got maxsi}}
  %0 = vector.contract {
    indexing_maps = [affine_map<(i, j, k) -> (k, i, j)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<maxsi>
  } %x, %y, %z : vector<1x2x4xi32>, vector<1x4xi32> into vector<2x4xi32>
  return %0 : vector<2x4xi32>
}

// CHECK-LABEL: func.func @two_terms(
// CHECK-NOT: arith.mul
// CHECK: vector.contract
func.func @two_terms(%x: vector<2x2x4xi32>, %y: vector<2x4xi32>, %z: vector<2x4xi32>) -> vector<2x4xi32> {
  %0 = vector.contract {
    indexing_maps = [affine_map<(i, j, k) -> (k, i, j)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %x, %y, %z : vector<2x2x4xi32>, vector<2x4xi32> into vector<2x4xi32>
  return %0 : vector<2x4xi32>
}

// CHECK-LABEL: func.func @halves(
// CHECK-NOT: arith.mul
// CHECK: vector.contract
func.func @halves(%x: vector<1x2x4xf16>, %y: vector<1x4xf16>, %z: vector<2x4xf16>) -> vector<2x4xf16> {
  %0 = vector.contract {
    indexing_maps = [affine_map<(i, j, k) -> (k, i, j)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
  } %x, %y, %z : vector<1x2x4xf16>, vector<1x4xf16> into vector<2x4xf16>
  return %0 : vector<2x4xf16>
}
