// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// Rounding to even or down and converting is one instruction.

// CHECK-LABEL: func.func @even(
// CHECK: %[[HOW:.*]] = arith.constant 8 : i32
// CHECK: "llvm.x86.avx512.mask.cvtps2dq.512"({{.*}}%[[HOW]])
// CHECK-NOT: arith.fptosi
func.func @even(%x: vector<16xf32>) -> vector<16xi32> {
  %a = math.roundeven %x : vector<16xf32>
  %0 = arith.fptosi %a : vector<16xf32> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @down(
// CHECK: %[[HOW:.*]] = arith.constant 9 : i32
// CHECK-COUNT-2: "llvm.x86.avx512.mask.cvtps2dq.512"({{.*}}%[[HOW]])
// CHECK-NOT: arith.fptosi
func.func @down(%x: vector<2x16xf32>) -> vector<2x16xi32> {
  %a = math.floor %x : vector<2x16xf32>
  %0 = arith.fptosi %a : vector<2x16xf32> to vector<2x16xi32>
  return %0 : vector<2x16xi32>
}

// CHECK-LABEL: func.func @doubles(
// CHECK-NOT: cvtps2dq
// CHECK: arith.fptosi
func.func @doubles(%x: vector<16xf64>) -> vector<16xi32> {
  %a = math.roundeven %x : vector<16xf64>
  // expected-remark @below {{[round-convert] 'arith.fptosi' numbers must be f32, but got f64}}
  %0 = arith.fptosi %a : vector<16xf64> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @few_lanes(
// CHECK-NOT: cvtps2dq
// CHECK: arith.fptosi
func.func @few_lanes(%x: vector<8xf32>) -> vector<8xi32> {
  %a = math.roundeven %x : vector<8xf32>
  // expected-remark @below {{[round-convert] 'arith.fptosi' vectors must have 16 lanes, but got 8}}
  %0 = arith.fptosi %a : vector<8xf32> to vector<8xi32>
  return %0 : vector<8xi32>
}

// CHECK-LABEL: func.func @up(
// CHECK-NOT: cvtps2dq
// CHECK: arith.fptosi
func.func @up(%x: vector<16xf32>) -> vector<16xi32> {
  %a = math.ceil %x : vector<16xf32>
  %0 = arith.fptosi %a : vector<16xf32> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @wide_result(
// CHECK-NOT: cvtps2dq
// CHECK: arith.fptosi
func.func @wide_result(%x: vector<16xf32>) -> vector<16xi64> {
  %a = math.roundeven %x : vector<16xf32>
  %0 = arith.fptosi %a : vector<16xf32> to vector<16xi64>
  return %0 : vector<16xi64>
}
