// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// The lower bound of a number is left out where all that is computed from it are products in one instruction: those give
// zero below it anyway.

// CHECK-LABEL: func.func @bound(
// CHECK-SAME: %[[X:.*]]: vector<2x16xf32>, %[[ROUNDER:.*]]: vector<2x16xf32>
// CHECK-NOT: arith.select
// CHECK: arith.addf %[[X]], %[[ROUNDER]]
// CHECK-NOT: arith.select
// CHECK-COUNT-2: "llvm.x86.avx512.mask.scalef.ps.512"
func.func @bound(%x: vector<2x16xf32>, %rounder: vector<2x16xf32>) -> vector<2x16xf32> {
  %one = arith.constant dense<1> : vector<2x16xi32>
  %bits = arith.constant dense<23> : vector<2x16xi32>
  %low = arith.constant dense<-1.510000e+02> : vector<2x16xf32>
  %is_below = arith.cmpf olt, %x, %low : vector<2x16xf32>
  %limited = arith.select %is_below, %low, %x {qnn.scale_bound} : vector<2x16xi1>, vector<2x16xf32>
  %biased = arith.addf %limited, %rounder : vector<2x16xf32>
  %rest = arith.subf %limited, %biased : vector<2x16xf32>
  %k = arith.bitcast %biased : vector<2x16xf32> to vector<2x16xi32>
  %h = arith.shrsi %k, %one : vector<2x16xi32>
  %a = arith.shli %h, %bits : vector<2x16xi32>
  %p = arith.bitcast %a : vector<2x16xi32> to vector<2x16xf32>
  %m = arith.mulf %rest, %p : vector<2x16xf32>
  %r = arith.subi %k, %h : vector<2x16xi32>
  %b = arith.shli %r, %bits : vector<2x16xi32>
  %q = arith.bitcast %b : vector<2x16xi32> to vector<2x16xf32>
  %0 = arith.mulf %m, %q {qnn.scaled} : vector<2x16xf32>
  return %0 : vector<2x16xf32>
}

// CHECK-LABEL: func.func @few_lanes(
// CHECK: arith.select
// CHECK: arith.mulf {{.*}} {qnn.scaled}
func.func @few_lanes(%x: vector<8xf32>, %rounder: vector<8xf32>) -> vector<8xf32> {
  %one = arith.constant dense<1> : vector<8xi32>
  %bits = arith.constant dense<23> : vector<8xi32>
  %low = arith.constant dense<-1.510000e+02> : vector<8xf32>
  %is_below = arith.cmpf olt, %x, %low : vector<8xf32>
  // expected-remark @below {{[scale-bound] 'arith.select' vectors must have a multiple of 16 lanes, but got 8}}
  %limited = arith.select %is_below, %low, %x {qnn.scale_bound} : vector<8xi1>, vector<8xf32>
  %biased = arith.addf %limited, %rounder : vector<8xf32>
  %rest = arith.subf %limited, %biased : vector<8xf32>
  %k = arith.bitcast %biased : vector<8xf32> to vector<8xi32>
  %h = arith.shrsi %k, %one : vector<8xi32>
  %a = arith.shli %h, %bits : vector<8xi32>
  %p = arith.bitcast %a : vector<8xi32> to vector<8xf32>
  %m = arith.mulf %rest, %p : vector<8xf32>
  %r = arith.subi %k, %h : vector<8xi32>
  %b = arith.shli %r, %bits : vector<8xi32>
  %q = arith.bitcast %b : vector<8xi32> to vector<8xf32>
  // expected-remark @below {{[scale-exponent] 'arith.mulf' vectors must have a multiple of 16 lanes, but got 8}}
  %0 = arith.mulf %m, %q {qnn.scaled} : vector<8xf32>
  return %0 : vector<8xf32>
}

// What else is computed from the number would be another one.
// CHECK-LABEL: func.func @read_elsewhere(
// CHECK: arith.select
// CHECK: "llvm.x86.avx512.mask.scalef.ps.512"
func.func @read_elsewhere(%x: vector<16xf32>, %rounder: vector<16xf32>, %memory: memref<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1> : vector<16xi32>
  %bits = arith.constant dense<23> : vector<16xi32>
  %low = arith.constant dense<-1.510000e+02> : vector<16xf32>
  %is_below = arith.cmpf olt, %x, %low : vector<16xf32>
  // expected-remark @below {{[scale-bound] 'arith.select' must be used in scaled products alone, but 'vector.store' reads it}}
  %limited = arith.select %is_below, %low, %x {qnn.scale_bound} : vector<16xi1>, vector<16xf32>
  %biased = arith.addf %limited, %rounder : vector<16xf32>
  %rest = arith.subf %limited, %biased : vector<16xf32>
  %k = arith.bitcast %biased : vector<16xf32> to vector<16xi32>
  %h = arith.shrsi %k, %one : vector<16xi32>
  %a = arith.shli %h, %bits : vector<16xi32>
  %p = arith.bitcast %a : vector<16xi32> to vector<16xf32>
  %m = arith.mulf %rest, %p : vector<16xf32>
  %r = arith.subi %k, %h : vector<16xi32>
  %b = arith.shli %r, %bits : vector<16xi32>
  %q = arith.bitcast %b : vector<16xi32> to vector<16xf32>
  %0 = arith.mulf %m, %q {qnn.scaled} : vector<16xf32>
  %c0 = arith.constant 0 : index
  vector.store %rest, %memory[%c0] : memref<16xf32>, vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @another_product(
// CHECK: arith.select
func.func @another_product(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %low = arith.constant dense<-1.510000e+02> : vector<16xf32>
  %is_below = arith.cmpf olt, %x, %low : vector<16xf32>
  // expected-remark @below {{[scale-bound] 'arith.select' must be the product of a number and two powers of two}}
  %limited = arith.select %is_below, %low, %x {qnn.scale_bound} : vector<16xi1>, vector<16xf32>
  // expected-remark @below {{[scale-exponent] 'arith.mulf' must be the product of a number and two powers of two}}
  %0 = arith.mulf %limited, %y {qnn.scaled} : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @another_choice(
// CHECK: arith.select
func.func @another_choice(%x: vector<16xf32>, %y: vector<16xf32>, %lanes: vector<16xi1>) -> vector<16xf32> {
  %0 = arith.select %lanes, %x, %y : vector<16xi1>, vector<16xf32>
  return %0 : vector<16xf32>
}
