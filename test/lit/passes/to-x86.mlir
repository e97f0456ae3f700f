// RUN: %qopt %s --qnn-to-x86=target=avx512vbmi | filecheck %s

// Rounding to even and converting to integers is one instruction, where the target has it.

// CHECK: module attributes {qnn.phase = "x86"}
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.cvtps2dq.512"
// CHECK-NOT: arith.fptosi
func.func @round(%x: vector<16xf32>) -> vector<16xi32> {
  %0 = math.roundeven %x : vector<16xf32>
  %1 = arith.fptosi %0 : vector<16xf32> to vector<16xi32>
  return %1 : vector<16xi32>
}
