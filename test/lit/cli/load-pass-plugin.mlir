// Passes of a user's own are flags as any other.
// RUN: %qopt %s --load-pass-plugin=%S/Inputs/plugin.py --rename-functions=suffix=_new | filecheck %s
// RUN: %qopt %s --load-pass-plugin=%S/Inputs/plugin.py --pass-pipeline='builtin.module(cse,rename-functions{suffix=_new})' | filecheck %s
// RUN: not %qopt %s --load-pass-plugin=%S/Inputs/plugin.py --raise 2>&1 | filecheck %s --check-prefix=RAISE
// RUN: not %qopt %s --rename-functions 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %qopt %s --load-pass-plugin=%t.missing.py 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not %qopt %s --load-pass-plugin=%s 2>&1 | filecheck %s --check-prefix=NOT-PYTHON

// RUN: %qopt --load-pass-plugin=%S/Inputs/plugin.py --list-passes | filecheck %s --check-prefix=LIST

// LIST: rename-functions{suffix=_renamed} {{ *}}Append a suffix to the name of every function.
// CHECK: func.func @f_new
// RAISE: load-pass-plugin.mlir:19:1: error: raise: ZeroDivisionError: {{.*}}division
// RAISE: Inputs/plugin.py:{{[0-9]+}}:15: note: raised here, in 'run'
// RAISE-NOT: Traceback
// UNKNOWN: error: unknown argument '--rename-functions'
// MISSING: error: argument --load-pass-plugin: cannot load '{{.*}}.missing.py': FileNotFoundError
// NOT-PYTHON: error: argument --load-pass-plugin: cannot load '{{.*}}load-pass-plugin.mlir': SyntaxError
module {
  func.func @f() {
    return
  }
}
