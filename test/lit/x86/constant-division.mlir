// RUN: %python %S/Inputs/x86_step.py %s --target=amxint8 > %t && filecheck %s --input-file=%t

// Numbers divided by a short constant are multiplied by the two parts of its reciprocal, where none of them is tiny.

// CHECK-LABEL: func.func @six(
// CHECK-SAME: %[[X:.*]]: vector<16xf32>
// CHECK-DAG: %[[SIX:.*]] = arith.constant dense<6.000000e+00> : vector<16xf32>
// CHECK-DAG: %[[HIGH:.*]] = arith.constant dense<0.166666657> : vector<16xf32>
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<{{9.9341.*E-9}}> : vector<16xf32>
// CHECK: arith.cmpi uge, %{{.*}} : vector<16xi32>
// CHECK: %[[RESULT:.*]] = scf.if %{{.*}} -> (vector<16xf32>) {
// CHECK: %[[REST:.*]] = arith.mulf %[[X]], %[[LOW]] : vector<16xf32>
// CHECK: %[[QUOTIENT:.*]] = math.fma %[[X]], %[[HIGH]], %[[REST]] : vector<16xf32>
// CHECK: scf.yield %[[QUOTIENT]]
// CHECK: } else {
// CHECK: %[[DIVIDED:.*]] = arith.divf %[[X]], %[[SIX]] {qnn.divided} : vector<16xf32>
// CHECK: scf.yield %[[DIVIDED]]
// CHECK: return %[[RESULT]]
func.func @six(%x: vector<16xf32>) -> vector<16xf32> {
  %six = arith.constant dense<6.0> : vector<16xf32>
  %0 = arith.divf %x, %six : vector<16xf32>
  return %0 : vector<16xf32>
}

// Several vectors are compared together.

// CHECK-LABEL: func.func @four_vectors(
// CHECK-COUNT-3: arith.minui {{.*}} : vector<16xi32>
// CHECK-COUNT-1: arith.cmpi uge
// CHECK: scf.if
// CHECK: arith.mulf {{.*}} : vector<2x32xf32>
func.func @four_vectors(%x: vector<2x32xf32>) -> vector<2x32xf32> {
  %six = arith.constant dense<6.0> : vector<2x32xf32>
  %0 = arith.divf %x, %six : vector<2x32xf32>
  return %0 : vector<2x32xf32>
}

// CHECK-LABEL: func.func @few_lanes(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @few_lanes(%x: vector<8xf32>) -> vector<8xf32> {
  %six = arith.constant dense<6.0> : vector<8xf32>
  // expected-remark @below {{[constant-division] 'arith.divf' must be of vectors of a multiple of 16 lanes, but got vector<8xf32>}}
  %0 = arith.divf %x, %six : vector<8xf32>
  return %0 : vector<8xf32>
}

// CHECK-LABEL: func.func @long_divisor(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @long_divisor(%x: vector<16xf32>) -> vector<16xf32> {
  %tenth = arith.constant dense<0.1> : vector<16xf32>
  // expected-remark @below {{[constant-division] 'arith.divf' must have a divisor from 2^-20 to 2^20 of 2 to 19 bits, but got 0.1}}
  %0 = arith.divf %x, %tenth : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @negative_divisor(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @negative_divisor(%x: vector<16xf32>) -> vector<16xf32> {
  %minus = arith.constant dense<-3.0> : vector<16xf32>
  // expected-remark @below {{[constant-division] 'arith.divf' must have a divisor from 2^-20 to 2^20 of 2 to 19 bits, but got -3}}
  %0 = arith.divf %x, %minus : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @several_divisors(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @several_divisors(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.divf %x, %y : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @double(
// CHECK-NOT: scf.if
// CHECK: arith.divf
func.func @double(%x: vector<16xf64>) -> vector<16xf64> {
  %six = arith.constant dense<6.0> : vector<16xf64>
  %0 = arith.divf %x, %six : vector<16xf64>
  return %0 : vector<16xf64>
}
