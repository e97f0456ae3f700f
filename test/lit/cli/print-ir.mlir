// The module is printed on stderr around the passes named, or all; a pass made of others by its own name only.
// RUN: %qopt %s --qnn-canonicalize --cse --mlir-print-ir-before=cse 2>&1 >%t | filecheck %s --check-prefix=BEFORE
// RUN: %qopt %s --qnn-canonicalize --cse --mlir-print-ir-after=qnn-canonicalize,cse 2>&1 >%t | filecheck %s --check-prefix=AFTER
// RUN: %qopt %s --fuse-qnn --mlir-print-ir-after-all 2>&1 >%t | filecheck %s --check-prefix=ALL
// RUN: %qopt %s --fuse-qnn --mlir-print-ir-before=fuse-qnn 2>&1 >%t | filecheck %s --check-prefix=COMPOSITE
// RUN: %qopt %s --pass-pipeline='builtin.module(func.func(cse))' --mlir-print-ir-after-all 2>&1 >%t | filecheck %s --check-prefix=FUNCTION
// RUN: %qopt %s --pass-pipeline='builtin.module(func.func(cse))' --mlir-print-ir-after-all --mlir-print-ir-module-scope 2>&1 >%t | filecheck %s --check-prefix=MODULE
// RUN: not %qopt %s --cse --mlir-print-ir-after=csee 2>&1 | filecheck %s --check-prefix=UNKNOWN

// BEFORE-NOT: qnn-canonicalize
// BEFORE: // -----// IR Dump Before cse //----- //
// BEFORE: func.func @f
// BEFORE-NOT: IR Dump
// AFTER: IR Dump After qnn-canonicalize
// AFTER: IR Dump After cse
// ALL-NOT: IR Dump After fuse-qnn
// ALL: IR Dump After qnn-canonicalize
// ALL: IR Dump After qnn-fuse-lut
// COMPOSITE: IR Dump Before fuse-qnn
// COMPOSITE-NOT: IR Dump
// FUNCTION: IR Dump After cse
// FUNCTION-NEXT: func.func @f
// MODULE: IR Dump After cse
// MODULE-NEXT: module
// MODULE-NEXT: func.func @f
// UNKNOWN: error: unknown pass 'csee' to print the module around

func.func @f() {
  return
}
