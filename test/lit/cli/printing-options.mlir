// How modules are printed, by the flags of mlir-opt.
// RUN: %qopt --show-dialects | filecheck %s --check-prefix=DIALECTS
// RUN: %qopt %s --mlir-print-debuginfo --mlir-print-local-scope | filecheck %s --check-prefix=LOCAL
// RUN: %qopt %s --mlir-print-debuginfo | filecheck %s --check-prefix=ALIAS
// RUN: %qopt %s --compile-to=linalg --target=generic | filecheck %s --check-prefix=RESOURCE
// RUN: %qopt %s --compile-to=linalg --target=generic --mlir-elide-resource-strings-if-larger=20 | filecheck %s --check-prefix=ELIDED
// RUN: %qopt %s --compile-to=linalg --target=generic --mlir-use-nameloc-as-prefix | filecheck %s --check-prefix=NAMES
// RUN: %qopt %s --mlir-elide-elementsattrs-if-larger=4 > %t && not %qopt %t --compile-to=linalg 2>&1 | filecheck %s --check-prefix=ABSENT

// DIALECTS: Available Dialects: acc, {{.*}}linalg, {{.*}}qnn, {{.*}}vector
// LOCAL: loc(fused["a", "b"])
// ALIAS: #loc{{[0-9]*}} = loc(fused[
// RESOURCE: qnn.constants = dense_resource<constants>
// RESOURCE: {-#
// RESOURCE: constants: "0x40000000
// ELIDED: qnn.constants = dense_resource<constants>
// ELIDED-NOT: "0x
// NAMES: func.func private @kernel_0_a(%
// NAMES: func.func @main(%in0: memref<5xi32>, %out0: memref<5xi32>, %constants: memref
// ABSENT: error: 'qnn.constant' op value must have its elements, but dense_resource '__elided__' has no data
func.func @main(%x: tensor<5xi32>) -> tensor<5xi32> {
  %0 = "qnn.constant"() {value = dense<[1, 2, 3, 4, 5]> : tensor<5xi32>} : () -> tensor<5xi32>
  %1 = arith.addi %x, %0 : tensor<5xi32> loc(fused["a", "b"])
  return %1 : tensor<5xi32>
}
