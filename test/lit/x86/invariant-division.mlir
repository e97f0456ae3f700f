// RUN: %python %S/Inputs/x86_step.py %s --target=icelake-server > %t && filecheck %s --input-file=%t

// Numbers divided by one are multiplied by its reciprocal where a division takes long, and corrected; those that are out
// of range are divided.

// CHECK-LABEL: func.func @rows(
// CHECK: %[[RECIPROCAL:.*]] = arith.divf %{{.*}}, %arg1 : f32
// CHECK-COUNT-2: arith.cmpi ne
// CHECK: vector.reduction <or>
// CHECK: scf.if
// CHECK-COUNT-2: arith.divf %{{.*}} : vector<16xf32>
// CHECK: } else {
// CHECK: arith.mulf
// CHECK-COUNT-2: math.fma
// CHECK: arith.mulf
// CHECK-COUNT-2: math.fma
func.func @rows(%x: vector<1x32xf32>, %y: f32) -> vector<1x32xf32> {
  %0 = vector.broadcast %y : f32 to vector<1x32xf32>
  %1 = arith.divf %x, %0 : vector<1x32xf32>
  return %1 : vector<1x32xf32>
}

// CHECK-LABEL: func.func @rounded(
// CHECK-NOT: scf.if
// CHECK-COUNT-2: math.fma
// CHECK: arith.cmpf ord
// CHECK: arith.select
func.func @rounded(%x: vector<16xf32>, %y: vector<1xf32>) -> vector<16xf32> {
  %0 = vector.broadcast %y : vector<1xf32> to vector<16xf32>
  %1 = arith.divf %x, %0 {qnn.rounded} : vector<16xf32>
  return %1 : vector<16xf32>
}

// CHECK-LABEL: func.func @columns(
// CHECK: arith.divf %{{.*}} : vector<4x16xf32>
func.func @columns(%x: vector<4x16xf32>, %y: vector<16xf32>) -> vector<4x16xf32> {
  %0 = vector.broadcast %y : vector<16xf32> to vector<4x16xf32>
  // expected-remark @below {{[invariant-division] 'arith.divf' each divisor must divide a multiple of 16 numbers, but got vector<4x16xf32> for 16}}
  %1 = arith.divf %x, %0 : vector<4x16xf32>
  return %1 : vector<4x16xf32>
}

// CHECK-LABEL: func.func @doubles(
// CHECK: arith.divf %{{.*}} : vector<16xf64>
func.func @doubles(%x: vector<16xf64>, %y: f64) -> vector<16xf64> {
  %0 = vector.broadcast %y : f64 to vector<16xf64>
  // expected-remark @below {{[invariant-division] 'arith.divf' numbers must be f32, but got f64}}
  %1 = arith.divf %x, %0 : vector<16xf64>
  return %1 : vector<16xf64>
}
