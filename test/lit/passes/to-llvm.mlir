// RUN: %qopt %s --qnn-to-llvm | filecheck %s

// CHECK: module attributes {qnn.phase = "llvm"}
// CHECK: llvm.func @main(%arg0: !llvm.ptr, %arg1: !llvm.ptr)
// CHECK: llvm.load
// CHECK: llvm.store
func.func @main(%input: memref<16xi8>, %output: memref<16xi8>) {
  %zero = arith.constant 0 : index
  %0 = vector.load %input[%zero] : memref<16xi8>, vector<16xi8>
  vector.store %0, %output[%zero] : memref<16xi8>, vector<16xi8>
  return
}
