// Passes run in the order of their flags; flags take one dash or two.
// RUN: %qopt %s --cse --canonicalize --mlir-print-ir-before-all 2>&1 | filecheck %s --check-prefix=FIRST-CSE
// RUN: %qopt %s -canonicalize -cse -mlir-print-ir-before-all 2>&1 | filecheck %s --check-prefix=LAST-CSE
// RUN: not %qopt %s --cse --pass-pipeline='builtin.module(cse)' 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not %qopt %s --fuse-qmm 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %qopt %s %s 2>&1 | filecheck %s --check-prefix=TWO-FILES

// FIRST-CSE: IR Dump Before cse
// FIRST-CSE: IR Dump Before canonicalize
// LAST-CSE: IR Dump Before canonicalize
// LAST-CSE: IR Dump Before cse
// BOTH: qdialect-opt: error: '--pass-pipeline' cannot be used together with '--cse'
// UNKNOWN: qdialect-opt: error: unknown argument '--fuse-qmm', did you mean '--fuse-qnn'?
// TWO-FILES: qdialect-opt: error: expected one input file

func.func @nothing() {
  return
}
