// Parts are modules of their own; an error in one has the line of the file, hides none in another, and nothing is printed.
// RUN: not %qopt %s --split-input-file > %t.out 2> %t.err
// RUN: filecheck %s --input-file %t.err
// RUN: test ! -s %t.out
// RUN: %qopt %S/Inputs/two-modules.mlir --split-input-file | filecheck %s --check-prefix=GOOD
// RUN: %qopt %S/Inputs/two-modules.mlir --split-input-file='// -----' | filecheck %s --check-prefix=GOOD
// RUN: not %qopt %S/Inputs/two-modules.mlir 2>&1 | filecheck %s --check-prefix=WHOLE

// GOOD: func.func @same
// GOOD: // -----
// GOOD: func.func @same
// WHOLE: two-modules.mlir:6:1: error: redefinition of symbol named 'same'

// CHECK: split-input-file.mlir:15:18: error: custom op 'arith.first' is unknown
func.func @f() { arith.first }

// -----

func.func @good() {
  return
}

// -----

// CHECK: split-input-file.mlir:26:18: error: custom op 'arith.second' is unknown
func.func @f() { arith.second }
