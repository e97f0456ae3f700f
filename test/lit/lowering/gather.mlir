// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s --check-prefix=VECTOR

// Rows in any order: a loop over a table of places, and a copy of whole vectors in it.

// LINALG-LABEL: func.func private @kernel_
// LINALG: scf.for
// LINALG: memref.load
// LINALG: linalg.generic

// VECTOR-LABEL: func.func private @kernel_
// VECTOR: scf.for
// VECTOR: %[[INDEX:.*]] = memref.load {{.*}} : memref<8xi64>
// VECTOR-NOT: memref.alloc
// VECTOR-NOT: memref.load
// VECTOR: vector.transfer_read {{.*}} vector<{{.*}}64xi8>
// VECTOR: vector.transfer_write {{.*}} vector<{{.*}}64xi8>
func.func @main(%input: tensor<9x7x64xui8>) -> tensor<8x7x64xui8> {
  %y = "qnn.gather"(%input) {
    axis = 0 : i64, indices = array<i64: 7, 3, 5, 0, 8, 1, 6, 2>
  } : (tensor<9x7x64xui8>) -> tensor<8x7x64xui8>
  return %y : tensor<8x7x64xui8>
}
