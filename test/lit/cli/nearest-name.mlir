// A name that is not known is answered with the nearest one.
// RUN: not %qopt %s 2>&1 | filecheck %s --check-prefix=OP
// RUN: echo '"qnn.quantise"() : () -> ()' > %t && not %qopt %t 2>&1 | filecheck %s --check-prefix=OWN
// RUN: not %qopt %s --canonicalise 2>&1 | filecheck %s --check-prefix=FLAG
// RUN: not %qopt %s --pass-pipeline='builtin.module(qnn-to-vectors)' 2>&1 | filecheck %s --check-prefix=PASS
// RUN: not %qopt %s --mlir-print-ir-after=csee 2>&1 | filecheck %s --check-prefix=PRINT

// OP: error: custom op 'arith.addo' is unknown{{.*}}, did you mean 'arith.add{{[if]}}'?
// OWN: error: {{.*}}'qnn.quantise'{{.*}}, did you mean 'qnn.quantize'?
// FLAG: error: unknown argument '--canonicalise', did you mean '--canonicalize'?
// PASS: error: unknown pass 'qnn-to-vectors', did you mean 'qnn-to-vector'?
// PRINT: error: unknown pass 'csee' to print the module around, did you mean 'cse'?
func.func @f(%x: i32) -> i32 {
  %0 = arith.addo %x, %x : i32
  return %0 : i32
}
