// Every phase is run on the same arrays, and each is compared with the first bit for bit.
// RUN: %qopt %s --compare-phases --target=generic | filecheck %s
// RUN: %python -c "import numpy; numpy.save(r'%t.npy', numpy.arange(16, dtype='int8').reshape(1, 16))"
// RUN: %qopt %s --compare-phases --target=generic --input %t.npy | filecheck %s
// RUN: %qopt %s --compile-to=linalg --target=generic | %qopt - --compare-phases | filecheck %s --check-prefix=LINALG
// RUN: not %qopt %s --compare-phases --input %s --target=generic 2>&1 | filecheck %s --check-prefix=FILE
// RUN: not %qopt %s --input %t.npy 2>&1 | filecheck %s --check-prefix=ALONE
// RUN: not %qopt %s --compare-phases --compile-to=llvm 2>&1 | filecheck %s --check-prefix=BOTH

// CHECK: phase   run as                    elements that differ
// CHECK-NEXT: qnn     NumPy reference           0 of 16
// CHECK-NEXT: fused   NumPy reference           0 of 16
// CHECK-NEXT: linalg  loops over scalars        0 of 16
// CHECK-NEXT: vector  vector code for any CPU   0 of 16
// CHECK-NEXT: x86     the target's instructions {{ *}}0 of 16
// CHECK-NEXT: llvm    machine code of the text  0 of 16
// CHECK: all phases compute the same bits as phase qnn
// LINALG-NOT: fused
// LINALG: linalg  loops over scalars
// LINALG: all phases compute the same bits as phase linalg
// FILE: error: cannot read '{{.*}}compare-phases.mlir' as a .npy file
// ALONE: error: --input must be given with --compare-phases
// BOTH: error: --compare-phases must be given without --compile-to and --emit-bytecode
func.func @main(%x: tensor<1x16xi8>) -> tensor<1x16xi8> {
  %0 = "qnn.clip"(%x) {min = -3 : i64, max = 6 : i64} : (tensor<1x16xi8>) -> tensor<1x16xi8>
  return %0 : tensor<1x16xi8>
}
