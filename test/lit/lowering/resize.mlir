// RUN: %qopt %s --compile-to=linalg --target=avx512vbmi | filecheck %s --check-prefix=LINALG
// RUN: %qopt %s --compile-to=vector --target=avx512vbmi | filecheck %s --check-prefix=VECTOR

// Rows and columns come from tables, weights are numbers of a cell; the channels are vectors.

// LINALG-LABEL: func.func private @kernel_
// LINALG: scf.for
// LINALG: scf.for
// LINALG: linalg.generic

// VECTOR-LABEL: func.func private @kernel_
// VECTOR: scf.for
// VECTOR: memref.load {{.*}} : memref<10xi64>
// VECTOR: memref.load {{.*}} : memref<10xf32>
// VECTOR: scf.for
// VECTOR: memref.load {{.*}} : memref<12xi64>
// VECTOR-NOT: memref.alloc
// VECTOR-NOT: memref.load {{.*}}xi8>
// VECTOR: vector.transfer_read {{.*}} vector<{{.*}}16xi8>
// VECTOR: arith.mulf {{.*}} : vector<{{.*}}16xf32>
// VECTOR: vector.transfer_write {{.*}} vector<{{.*}}16xi8>
func.func @main(%input: tensor<1x4x6x16xui8>) -> tensor<1x10x12x16xui8> {
  %y = "qnn.resize_bilinear"(%input) {
    size = array<i64: 10, 12>, coordinates = "half_pixel", arithmetic = "tflite_float"
  } : (tensor<1x4x6x16xui8>) -> tensor<1x10x12x16xui8>
  return %y : tensor<1x10x12x16xui8>
}
