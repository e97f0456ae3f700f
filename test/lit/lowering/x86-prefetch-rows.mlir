// RUN: %qopt %s --compile-to=x86 --target=avx512bw | filecheck %s
// RUN: %qopt %s --compile-to=x86 --target=avx512bw --threads=2 | filecheck %s --check-prefix=THREADS

// A kernel that passes several times over each block of rows fetches the next one in the first pass that reads or writes
// it: of a normalization, in the sum that it reads and in the scaling that it writes.

// CHECK-LABEL: func.func private @kernel_0(
// CHECK: scf.for %[[BLOCK:.*]] = %c0 to %c4096
// CHECK: %[[START:.*]] = arith.muli %[[BLOCK]], %[[STEP:.*]] : index
// CHECK: %[[NEXT:.*]] = arith.addi %[[START]], %[[STEP]] : index
// CHECK-NEXT: %[[ROWS:.*]] = memref.reinterpret_cast %arg1 to offset: [%[[NEXT]]]
// CHECK-NEXT: memref.prefetch %[[ROWS]][%{{.*}}], read, locality<3>, data
// CHECK: %[[NEXT_OUT:.*]] = arith.addi %[[START]], %[[STEP]] : index
// CHECK-NEXT: %[[ROWS_OUT:.*]] = memref.reinterpret_cast %arg0 to offset: [%[[NEXT_OUT]]]
// CHECK-NEXT: memref.prefetch %[[ROWS_OUT]][%{{.*}}], read, locality<3>, data
// CHECK-LABEL: func.func @main(

// THREADS: memref.prefetch
func.func @main(%x: tensor<65536x128xf32>) -> tensor<65536x128xf32> {
  %sum = "qnn.f32_sum"(%x) {axes = array<i64: 1>, keep_dims = true} : (tensor<65536x128xf32>) -> tensor<65536x1xf32>
  %row = "qnn.broadcast"(%sum) {shape = array<i64: 65536, 128>} : (tensor<65536x1xf32>) -> tensor<65536x128xf32>
  %0 = arith.divf %x, %row : tensor<65536x128xf32>
  return %0 : tensor<65536x128xf32>
}
