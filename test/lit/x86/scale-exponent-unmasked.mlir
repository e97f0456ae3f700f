// RUN: %python %S/Inputs/x86_step.py %s --target=znver4 > %t && filecheck %s --input-file=%t

// On a core whose scaling finds a product of zero as fast as any other, no lane is left out.

// CHECK-LABEL: func.func @bounded(
// CHECK-DAG: %[[ALL:.*]] = arith.constant -1 : i16
// CHECK-NOT: arith.cmpf ugt
// CHECK: "llvm.x86.avx512.mask.scalef.ps.512"(%{{.*}}, %{{.*}}, %{{.*}}, %[[ALL]], {{.*}})
// CHECK-NOT: arith.mulf
func.func @bounded(%x: vector<16xf32>, %rounder: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1> : vector<16xi32>
  %bits = arith.constant dense<23> : vector<16xi32>
  %low = arith.constant dense<-1.510000e+02> : vector<16xf32>
  %is_below = arith.cmpf olt, %x, %low : vector<16xf32>
  %limited = arith.select %is_below, %low, %x : vector<16xi1>, vector<16xf32>
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
  return %0 : vector<16xf32>
}
