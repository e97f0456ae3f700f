// The steps of the lowering are passes: they are listed, named in a pipeline, timed and printed around.
// RUN: %qopt --list-passes | filecheck %s --check-prefix=LIST
// RUN: %qopt %s --pass-pipeline='builtin.module(fuse-qnn,qnn-to-linalg{target=generic},qnn-to-vector,qnn-to-x86,qnn-to-llvm)' | filecheck %s --check-prefix=LLVM
// RUN: %qopt %s --compile-to=llvm --target=generic --mlir-timing 2>&1 >%t | filecheck %s --check-prefix=TIMING
// RUN: %qopt %s --compile-to=vector --target=generic --mlir-print-ir-after=qnn-to-vector 2>&1 >%t | filecheck %s --check-prefix=AFTER
// RUN: %qopt %s --compile-to=linalg --target=generic --mlir-print-ir-before=qnn-to-linalg 2>&1 >%t | filecheck %s --check-prefix=BEFORE
// RUN: %qopt %s --compile-to=llvm --target=generic --mlir-print-ir-after-change 2>&1 >%t | filecheck %s --check-prefix=CHANGE
// RUN: not %qopt %s --qnn-to-vector --mlir-print-ir-after-failure 2>&1 | filecheck %s --check-prefix=FAILURE
// RUN: %qopt %s --cse --fuse-qnn --dump-pass-pipeline 2>&1 >%t | filecheck %s --check-prefix=DUMP

// LIST: qnn-to-linalg{target=host clocked=false}
// LIST: qnn-to-llvm
// LIST: qnn-to-threads{threads=2 min-cycles=4000}
// LIST: qnn-to-vector
// LIST: qnn-to-x86{target=""}
// LLVM: llvm.func @main(
// TIMING: qnn-to-linalg
// TIMING: qnn-to-vector
// TIMING: qnn-to-x86
// TIMING: qnn-to-llvm
// AFTER: IR Dump After qnn-to-vector
// AFTER: vector.transfer_read
// BEFORE: IR Dump Before qnn-to-linalg
// BEFORE: "qnn.clip"
// CHANGE-NOT: IR Dump After qnn-fuse-bias
// CHANGE: IR Dump After qnn-to-linalg
// CHANGE: IR Dump After qnn-to-llvm
// FAILURE: IR Dump After qnn-to-vector Failed
// FAILURE: "qnn.clip"
// DUMP: Pass Manager with 2 passes:
// DUMP-NEXT: builtin.module(cse,fuse-qnn{leaky-relu=keep})
func.func @main(%x: tensor<1x16xi8>) -> tensor<1x16xi8> {
  %0 = "qnn.clip"(%x) {min = -3 : i64, max = 6 : i64} : (tensor<1x16xi8>) -> tensor<1x16xi8>
  return %0 : tensor<1x16xi8>
}
