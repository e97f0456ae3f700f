// RUN: %qopt %s --mlir-print-debuginfo | filecheck %s --check-prefix=LOCATION
// RUN: %qopt --mlir-print-debuginfo < %s | filecheck %s --check-prefix=STDIN
// RUN: %qopt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: %qopt %s --mlir-elide-elementsattrs-if-larger=4 | filecheck %s --check-prefix=ELIDED
// RUN: %qopt %s --mlir-elide-elementsattrs-if-larger=5 | filecheck %s --check-prefix=WHOLE
// RUN: not %qopt %s --mlir-elide-elementsattrs-if-larger=few 2>&1 | filecheck %s --check-prefix=BAD
// RUN: not %qopt %s --allow-unregistered-dialects 2>&1 | filecheck %s --check-prefix=TYPO

// LOCATION: loc("{{.*}}print-format.mlir":17:8)
// STDIN: loc("<stdin>":17:8)
// GENERIC: "arith.constant"()
// ELIDED: dense_resource<__elided__>
// WHOLE: dense<[1, 2, 3, 4, 5]>
// BAD: error: argument --mlir-elide-elementsattrs-if-larger: must be a number of elements, but got 'few'
// TYPO: unknown argument '--allow-unregistered-dialects', did you mean '--allow-unregistered-dialect'?
func.func @f() -> tensor<5xi8> {
  %0 = arith.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi8>
  return %0 : tensor<5xi8>
}
