// A file is written as a whole, or left as it was.
// RUN: %qopt %s -o %t.mlir && filecheck %s --input-file %t.mlir
// RUN: %qopt %t.mlir -o %t.mlir --cse && filecheck %s --input-file %t.mlir
// RUN: not %qopt %S/Inputs/wrong-expectations.mlir -o %t.mlir
// RUN: filecheck %s --input-file %t.mlir
// RUN: not %qopt %s -o %t.missing/x.mlir 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not %qopt %s -o 2>&1 | filecheck %s --check-prefix=NO-NAME

// CHECK: func.func @f
// MISSING: error: cannot write '{{.*}}.missing/x.mlir': No such file or directory
// NO-NAME: error: argument -o: expected one argument
func.func @f() {
  return
}
