// RUN: %python %S/Inputs/x86_step.py %s --target=x86-64 > %t && filecheck %s --input-file=%t

// Without an instruction that adds products before it rounds, sums are rounded to odd in float64 where one may be a tie.

// CHECK-LABEL: func.func @rows(
// CHECK-NOT: math.fma
// CHECK-COUNT-3: arith.extf %{{.*}} : vector<2x4xf32> to vector<2x4xf64>
// CHECK: arith.mulf %{{.*}} : vector<2x4xf64>
// CHECK: arith.addf %{{.*}} : vector<2x4xf64>
// CHECK: scf.if
// CHECK: arith.shrui
// CHECK: arith.truncf
// CHECK: } else {
// CHECK: arith.truncf
func.func @rows(%x: vector<2x4xf32>, %y: vector<2x4xf32>, %z: vector<2x4xf32>) -> vector<2x4xf32> {
  %0 = math.fma %x, %y, %z : vector<2x4xf32>
  return %0 : vector<2x4xf32>
}

// CHECK-LABEL: func.func @number(
// CHECK-NOT: scf.if
// CHECK: arith.shrui
// CHECK: arith.truncf %{{.*}} : f64 to f32
func.func @number(%x: f32, %y: f32, %z: f32) -> f32 {
  %0 = math.fma %x, %y, %z : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @doubles(
// CHECK: math.fma
func.func @doubles(%x: vector<4xf64>) -> vector<4xf64> {
  // expected-remark @below {{[exact-multiply-add] 'math.fma' numbers must be f32, but got f64}}
  %0 = math.fma %x, %x, %x : vector<4xf64>
  return %0 : vector<4xf64>
}
