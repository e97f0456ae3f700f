// RUN: %python %S/Inputs/x86_step.py %s --target=x86-64 > %t && filecheck %s --input-file=%t

// CPUs before SSE4.1 round to even and convert four numbers in one instruction.

// CHECK-LABEL: func.func @even(
// CHECK-COUNT-4: "llvm.x86.sse2.cvtps2dq"(%{{.*}}) : (vector<4xf32>) -> vector<4xi32>
// CHECK-NOT: cvtps2dq
// CHECK-NOT: arith.fptosi
func.func @even(%x: vector<2x8xf32>) -> vector<2x8xi32> {
  %a = math.roundeven %x : vector<2x8xf32>
  %0 = arith.fptosi %a : vector<2x8xf32> to vector<2x8xi32>
  return %0 : vector<2x8xi32>
}

// CHECK-LABEL: func.func @few_lanes(
// CHECK-NOT: cvtps2dq
// CHECK: arith.fptosi
func.func @few_lanes(%x: vector<2xf32>) -> vector<2xi32> {
  %a = math.roundeven %x : vector<2xf32>
  // expected-remark @below {{[round-convert] 'arith.fptosi' vectors must have 4 lanes, but got 2}}
  %0 = arith.fptosi %a : vector<2xf32> to vector<2xi32>
  return %0 : vector<2xi32>
}

// No instruction says how it rounds but this one: rounding down stays apart.
// CHECK-LABEL: func.func @down(
// CHECK-NOT: cvtps2dq
// CHECK: arith.fptosi
func.func @down(%x: vector<4xf32>) -> vector<4xi32> {
  %a = math.floor %x : vector<4xf32>
  %0 = arith.fptosi %a : vector<4xf32> to vector<4xi32>
  return %0 : vector<4xi32>
}
