// RUN: %python %S/Inputs/x86_step.py %s --target=avx512vbmi > %t && filecheck %s --input-file=%t

// Rows are transposed, and each addition is one of as many rows; the terms of a row keep their order.

// CHECK-LABEL: func.func @sums(
// CHECK-NOT: vector.multi_reduction
// CHECK: vector.shuffle
// CHECK: %[[FIRST:.*]] = arith.addf %arg1, %{{.*}} : vector<16xf32>
// CHECK: %[[SECOND:.*]] = arith.addf %[[FIRST]], %{{.*}} : vector<16xf32>
// CHECK-COUNT-14: arith.addf %{{.*}} : vector<16xf32>
// CHECK-NOT: arith.addf
// CHECK: return
func.func @sums(%x: vector<16x1x16xf32>, %start: vector<16xf32>) -> vector<16xf32> {
  %y = vector.multi_reduction <add>, %x, %start [1, 2] : vector<16x1x16xf32> to vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @largest(
// CHECK-NOT: vector.multi_reduction
// CHECK-COUNT-5: arith.maximumf %{{.*}} : vector<7xf32>
// CHECK: return
func.func @largest(%x: vector<7x5xf32>, %start: vector<7xf32>) -> vector<7xf32> {
  %y = vector.multi_reduction <maximumf>, %x, %start [1] : vector<7x5xf32> to vector<7xf32>
  return %y : vector<7xf32>
}

// Integers and columns are no candidates; few numbers, and rows of several dimensions, are refused.

// CHECK-LABEL: func.func @others(
// CHECK-COUNT-4: vector.multi_reduction
func.func @others(
    %i: vector<16x16xi32>, %x: vector<16x16xf32>, %few: vector<16x3xf32>, %rows: vector<2x4x4xf32>,
    %a: vector<16xi32>, %b: vector<16xf32>, %c: vector<2x4xf32>
) -> (vector<16xi32>, vector<16xf32>, vector<16xf32>, vector<2x4xf32>) {
  %0 = vector.multi_reduction <add>, %i, %a [1] : vector<16x16xi32> to vector<16xi32>
  %1 = vector.multi_reduction <add>, %x, %b [0] : vector<16x16xf32> to vector<16xf32>
  // expected-remark @+1 {{[folded-rows] 'vector.multi_reduction' a square must have 4 to 16 rows, but got 16 of 3}}
  %2 = vector.multi_reduction <add>, %few, %b [1] : vector<16x3xf32> to vector<16xf32>
  // expected-remark @+1 {{[folded-rows] 'vector.multi_reduction' rows must be the first dimension, but got [2, 4, 4] for [2, 4]}}
  %3 = vector.multi_reduction <add>, %rows, %c [2] : vector<2x4x4xf32> to vector<2x4xf32>
  return %0, %1, %2, %3 : vector<16xi32>, vector<16xf32>, vector<16xf32>, vector<2x4xf32>
}
