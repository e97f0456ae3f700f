// Bytecode is written on request and told by its first bytes, from a file and from stdin, at every phase.
// RUN: %qopt %s --emit-bytecode -o %t.mlirbc && %qopt %t.mlirbc | filecheck %s
// RUN: %qopt %s --emit-bytecode | %qopt - | filecheck %s
// RUN: %qopt %s --compile-to=vector --target=generic --emit-bytecode | %qopt - --compile-to=llvm | filecheck %s --check-prefix=LLVM
// RUN: %python -c "import pathlib; p = pathlib.Path(r'%t.mlirbc'); p.write_bytes(p.read_bytes()[:60])"
// RUN: not %qopt %t.mlirbc 2>&1 | filecheck %s --check-prefix=DAMAGED

// CHECK: "qnn.clip"
// LLVM: llvm.func @main(
// DAMAGED: error:
// DAMAGED-NOT: Traceback
func.func @main(%x: tensor<1x16xi8>) -> tensor<1x16xi8> {
  %0 = "qnn.clip"(%x) {min = -3 : i64, max = 6 : i64} : (tensor<1x16xi8>) -> tensor<1x16xi8>
  return %0 : tensor<1x16xi8>
}
