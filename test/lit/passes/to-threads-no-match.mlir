// RUN: not %qopt %s --qnn-to-linalg=target=generic --qnn-to-threads 2>&1 | filecheck %s --check-prefix=EARLY
// RUN: not %qopt %s --qnn-to-linalg=target=generic --qnn-to-vector --qnn-to-threads --qnn-to-threads 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: %qopt %s --qnn-to-linalg='target=generic clocked=true' --qnn-to-vector --qnn-to-threads | filecheck %s --check-prefixes=SMALL,CLOCK
// RUN: %qopt %s --qnn-to-linalg=target=generic --qnn-to-vector --qnn-to-threads | filecheck %s --check-prefix=SMALL

// EARLY: error: qnn-to-threads: module must be at phase vector, but is at linalg; run qnn-to-vector before
// TWICE: error: qnn-to-threads: module is divided among 2 threads already

// What is not worth it stays whole.
// SMALL-LABEL: func.func @main(
// CLOCK-SAME: memref<4xi64>
// SMALL-NOT: omp.parallel
// CLOCK: memref.store
// CLOCK: call @kernel_0
// CLOCK: memref.store
// CLOCK-NOT: memref.store
func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = "qnn.clip"(%x) {min = 0 : i64, max = 6 : i64} : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
