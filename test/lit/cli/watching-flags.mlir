// Flags of mlir-opt that show what passes did, and what was wrong where.
// RUN: %qopt %s --fuse-qnn --mlir-pass-statistics --mlir-disable-threading 2>&1 >/dev/null | filecheck %s --check-prefix=STATISTICS
// RUN: rm -rf %t && %qopt %s --cse --qnn-fuse-clamp --mlir-print-ir-after-all --mlir-print-ir-tree-dir=%t -o /dev/null && cat %t/builtin_module_no-symbol-name/1_qnn-fuse-clamp.mlir | filecheck %s --check-prefix=TREE
// RUN: not %qopt %s --load-pass-plugin=%S/Inputs/plugin.py --cse --raise --mlir-pass-pipeline-crash-reproducer=%t.mlir 2>&1 | filecheck %s --check-prefix=RAISE
// RUN: filecheck %s --check-prefix=REPRODUCER --input-file %t.mlir
// RUN: not %qopt %t.mlir --load-pass-plugin=%S/Inputs/plugin.py --run-reproducer 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: %qopt %s --cse --mlir-pass-pipeline-crash-reproducer=%t.none.mlir -o /dev/null && not cat %t.none.mlir
// RUN: not %qopt %s --run-reproducer 2>&1 | filecheck %s --check-prefix=NO-REPRODUCER
// RUN: not %qopt model.tflite --fuse-qnn 2>&1 | filecheck %s --check-prefix=MODEL
// RUN: %qopt --list-passes | filecheck %s --check-prefix=LIST

// STATISTICS: ... Pass statistics report ...
// STATISTICS: qnn-fuse-clamp
// STATISTICS-NEXT:   (S) 1 fuse-clamp - rewrites
// TREE: IR Dump After qnn-fuse-clamp
// RAISE: watching-flags.mlir:{{[0-9]+}}:1: error: raise: ZeroDivisionError
// RAISE-NEXT: {{^}}// Flags of mlir-opt
// RAISE-NEXT: {{^\^$}}
// RAISE-NEXT: {{.*}}plugin.py:{{.*}} note: raised here
// REPRODUCER: pipeline: "builtin.module(cse,raise)"
// AGAIN-NOT: mlir_reproducer
// AGAIN: error: raise: ZeroDivisionError
// NO-REPRODUCER: must be a crash reproducer, but names no pipeline
// MODEL: error: expected MLIR, but got a .tflite file, which qdialect-import reads: 'qdialect-import model.tflite | qdialect-opt --fuse-qnn'
// LIST: passes of MLIR:
// LIST: canonicalize
func.func @f(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = "qnn.clip"(%x) {min = 0 : i64, max = 6 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  %1 = "qnn.clip"(%0) {min = -10 : i64, max = 5 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}
