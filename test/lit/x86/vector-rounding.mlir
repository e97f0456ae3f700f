// RUN: %python %S/Inputs/x86_step.py %s --target=x86-64 > %t && filecheck %s --input-file=%t

// Without an instruction that rounds, vectors are rounded by conversions and additions, and no function is called.

// CHECK-LABEL: func.func @even(
// CHECK-NOT: math.roundeven
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: arith.subf %[[SUM]]
// CHECK: math.copysign
// CHECK: arith.select
func.func @even(%x: vector<2x4xf32>) -> vector<2x4xf32> {
  %0 = math.roundeven %x : vector<2x4xf32>
  return %0 : vector<2x4xf32>
}

// CHECK-LABEL: func.func @doubles(
// CHECK: math.roundeven
func.func @doubles(%x: vector<4xf64>) -> vector<4xf64> {
  // expected-remark @below {{[vector-rounding] 'math.roundeven' numbers must be f32, but got f64}}
  %0 = math.roundeven %x : vector<4xf64>
  return %0 : vector<4xf64>
}

// CHECK-LABEL: func.func @number(
// CHECK: math.roundeven
func.func @number(%x: f32) -> f32 {
  %0 = math.roundeven %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @down(
// CHECK-NOT: math.floor
// CHECK: arith.fptosi
// CHECK: arith.cmpf ogt
func.func @down(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.floor %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// CHECK-LABEL: func.func @doubles_down(
// CHECK: math.floor
func.func @doubles_down(%x: vector<4xf64>) -> vector<4xf64> {
  // expected-remark @below {{[vector-rounding] 'math.floor' numbers must be f32, but got f64}}
  %0 = math.floor %x : vector<4xf64>
  return %0 : vector<4xf64>
}

// CHECK-LABEL: func.func @number_down(
// CHECK: math.floor
func.func @number_down(%x: f32) -> f32 {
  %0 = math.floor %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @up(
// CHECK-NOT: math.ceil
// CHECK: arith.fptosi
// CHECK: arith.addf
func.func @up(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.ceil %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// CHECK-LABEL: func.func @doubles_up(
// CHECK: math.ceil
func.func @doubles_up(%x: vector<4xf64>) -> vector<4xf64> {
  // expected-remark @below {{[vector-rounding] 'math.ceil' numbers must be f32, but got f64}}
  %0 = math.ceil %x : vector<4xf64>
  return %0 : vector<4xf64>
}

// CHECK-LABEL: func.func @number_up(
// CHECK: math.ceil
func.func @number_up(%x: f32) -> f32 {
  %0 = math.ceil %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @to_zero(
// CHECK-NOT: math.trunc
// CHECK: arith.sitofp
func.func @to_zero(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.trunc %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// CHECK-LABEL: func.func @doubles_to_zero(
// CHECK: math.trunc
func.func @doubles_to_zero(%x: vector<4xf64>) -> vector<4xf64> {
  // expected-remark @below {{[vector-rounding] 'math.trunc' numbers must be f32, but got f64}}
  %0 = math.trunc %x : vector<4xf64>
  return %0 : vector<4xf64>
}

// CHECK-LABEL: func.func @number_to_zero(
// CHECK: math.trunc
func.func @number_to_zero(%x: f32) -> f32 {
  %0 = math.trunc %x : f32
  return %0 : f32
}
