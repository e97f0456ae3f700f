// RUN: %qimport %s | filecheck %s
// RUN: %qimport %s --mlir-print-debuginfo | filecheck %s --check-prefix=LOC
// RUN: %qimport %s --report | filecheck %s --check-prefix=REPORT
// RUN: %qrun %s --reference | filecheck %s --check-prefix=VALUES
// RUN: not %qimport %S/../passes/import-tosa-no-match.mlir 2>&1 | filecheck %s --check-prefix=ERROR

// CHECK: func.func @main(%arg0: tensor<256xi8>) -> tensor<256xi8>
// CHECK-NOT: tosa
// CHECK: "qnn.lut"(%arg0)

// LOC: loc("%1"(
// VALUES: res0: 0 of 256 elements differ from the reference
// ERROR: error: 'import-tosa-no-match.mlir' has 9 unsupported operations
// ERROR: note: tosa.rfft2d: has no counterpart in qnn
// REPORT: tosa.table %1
// REPORT-SAME: lut
func.func @main(%x: tensor<256xi8>) -> tensor<256xi8> {
  %table = "tosa.const"() <{values = dense<7> : tensor<256xi8>}> : () -> tensor<256xi8>
  %0 = tosa.table %x, %table : (tensor<256xi8>, tensor<256xi8>) -> tensor<256xi8>
  return %0 : tensor<256xi8>
}
