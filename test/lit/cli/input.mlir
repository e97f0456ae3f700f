// RUN: %qopt - < %s | filecheck %s
// RUN: %qopt < %s | filecheck %s
// RUN: not %qopt %t.missing.mlir 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not %qopt %S 2>&1 | filecheck %s --check-prefix=FOLDER
// RUN: %python -c "import pathlib; pathlib.Path(r'%t.bytes').write_bytes(bytes(range(256)))"
// RUN: not %qopt %t.bytes 2>&1 | filecheck %s --check-prefix=BYTES
// RUN: not %qopt < %t.bytes 2>&1 | filecheck %s --check-prefix=BYTES
// RUN: %python -c "import pathlib; pathlib.Path(r'%t.deep').write_text('([{<' * 50000)"
// RUN: not %qopt %t.deep 2>&1 | filecheck %s --check-prefix=DEEP
// RUN: echo '%0 = qnn.relu %1 : i8' > %t.pretty
// RUN: not %qopt < %t.pretty 2>&1 | filecheck %s --check-prefix=PRETTY

// CHECK: func.func @f
// MISSING: error: cannot read '{{.*}}.missing.mlir': No such file or directory
// FOLDER: error: cannot read '{{.*}}': Is a directory
// BYTES: error: cannot read '{{.*}}': it must be UTF-8 text
// DEEP: .deep:1:501: error: text must nest at most 500 deep
// PRETTY: <stdin>:1:6: error: {{.*}}generic form only
func.func @f() {
  return
}
