// RUN: %qopt %s --qnn-to-linalg=target=generic --qnn-to-vector --qnn-to-threads=threads=2 | filecheck %s

// The calls of main stand in a parallel region, and each thread makes those for its parts.

// CHECK: module attributes {
// CHECK-SAME: threads = 2
// CHECK-LABEL: func.func @main(
// CHECK: omp.parallel
// CHECK: func.call @kernel_0(
func.func @main(%x: tensor<512x256xi8>) -> tensor<512x256xi8> {
  %0 = "qnn.clip"(%x) {min = 0 : i64, max = 6 : i64} : (tensor<512x256xi8>) -> tensor<512x256xi8>
  return %0 : tensor<512x256xi8>
}
