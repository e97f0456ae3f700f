// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A product with two powers of two, tagged where the exponent is in range, is one instruction, and none in lanes whose
// product rounds to zero.

// CHECK-LABEL: func.func @scale(
// CHECK: %[[K:.*]] = arith.subf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: %[[LANES:.*]] = arith.cmpf ugt, %[[K]], %{{.*}} : vector<16xf32>
// CHECK: %[[BITS:.*]] = vector.bitcast %[[LANES]] : vector<16xi1> to vector<1xi16>
// CHECK: %[[MASK:.*]] = vector.extract %[[BITS]][0]
// CHECK: "llvm.x86.avx512.mask.scalef.ps.512"(%{{.*}}, %[[K]], %[[ZERO:.*]], %[[MASK]], {{.*}})
// CHECK-NOT: arith.mulf
func.func @scale(%x: vector<16xf32>, %biased: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1> : vector<16xi32>
  %bits = arith.constant dense<23> : vector<16xi32>
  %k = arith.bitcast %biased : vector<16xf32> to vector<16xi32>
  %h = arith.shrsi %k, %one : vector<16xi32>
  %a = arith.shli %h, %bits : vector<16xi32>
  %p = arith.bitcast %a : vector<16xi32> to vector<16xf32>
  %m = arith.mulf %x, %p : vector<16xf32>
  %r = arith.subi %k, %h : vector<16xi32>
  %b = arith.shli %r, %bits : vector<16xi32>
  %q = arith.bitcast %b : vector<16xi32> to vector<16xf32>
  %0 = arith.mulf %m, %q {qnn.scaled} : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @rows(
// CHECK-COUNT-2: "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK-NOT: arith.mulf
func.func @rows(%x: vector<2x16xf32>, %biased: vector<2x16xf32>) -> vector<2x16xf32> {
  %one = arith.constant dense<1> : vector<2x16xi32>
  %bits = arith.constant dense<23> : vector<2x16xi32>
  %k = arith.bitcast %biased : vector<2x16xf32> to vector<2x16xi32>
  %h = arith.shrsi %k, %one : vector<2x16xi32>
  %a = arith.shli %h, %bits : vector<2x16xi32>
  %p = arith.bitcast %a : vector<2x16xi32> to vector<2x16xf32>
  %m = arith.mulf %x, %p : vector<2x16xf32>
  %r = arith.subi %k, %h : vector<2x16xi32>
  %b = arith.shli %r, %bits : vector<2x16xi32>
  %q = arith.bitcast %b : vector<2x16xi32> to vector<2x16xf32>
  %0 = arith.mulf %m, %q {qnn.scaled} : vector<2x16xf32>
  return %0 : vector<2x16xf32>
}

// CHECK-LABEL: func.func @two_vectors(
// CHECK-COUNT-2: "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK-NOT: arith.mulf
func.func @two_vectors(%x: vector<32xf32>, %biased: vector<32xf32>) -> vector<32xf32> {
  %one = arith.constant dense<1> : vector<32xi32>
  %bits = arith.constant dense<23> : vector<32xi32>
  %k = arith.bitcast %biased : vector<32xf32> to vector<32xi32>
  %h = arith.shrsi %k, %one : vector<32xi32>
  %a = arith.shli %h, %bits : vector<32xi32>
  %p = arith.bitcast %a : vector<32xi32> to vector<32xf32>
  %m = arith.mulf %x, %p : vector<32xf32>
  %r = arith.subi %k, %h : vector<32xi32>
  %b = arith.shli %r, %bits : vector<32xi32>
  %q = arith.bitcast %b : vector<32xi32> to vector<32xf32>
  %0 = arith.mulf %m, %q {qnn.scaled} : vector<32xf32>
  return %0 : vector<32xf32>
}

// CHECK-LABEL: func.func @few_lanes(
// CHECK-NOT: scalef
// CHECK: arith.mulf {{.*}} {qnn.scaled}
func.func @few_lanes(%x: vector<8xf32>, %biased: vector<8xf32>) -> vector<8xf32> {
  %one = arith.constant dense<1> : vector<8xi32>
  %bits = arith.constant dense<23> : vector<8xi32>
  %k = arith.bitcast %biased : vector<8xf32> to vector<8xi32>
  %h = arith.shrsi %k, %one : vector<8xi32>
  %a = arith.shli %h, %bits : vector<8xi32>
  %p = arith.bitcast %a : vector<8xi32> to vector<8xf32>
  %m = arith.mulf %x, %p : vector<8xf32>
  %r = arith.subi %k, %h : vector<8xi32>
  %b = arith.shli %r, %bits : vector<8xi32>
  %q = arith.bitcast %b : vector<8xi32> to vector<8xf32>
  // expected-remark @below {{[scale-exponent] 'arith.mulf' vectors must have a multiple of 16 lanes, but got 8}}
  %0 = arith.mulf %m, %q {qnn.scaled} : vector<8xf32>
  return %0 : vector<8xf32>
}

// CHECK-LABEL: func.func @untagged(
// CHECK-NOT: scalef
// CHECK: arith.mulf
func.func @untagged(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.mulf %x, %y : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @another_product(
// CHECK-NOT: scalef
// CHECK: arith.mulf
func.func @another_product(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  // expected-remark @below {{[scale-exponent] 'arith.mulf' must be the product of a number and two powers of two}}
  %0 = arith.mulf %x, %y {qnn.scaled} : vector<16xf32>
  return %0 : vector<16xf32>
}

// The lower bound of what is scaled is left out where the product is one instruction: that gives zero below it anyway.

// CHECK-LABEL: func.func @bound(
// CHECK-SAME: %[[X:.*]]: vector<2x16xf32>
// CHECK-NOT: arith.select
// CHECK: arith.addf %[[X]], %[[X]]
func.func @bound(%x: vector<2x16xf32>) -> vector<2x16xf32> {
  %low = arith.constant dense<-1.050000e+02> : vector<2x16xf32>
  %is_below = arith.cmpf olt, %x, %low : vector<2x16xf32>
  %limited = arith.select %is_below, %low, %x {qnn.scale_bound} : vector<2x16xi1>, vector<2x16xf32>
  %0 = arith.addf %limited, %limited : vector<2x16xf32>
  return %0 : vector<2x16xf32>
}

// CHECK-LABEL: func.func @bound_of_few_lanes(
// CHECK: arith.select
func.func @bound_of_few_lanes(%x: vector<8xf32>) -> vector<8xf32> {
  %low = arith.constant dense<-1.050000e+02> : vector<8xf32>
  %is_below = arith.cmpf olt, %x, %low : vector<8xf32>
  // expected-remark @below {{[scale-bound] 'arith.select' vectors must have a multiple of 16 lanes, but got 8}}
  %0 = arith.select %is_below, %low, %x {qnn.scale_bound} : vector<8xi1>, vector<8xf32>
  return %0 : vector<8xf32>
}

// CHECK-LABEL: func.func @another_choice(
// CHECK: arith.select
func.func @another_choice(%x: vector<16xf32>, %y: vector<16xf32>, %lanes: vector<16xi1>) -> vector<16xf32> {
  %0 = arith.select %lanes, %x, %y : vector<16xi1>, vector<16xf32>
  return %0 : vector<16xf32>
}
