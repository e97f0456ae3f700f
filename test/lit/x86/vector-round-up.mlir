// RUN: %python %S/Inputs/x86_step.py %s --target=x86-64 > %t && filecheck %s --input-file=%t

// Without an instruction that rounds, vectors are rounded by conversions and additions, and no function is called.

// CHECK-LABEL: func.func @up(
// CHECK-NOT: math.ceil
// CHECK: arith.fptosi
// CHECK: arith.addf
func.func @up(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.ceil %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// CHECK-LABEL: func.func @doubles(
// CHECK: math.ceil
func.func @doubles(%x: vector<4xf64>) -> vector<4xf64> {
  // expected-remark @below {{[vector-rounding] 'math.ceil' numbers must be f32, but got f64}}
  %0 = math.ceil %x : vector<4xf64>
  return %0 : vector<4xf64>
}

// CHECK-LABEL: func.func @number(
// CHECK: math.ceil
func.func @number(%x: f32) -> f32 {
  %0 = math.ceil %x : f32
  return %0 : f32
}
